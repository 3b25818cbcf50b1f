"""One round of one group: its lag rows, the verdicts that are now possible, its health row, and its end."""

from __future__ import annotations

from streaming.groups.classic.members import close_members
from streaming.groups.classic.seen_racks import see_racks
from streaming.groups.classic.verdicts import write_classic_verdicts
from streaming.groups.config import GroupConfig
from streaming.groups.context import Context
from streaming.groups.health.findings import findings_of
from streaming.groups.health.row import end_health, write_health
from streaming.groups.lag import offset_events
from streaming.groups.lag.rows import end_partition, lag_rows
from streaming.groups.lag.time_passed import take_time
from streaming.groups.modern.members import close_modern_members, write_modern_members
from streaming.groups.modern.standing import was_met_empty
from streaming.groups.modern.verdicts import write_modern_verdicts
from streaming.groups.state import GroupState
from streaming.groups.topics import CountSeen, TopicState
from streaming.records import GroupObservation

__all__ = ["close_group", "judge_round", "pass_round"]


def judge_round(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Judge one round; the state must include exactly the log records below its position."""
    passed, rounds = take_time(state, observation)
    _see_topics(state, observation, context.config)
    write_modern_members(state, context)
    if was_met_empty(state):
        close_modern_members(state, observation.log_position, observation.time, context)
    write_modern_verdicts(state, observation, context)
    write_classic_verdicts(state, observation, context)
    before = len(context.rows.lag)
    totals = lag_rows(state, observation, context, passed, rounds)
    offset_events.note(state, state.clock.now, context.rows.lag[before:])
    findings = findings_of(state, observation, context.config, totals.lost)
    write_health(state, observation, context, totals, findings)


def pass_round(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Handle a round inside a compacted stretch of the log: only verdicts on the remaining decisions are written."""
    take_time(state, observation)
    _see_topics(state, observation, context.config)
    write_classic_verdicts(state, observation, context)


def close_group(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Write the closing rows of a group that is no longer listed by the brokers, or no longer watched."""
    take_time(state, observation)
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
            for partition in state.partitions.get(seen.topic, {}).values():
                partition.forget_rounds()
        if offset_events.was_made_anew(known, seen):
            offset_events.make_anew(known, state.partitions.get(seen.topic, {}).values(), now)
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
