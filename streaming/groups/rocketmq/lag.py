"""Lag of a RocketMQ group: queues as partitions by place, committed offsets as a round saw them.

The room of lag judges by rounds and commits. A round sees how far an offset has come, not how often it was committed:
one that has moved since the round before counts as one commit at this round. Brokers are asked for committed offsets
before they are asked for the ends of the queues, so lag is never negative.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Final

import msgspec

from streaming.groups.classic.membership import subscribed_topics
from streaming.groups.context import Context
from streaming.groups.lag import offset_events
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.partitions import NO_COMMIT
from streaming.groups.lag.rows import lag_rows
from streaming.groups.lag.state import PartitionState
from streaming.groups.lag.totals import Totals
from streaming.groups.rocketmq.gone import gone, named_places, unnamed_since
from streaming.groups.rocketmq.places import named, place_of, split
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.views import Views
from streaming.groups.rows import HotPartition, LagRow
from streaming.groups.seen.commits import window_seen
from streaming.groups.state import GroupState
from streaming.records import (
    BROADCASTING,
    OK,
    GroupObservation,
    RocketMQObservation,
    TopicObservation,
)

KEPT_BY_MEMBERS: Final = "kept_by_members"
"""Why the lag of a BROADCASTING group is not known."""

COMMITS_NOT_TOLD: Final = "commits_not_told"
"""Why the lag of queues is not known whose broker told their ends and not the committed offsets: those of an earlier
round against the ends of this one would be a lag that need not exist."""


def as_any_group(views: Views, members: int) -> GroupObservation:
    """The round as an observation of any group, its topics by place."""
    seen = views.observation
    return GroupObservation(
        round=seen.round,
        time=seen.time,
        log_partition=-1,
        log_position=0,
        state="Stable" if members else "Empty",
        protocol_type="rocketmq",
        group_type="rocketmq",
        gone=seen.gone,
        held_since=None,
        topics=tuple(_topics(views)),
        idle=seen.idle,
        elapsed=seen.elapsed,
        closed=seen.closed,
        rested_since=seen.rested_since,
        rested_until=seen.rested_until,
        configured=seen.configured,
    )


def untold(views: Views) -> frozenset[str]:
    """Places of which the round has no committed offsets, though the group does not keep them itself."""
    if views.message_model == BROADCASTING:
        return frozenset()
    return frozenset(
        place_of(topic, queues.broker)
        for topic, seen in views.topics.items()
        for queues in seen.queues
        if queues.answer == OK and queues.committed is None
    )


def _topics(views: Views) -> Iterable[TopicObservation]:
    without = untold(views)
    for topic, seen in sorted(views.topics.items()):
        for queues in seen.queues:
            if queues.answer == OK and queues.max and place_of(topic, queues.broker) not in without:
                yield TopicObservation(
                    topic=place_of(topic, queues.broker),
                    topic_id=None,
                    partitions=len(queues.max),
                    high_watermarks=_packed(queues.max),
                    last_stable_offsets=_packed(queues.max),
                    log_start_offsets=_packed(queues.min),
                )


def take_commits(state: GroupState, mine: RocketMQState, views: Views) -> None:
    """Take in the committed offsets of a round: those that have moved, appeared or gone since the round before.

    Nobody tells of offsets that have gone with their topic or broker, nor of those of a silent one. So they stay until
    no server has named the topic on that broker for a day.
    """
    seen = views.observation
    elapsed = seen.elapsed_time
    unnamed = set[str]() if "topics" in seen.cut else state.partitions.keys() - named_places(seen)
    mine.unnamed_places = unnamed_since(mine.unnamed_places, unnamed, elapsed)
    for place in gone(mine.unnamed_places, elapsed):
        for known in state.partitions[place].values():
            known.committed = -1
            known.forget_rounds()
    if views.message_model == BROADCASTING:
        return  # members keep their offsets themselves
    for topic, of_topic in views.topics.items():
        for queues in of_topic.queues:
            if queues.committed is not None:
                _take(state, seen, place_of(topic, queues.broker), queues.committed)


def _take(state: GroupState, seen: RocketMQObservation, place: str, committed: tuple[int, ...]) -> None:
    partitions = state.partitions.setdefault(place, {})
    for number, offset in enumerate(committed):
        known = partitions.get(number)
        before = known.committed if known is not None else -1
        if offset == before:
            continue
        if known is None:
            known = partitions[number] = PartitionState()
        lag.absorb(known, window_seen(seen.round, place, number, offset), None)
    if not partitions:
        del state.partitions[place]


def write_lag(
    state: GroupState,
    observation: GroupObservation,
    context: Context,
    passed: int,
    rounds: int,
    views: Views,
) -> Totals:
    """Judge the lag of every queue at a round, and write rows of those that have changed.

    A queue without a message has lag 0 also without a commit, as most topics of retries have none. Nobody can tell
    for one with messages and without a commit: where the group begins is for its member to decide when it takes the
    queue (`consumeFromWhere`), and RocketMQ itself says both: `mqadmin consumerProgress` (208) counts from 0, the
    broker's metrics count everything as consumed (`ConsumerLagCalculator`).

    Args:
        state: The group's state, including this round.
        observation: The round as any group's.
        context: Rows are written here.
        passed: Elapsed time since the group's previous round, ms.
        rounds: How many rounds this one stands for.
        views: The round.
    """
    begin = len(context.rows.lag)
    broadcasts, without = views.message_model == BROADCASTING, untold(views)
    totals = lag_rows(state, observation, context, passed, rounds, empty_counts=not broadcasts)
    offset_events.note(state, state.clock.now, context.rows.lag[begin:])
    context.rows.lag[begin:] = [
        msgspec.structs.replace(as_queue(row), reason=COMMITS_NOT_TOLD)
        if row.topic in without and not row.ended
        else as_queue(row)
        for row in context.rows.lag[begin:]
    ]
    if broadcasts:
        context.rows.lag[begin:] = [
            msgspec.structs.replace(row, reason=KEPT_BY_MEMBERS) if row.reason == NO_COMMIT else row
            for row in context.rows.lag[begin:]
        ]
    record = state.live_record()
    subscribed = subscribed_topics(record) if record is not None else None
    counted = state.partitions.keys() if subscribed is None else state.partitions.keys() & subscribed
    totals.topics = len({split(place)[0] for place in counted})
    return totals


def as_queue(row: LagRow) -> LagRow:
    """A row of `lag` by place as one of a queue."""
    topic, broker = split(row.topic)
    return msgspec.structs.replace(row, topic=topic, broker=broker, commits=None)


def as_queues(hot: tuple[HotPartition, ...] | None) -> tuple[HotPartition, ...] | None:
    """Hot partitions by place, with places as text."""
    return None if hot is None else tuple(msgspec.structs.replace(one, topic=named(one.topic)) for one in hot)


def _packed(offsets: tuple[int, ...]) -> bytes:
    packed = array("q", offsets)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
