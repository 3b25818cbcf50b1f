"""The core's one function: it takes a group's state and its next events, and returns the new state and rows.

    advance(state, group, inputs, config) -> (state, rows)

The result does not depend on how the events were split into batches: commits are processed only at boundaries that
lie in the events themselves (a round, a membership record). Between boundaries they are only merged, and merging is
associative.

A round takes in the topics that it shows, and then writes the verdicts that are now possible, lag rows and the health
row; the group's last round writes its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from zlib import crc32

import msgspec

from streaming.groups.boundaries import (
    close_cost,
    fold,
    goes_on_behind,
    leave_compacted,
    note_compacted,
    take_in_commits,
)
from streaming.groups.classic.kind import CLASSIC
from streaming.groups.classic.leader_metadata import see_racks
from streaming.groups.connect.kind import CONNECT_GROUPS
from streaming.groups.context import Context, GroupConfig
from streaming.groups.health.activity import move_starts, note_commits
from streaming.groups.health.group_health import end_health, write_health
from streaming.groups.kind import Kind, Ownership
from streaming.groups.lag import oldest_unread
from streaming.groups.lag.rows import LagRound, end_partition, move_unread
from streaming.groups.lag.totals import note_recreation, was_recreated
from streaming.groups.load.rates import void_topic
from streaming.groups.modern.kind import MODERN_GROUPS
from streaming.groups.rocketmq.kind import ROCKETMQ_KIND
from streaming.groups.rows import MemberRow, Rows
from streaming.groups.seen.take_in import process_seen
from streaming.groups.share.deliveries import note_deliveries
from streaming.groups.state import CountSeen, GroupState, RacksSeen, TopicState
from streaming.records import (
    LOG,
    AnyObservation,
    CommitWindow,
    Compacted,
    GroupInput,
    GroupObservation,
    RocketMQObservation,
    in_order,
)
from streaming.times import DAY_MS, Shift, day_of, read_clock

ROUNDS: Final[Mapping[type, tuple[Kind, ...]]] = {
    GroupObservation: (
        MODERN_GROUPS,
        CONNECT_GROUPS,
        CLASSIC,
    ),
    RocketMQObservation: (ROCKETMQ_KIND,),
}
"""The kinds of groups that each type of round shows: a group may become another of them."""

RECORDS: Final[Mapping[type, Callable[[GroupState, Any, Context], None]]] = {
    CommitWindow: fold,
    Compacted: note_compacted,
    **{record: process for kinds in ROUNDS.values() for kind in kinds for record, process in kind.records.items()},
}
"""How each type of record is processed."""

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
        state = state or GroupState()
        if isinstance(item, AnyObservation):
            state = _process_round(state, item, context)
        else:
            RECORDS[type(item)](state, item, context)
    if state is not None and state.is_void() and not goes_on_behind(state, inputs):
        state = None
    return state, context.rows


def _process_round(state: GroupState, item: AnyObservation, context: Context) -> GroupState | None:
    """Process a round; None when the group is gone and nothing is left to keep."""
    take_in_commits(state)
    state = _with_source(state, item.source)
    context.source = state.source
    leave_compacted(state, item.position)
    if item.gone is not None:
        close_cost(state, context.rows)
        compacted_until = state.compacted_until
        if not state.is_void():
            _close_group(state, item, context)
        if compacted_until >= 0:
            return GroupState(compacted_until=compacted_until)
        return None
    if isinstance(item, GroupObservation) and state.is_compacted(item.position):
        close_cost(state, context.rows)
        _pass_round(state, item, context)
    else:
        if isinstance(item, GroupObservation) and item.seen is not None:
            process_seen(state, item, item.seen, context)
        _judge_round(state, item, context)
    return state


def _with_source(state: GroupState, source: str) -> GroupState:
    """The state, or a new one if the group was read from another source so far: its numbers mean something else."""
    if source == state.source:
        return state
    known_nothing = state.is_void() and state.compacted_until < 0
    if not known_nothing:
        state = GroupState()
    state.source = source
    return state


def _judge_round(state: GroupState, item: AnyObservation, context: Context) -> None:
    """Judge one round; the state must include exactly the log records below its position."""
    passed, rounds = _advance_clock(state, item)
    kinds = ROUNDS[type(item)]
    observation = kinds[0].read(state, item, context)
    for kind in kinds:
        kind.note_round(state, observation, context)
    live = _live(kinds, state)
    if live.follows_topics:
        _see_topics(state, observation, context.config)
    close_cost(state, context.rows, at_round=True)
    is_configured_anew = _note_configuration(state, observation)
    if is_configured_anew:
        live.judge_again(state, observation, context)
    for kind in kinds:
        kind.write_verdicts(state, observation, context)
    if _is_another_day(state, context):
        _repeat_members(state, live.standing_members(state, context), observation, context)
    owners, rules = _owners(state, live), live.lag_rules(observation)
    note_deliveries(state, observation, context.config)
    note_commits(state, observation, owners)
    totals = LagRound(state, observation, context, passed, rounds, owners, rules).measure()
    write_health(state, observation, context, totals, live, owners, rules)


def _live(kinds: tuple[Kind, ...], state: GroupState) -> Kind:
    """The kind of group that it is now: the first that says so, or the last."""
    for kind in kinds[:-1]:
        if kind.lives(state):
            return kind
    return kinds[-1]


def _owners(state: GroupState, kind: Kind) -> Ownership:
    """Who owns what; nobody knows it while a record of the membership cannot be decoded."""
    owners = kind.owners(state)
    if state.members_known:
        return owners
    return Ownership([of._replace(partitions=None) for of in owners.members])


def _is_another_day(state: GroupState, context: Context) -> bool:
    """Whether the group's own day has changed since the round before, or there was none.

    Each group has its midnight at another moment. A round whose time is not believed yet changes no day.
    """
    midnight = crc32(context.group.encode()) % DAY_MS
    return state.round_opened < 0 or day_of(state.round_opened + midnight) != day_of(state.clock.now + midnight)


def _repeat_members(state: GroupState, rows: list[MemberRow], observation: GroupObservation, context: Context) -> None:
    """Write the rows of living members once more, unless they are of this day: the present lies in the last days.

    A group that is met may have decided months ago, so its rows are as old.
    """
    day = day_of(state.clock.now)
    context.rows.members.extend(
        msgspec.structs.replace(row, event_date=day, repeat=observation.round) for row in rows if row.event_date != day
    )


def _note_configuration(state: GroupState, observation: GroupObservation) -> bool:
    """Note what the settings say of the group; whether that differs from what they said at the round before."""
    now = observation.configured.says() if observation.configured is not None else None
    before, state.configured = state.configured, now
    return before != now


def _pass_round(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Handle a round inside a compacted stretch of the log: only verdicts on the remaining decisions are written."""
    _advance_clock(state, observation)
    _see_topics(state, observation, context.config)
    for kind in (CONNECT_GROUPS, CLASSIC):
        kind.write_verdicts(state, observation, context)


def _close_group(state: GroupState, item: AnyObservation, context: Context) -> None:
    """Write the closing rows of a group that is no longer listed by the brokers, or no longer watched."""
    _advance_clock(state, item)
    kinds = ROUNDS[type(item)]
    observation = kinds[0].read(state, item, context)
    for kind in kinds:
        kind.end(state, observation, context)
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
            known = state.topics[seen.topic] = TopicState([CountSeen(count, now, now)], now, seen.topic_id)
        see_racks(known, seen, now, horizon)
        newest = known.counts[-1]
        if (known.topic_id and seen.topic_id and known.topic_id != seen.topic_id) or count < newest.count:
            # Deleted and created again under the same name: the earlier offsets are another topic's.
            known.renewed = now
            void_topic(state.load, seen.topic)
            for partition in state.partitions.get(seen.topic, {}).values():
                partition.forget_rounds()
                oldest_unread.forget(partition)
        if was_recreated(known, seen):
            note_recreation(known, state.partitions.get(seen.topic, {}).values(), now)
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


def _advance_clock(state: GroupState, observation: AnyObservation) -> tuple[int, int]:
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
        # Limited in the same way: with two gaps in a row, the first is not how far rounds are apart.
        state.step = gap if not state.step else min(gap, _COUNTED_STEPS * state.step)
    rounds = max(1, gap // state.step) if state.rested and state.step else 1
    state.elapsed, state.rested = observation.elapsed_time, observation.idle
    return seen, rounds


def _move(state: GroupState, shift: Shift, present: int) -> None:
    """Shift the round times in the state after a clock jump. Record times stay: they are the brokers'.

    Args:
        state: The group's state.
        shift: The jump.
        present: Time of the newest round by the clock that is believed now, ms. (While the newest round has jumped once
            more, `RoundClock.now` still follows the clock before.)
    """

    def moved(time: int) -> int:
        if time >= max(shift.since, 0):
            return time + shift.by
        return time

    for topic in state.topics.values():
        topic.since, topic.renewed, topic.recreated = moved(topic.since), moved(topic.renewed), moved(topic.recreated)
        entries: list[CountSeen | RacksSeen] = [*topic.counts, *topic.racks]
        for seen in entries:
            seen.first, seen.last = moved(seen.first), moved(seen.last)
    for kept in state.kinds:
        kept.move(moved)
    if state.deleted is not None:
        state.deleted.time = moved(state.deleted.time)
    if shift.since <= 0:
        move_unread(state, shift.by)
    move_starts(state, shift, present)
