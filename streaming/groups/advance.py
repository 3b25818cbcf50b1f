"""The core's one function: it takes a group's state and its next events, and returns the new state and rows.

    advance(state, group, inputs, config) -> (state, rows)

The result does not depend on how the events were split into batches: commits are processed only at boundaries that
lie in the events themselves (a round, a membership record). Between boundaries they are only merged, and merging is
associative.

A round takes in the topics that it shows, and then writes the verdicts that are now possible, lag rows and the health
row; the group's last round writes its end.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from streaming.groups import compaction
from streaming.groups.classic import churn, cost, departures
from streaming.groups.classic.drift import judge_again, write_classic_verdicts
from streaming.groups.classic.leader_metadata import see_racks
from streaming.groups.classic.membership import close_members, standing_members
from streaming.groups.context import Context, GroupConfig
from streaming.groups.delayed import forget_stops
from streaming.groups.health.activity import note_commits
from streaming.groups.health.group_health import end_health, write_health
from streaming.groups.health.starts import move_starts
from streaming.groups.lag import offset_events, oldest_unread
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.rows import end_partition, lag_rows, move_unread
from streaming.groups.lag.state import WINDOW, PartitionState
from streaming.groups.load.rates import void_topic
from streaming.groups.modern import decisions as modern
from streaming.groups.modern.members import close_modern_members, standing_modern_members, write_modern_members
from streaming.groups.modern.verdicts import judge_modern_again, was_met_empty, write_modern_verdicts
from streaming.groups.rocketmq.membership import standing_rows
from streaming.groups.rocketmq.round import close_rocketmq_group, judge_rocketmq_again, judge_rocketmq_round
from streaming.groups.rows import LOG, ROCKETMQ, MemberRow, Rows
from streaming.groups.seen.commits import windows_of
from streaming.groups.seen.take_in import take_membership
from streaming.groups.state import CountSeen, GroupState, RacksSeen, TopicState
from streaming.records import (
    CommitWindow,
    Compacted,
    GroupInput,
    GroupObservation,
    MembershipRecord,
    MembershipTombstone,
    RocketMQObservation,
    Seen,
    UnreadableMembership,
    UnreadableModern,
    in_order,
    merge_windows,
)
from streaming.times import DAY_MS, Shift, day_of, read_clock

# A gap between a group's rounds counts for at most this many of its usual steps. In a longer gap, as while its
# coordinator is down, the group's state is unknown. A gap between rounds as such has the same limit, in intervals.
_COUNTED_STEPS = 3


def advance(
    state: GroupState | None, group: str, inputs: list[GroupInput], config: GroupConfig
) -> tuple[GroupState | None, Rows]:
    """Advance one group.

    Args:
        state: The group's state; None for an unknown group. It is modified: decode it again to advance from the same
            state twice.
        group: Group id.
        inputs: Its events, in any order: they are sorted into the order of the log and the rounds first.
        config: Settings.

    Returns:
        The new state, None when there is nothing left to keep (the group is gone), and the rows.
    """
    context = Context(group, config, Rows(), LOG if state is None else state.source)
    for item in in_order(inputs):
        if state is None:
            state = GroupState()
        if isinstance(item, CommitWindow):
            _fold(state, item)
        elif isinstance(item, GroupObservation):
            _take_in(state)
            state = _with_source(state, LOG if item.seen is None else item.seen.source)
            context.source = state.source
            compaction.leave(state, item.log_position)
            if item.gone is not None:
                cost.close_cost(state, context.rows)
                compacted_until = state.compacted_until
                if not state.is_void():
                    _close_group(state, item, context)
                state = GroupState(compacted_until=compacted_until) if compacted_until >= 0 else None
            elif compaction.is_compacted(state, item.log_position):
                cost.close_cost(state, context.rows)
                _pass_round(state, item, context)
            else:
                if item.seen is not None:
                    _take_look(state, item, item.seen, context)
                _judge_round(state, item, context)
        elif isinstance(item, MembershipRecord):
            _take_in(state)
            cost.close_cost(state, context.rows, following=item)
            compaction.leave(state, item.record)
            churn.decide(state, item, context)
        elif isinstance(item, MembershipTombstone):
            _take_in(state)
            cost.close_cost(state, context.rows)
            compaction.leave(state, item.record)
            churn.end_membership(state, item, context)
        elif isinstance(item, UnreadableMembership):
            if state.classic.unreadable < 0:
                state.classic.unreadable = item.record
        elif isinstance(item, UnreadableModern):
            modern.pass_over(state, item)
        elif isinstance(item, Compacted):
            compaction.take_in(state, item)
        elif isinstance(item, RocketMQObservation):
            state = _take_rocketmq_round(state, item, context)
        else:
            modern.follow(state, item, context)
    if state is not None and state.is_void() and not compaction.goes_on_behind(state, inputs):
        state = None
    return state, context.rows


def _with_source(state: GroupState, source: str) -> GroupState:
    """The state, or a new one if the group was read from another source so far: its numbers mean something else."""
    if source == state.source:
        return state
    known_nothing = state.is_void() and state.compacted_until < 0
    if not known_nothing:
        state = GroupState()
    state.source = source
    return state


def _take_look(state: GroupState, observation: GroupObservation, seen: Seen, context: Context) -> None:
    """Process what a round saw of a group whose log is not read."""
    take_membership(state, observation, seen, context)
    if seen.commits is not None:
        for windows in windows_of(state, observation, seen.commits):
            for window in windows:
                _fold(state, window)
            _take_in(state)


def _fold(state: GroupState, window: CommitWindow) -> None:
    of_topic = state.windows.setdefault(window.topic, {})
    earlier = of_topic.get(window.partition)
    of_topic[window.partition] = window if earlier is None else merge_windows(earlier, window)


def _take_in(state: GroupState) -> None:
    """Process the commits merged since the last boundary."""
    departures.note_commits(state)
    for topic, windows in state.windows.items():
        partitions = state.partitions.get(topic, {})
        seen = state.topics.get(topic)
        topic_id = seen.topic_id if seen is not None else None
        for partition, window in windows.items():
            known = partitions.get(partition)
            if known is None:
                if not (window.commits or window.unreadable):
                    continue  # a tombstone for a commit that was never seen
                known = partitions[partition] = PartitionState()
            cost.commit_after_rebalance(state, window)
            lag.absorb(known, window, topic_id)
        if partitions:
            state.partitions[topic] = partitions
    state.windows = {}


def _judge_round(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Judge one round; the state must include exactly the log records below its position."""
    passed, rounds = _take_time(state, observation)
    churn.note_round(state, observation)
    departures.note_round(state, observation)
    _see_topics(state, observation, context.config)
    cost.close_cost(state, context.rows, observation)
    if _take_configuration(state, observation):
        judge_again(state)
        judge_modern_again(state, observation, context)
    write_modern_members(state, context)
    if was_met_empty(state):
        close_modern_members(state, observation.log_position, observation.time, context)
    write_modern_verdicts(state, observation, context)
    write_classic_verdicts(state, observation, context)
    if _repeats_members(state, observation, context):
        standing = standing_members if state.modern.key_type is None else standing_modern_members
        _repeat_members(standing(state, context), observation, context)
    note_commits(state, observation)
    before = len(context.rows.lag)
    totals = lag_rows(state, observation, context, passed, rounds)
    offset_events.note(state, state.clock.now, context.rows.lag[before:])
    write_health(state, observation, context, totals)


def _repeats_members(state: GroupState, observation: GroupObservation | RocketMQObservation, context: Context) -> bool:
    """Whether the group's own day has changed since the round before: each has its midnight at another moment."""
    midnight = crc32(context.group.encode()) % DAY_MS
    return state.round_opened >= 0 and day_of(state.round_opened + midnight) != day_of(observation.time + midnight)


def _repeat_members(
    rows: list[MemberRow], observation: GroupObservation | RocketMQObservation, context: Context
) -> None:
    """Write the rows of the living members once more: so the present always lies in the last days."""
    day = day_of(observation.time)
    context.rows.members.extend(msgspec.structs.replace(row, event_date=day, repeat=observation.round) for row in rows)


def _take_configuration(state: GroupState, observation: GroupObservation | RocketMQObservation) -> bool:
    """Take in what the settings say of the group; whether that differs from what they said at the round before."""
    now = observation.configured.says() if observation.configured is not None else None
    before, state.configured = state.configured, now
    return before != now


def _take_rocketmq_round(state: GroupState, seen: RocketMQObservation, context: Context) -> GroupState | None:
    """Judge what a round saw of a RocketMQ group; None when the group is gone."""
    state = _with_source(state, ROCKETMQ)
    context.source = state.source
    passed, rounds = _take_time(state, seen)
    if seen.gone is None:
        if _take_configuration(state, seen):
            judge_rocketmq_again(state)
        repeats = _repeats_members(state, seen, context)
        judge_rocketmq_round(state, seen, context, passed, rounds)
        if repeats and state.rocketmq is not None and state.classic.current is not None:
            rows = standing_rows(state.classic.current.record, state.rocketmq.incarnation, context)
            _repeat_members(rows, seen, context)
        return state
    if state.rocketmq is not None:
        close_rocketmq_group(state, seen, context)
    return None


def _pass_round(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Handle a round inside a compacted stretch of the log: only verdicts on the remaining decisions are written."""
    _take_time(state, observation)
    _see_topics(state, observation, context.config)
    write_classic_verdicts(state, observation, context)


def _close_group(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Write the closing rows of a group that is no longer listed by the brokers, or no longer watched."""
    _take_time(state, observation)
    write_classic_verdicts(state, observation, context, last=True)
    close_members(state, observation.log_position, observation.time, context)
    write_modern_members(state, context)
    write_modern_verdicts(state, observation, context)
    close_modern_members(state, observation.log_position, observation.time, context)
    for topic, partitions in sorted(state.partitions.items()):
        for partition, known in sorted(partitions.items()):
            if known.row is not None or known.commits:
                end_partition(state, known, observation, context, topic, partition, subscribed=True)
    end_health(state, observation, context)


def _see_topics(state: GroupState, observation: GroupObservation, config: GroupConfig) -> None:
    """Keep the partition counts and racks that this round shows, and drop those too old for any verdict."""
    now = state.clock.now
    horizon = now - 2 * config.metadata_grace_ms
    for seen in observation.topics:
        count = seen.partitions or 0
        known = state.topics.get(seen.topic)
        if known is None:
            known = TopicState([CountSeen(count, now, now)], now, seen.topic_id)
            state.topics[seen.topic] = known
            see_racks(known, seen, now, horizon)
            continue
        see_racks(known, seen, now, horizon)
        newest = known.counts[-1]
        if (known.topic_id and seen.topic_id and known.topic_id != seen.topic_id) or count < newest.count:
            # Deleted and created again under the same name: the earlier offsets are another topic's.
            known.renewed = now
            void_topic(state.load, seen.topic)
            forget_stops(state.stopped, seen.topic)
            for partition in state.partitions.get(seen.topic, {}).values():
                partition.forget_rounds()
                oldest_unread.forget(partition)
        if offset_events.was_recreated(known, seen):
            offset_events.note_recreation(known, state.partitions.get(seen.topic, {}).values(), now)
        known.topic_id = seen.topic_id or known.topic_id
        if newest.count == count:
            newest.last = now
            continue
        known.counts.append(CountSeen(count, now, now))
        # Keep the newest one before the horizon: it was still in force at the horizon.
        while len(known.counts) > 2 and known.counts[1].last < horizon:
            del known.counts[0]
    shown = {t.topic for t in observation.topics}
    for topic in [t for t, known in state.topics.items() if t not in shown and known.counts[-1].last < horizon]:
        del state.topics[topic]
        for partition in state.partitions.get(topic, {}).values():
            oldest_unread.forget(partition)  # what comes back under this name may be another topic


def _take_time(state: GroupState, observation: GroupObservation | RocketMQObservation) -> tuple[int, int]:
    """Advance the group's clocks to a round; call this before processing anything else of the round.

    Returns:
        Elapsed time since the group's previous round, without the time in which it was not seen, ms; and how many
        rounds this one stands for: more than one for an idle group, which rounds skipped while nothing moved.
    """
    shift = read_clock(state.clock, observation.time, observation.elapsed_time)
    if shift is not None:
        _move(state, shift, (state.clock.ahead or 0) + observation.elapsed_time)
    gap = observation.elapsed_time - state.elapsed if 0 <= state.elapsed <= observation.elapsed_time else 0
    seen = gap if state.rested or not state.step else min(gap, _COUNTED_STEPS * state.step)
    if gap and not state.rested:
        # (Limited in the same way: with two gaps in a row, the first is not how far rounds are apart.)
        state.step = gap if not state.step else min(gap, _COUNTED_STEPS * state.step)
    state.elapsed, state.rested = observation.elapsed_time, observation.idle
    return seen, WINDOW if observation.idle else 1


def _move(state: GroupState, shift: Shift, present: int) -> None:
    """Shift the round times in the state after a clock jump. Record times stay: they are the brokers'.

    Args:
        state: The group's state.
        shift: The jump.
        present: Time of the newest round by the clock that is believed now, ms. (While the newest round has jumped once
            more, `RoundClock.now` still follows the clock before.)
    """

    def moved(time: int) -> int:
        return time + shift.by if time >= max(shift.since, 0) else time

    for topic in state.topics.values():
        topic.since, topic.renewed, topic.recreated = moved(topic.since), moved(topic.renewed), moved(topic.recreated)
        entries: list[CountSeen | RacksSeen] = [*topic.counts, *topic.racks]
        for seen in entries:
            seen.first, seen.last = moved(seen.first), moved(seen.last)
    state.classic.waiting = [
        msgspec.structs.replace(decision, after_round=moved(decision.after_round)) for decision in state.classic.waiting
    ]
    if state.offset_events is not None:
        state.offset_events.deleted_at = moved(state.offset_events.deleted_at)
    if shift.since <= 0:
        move_unread(state, shift.by)
    move_starts(state, shift, present)
