"""Lag of a RocketMQ group: queues as partitions by unit, committed offsets as a round saw them.

The room of lag judges by rounds and commits. A round sees how far an offset has come, not how often it was committed:
one that has moved since the round before counts as one commit at this round. Brokers are asked for committed offsets
before they are asked for the ends of the queues, so lag is never negative.

What no server has named for a day counts as gone; silence is no evidence.

A server names whatever it tells of, whether or not what it names answers. The probe counts brokers by the same rule
(`known_brokers`), so that a group's members and queues go when it would let go of the group.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping
from typing import Final

from streaming.groups.context import Context
from streaming.groups.kind import LagRules
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.views import Views
from streaming.groups.rows import unit_of
from streaming.groups.seen.take_in import process_commits
from streaming.groups.state import GroupState
from streaming.records import (
    BROADCASTING,
    OK,
    GroupObservation,
    RocketMQObservation,
    SeenCommits,
    TopicObservation,
)
from streaming.times import DAY_MS

_KNOWN_MS: Final = DAY_MS
"""A broker, or all name servers that know it, may be down for hours and come back with clients, topics and offsets."""


def named_brokers(seen: RocketMQObservation) -> set[str]:
    """Brokers that any server names: those that were asked, and those of routes."""
    in_routes = {broker.name for topic in seen.topics for route in topic.routes for broker in route.brokers}
    return in_routes | {broker.name for broker in seen.brokers}


def named_units(seen: RocketMQObservation) -> set[str]:
    """Topics on brokers that any server names: those of routes, and those with queues."""
    units = set()
    for topic in seen.topics:
        units |= {unit_of(topic.topic, broker.name) for route in topic.routes for broker in route.brokers}
        units |= {unit_of(topic.topic, queues.broker) for queues in topic.queues}
    return units


def unnamed_since(before: Mapping[str, int], unnamed: Iterable[str], elapsed: int) -> dict[str, int]:
    """Elapsed time, ms, at the first of the rounds in a row that have not named something, by its name.

    Args:
        before: The same at the round before.
        unnamed: What this round does not name.
        elapsed: Elapsed time of this round, ms.
    """
    since = {name: before.get(name, elapsed) for name in sorted(unnamed)}
    return {name: first if 0 <= first <= elapsed else elapsed for name, first in since.items()}


def gone(unnamed: Mapping[str, int], elapsed: int) -> frozenset[str]:
    """What nobody has named for so long that it is gone."""
    return frozenset(name for name, first in unnamed.items() if elapsed - first >= _KNOWN_MS)


KEPT_BY_MEMBERS: Final = "kept_by_members"
"""Why the lag of a BROADCASTING group is not known."""

COMMITS_NOT_TOLD: Final = "commits_not_told"
"""Why the lag of queues is not known whose broker told their ends and not the committed offsets: those of an earlier
round against the ends of this one would be a lag that need not exist."""


class RocketMQRound(GroupObservation, frozen=True, kw_only=True):
    """A round as an observation of any group, its topics by unit, with what clients see of the group."""

    views: Views


def as_any_group(views: Views, members: int) -> RocketMQRound:
    """The round as an observation of any group."""
    seen = views.observation
    return RocketMQRound(
        views=views,
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


def _untold(views: Views) -> frozenset[str]:
    """Units whose committed offsets the round does not have, though the group does not keep them itself."""
    if views.message_model == BROADCASTING:
        return frozenset()
    return frozenset(
        unit_of(topic, queues.broker)
        for topic, seen in views.topics.items()
        for queues in seen.queues
        if queues.answer == OK and queues.committed is None
    )


def _topics(views: Views) -> Iterable[TopicObservation]:
    without = _untold(views)
    for topic, seen in sorted(views.topics.items()):
        for queues in seen.queues:
            if queues.answer == OK and queues.max and unit_of(topic, queues.broker) not in without:
                yield TopicObservation(
                    topic=unit_of(topic, queues.broker),
                    topic_id=None,
                    partitions=len(queues.max),
                    high_watermarks=_packed(queues.max),
                    last_stable_offsets=_packed(queues.max),
                    log_start_offsets=_packed(queues.min),
                )


def take_commits(state: GroupState, mine: RocketMQState, observation: RocketMQRound, context: Context) -> None:
    """Take in the committed offsets of a round: those that have moved, appeared or gone since the round before.

    Nobody tells of offsets that have gone with their topic or broker, nor of those of a silent one. So they stay until
    no server has named the topic on that broker for a day.
    """
    views = observation.views
    seen = views.observation
    unnamed = set[str]() if "topics" in seen.cut else state.partitions.keys() - named_units(seen)
    mine.unnamed_units = unnamed_since(mine.unnamed_units, unnamed, seen.elapsed_time)
    for unit in gone(mine.unnamed_units, seen.elapsed_time):
        for known in state.partitions[unit].values():
            known.committed = -1
            known.forget_rounds()
    if views.message_model == BROADCASTING:
        return  # members keep their offsets themselves
    offsets = {
        unit_of(topic, queues.broker): tuple(enumerate(queues.committed))
        for topic, of_topic in views.topics.items()
        for queues in of_topic.queues
        if queues.committed is not None
    }
    process_commits(state, observation, SeenCommits(whole=False, offsets=offsets), context)


def lag_rules(round_seen: RocketMQRound) -> LagRules:
    """How lag is judged.

    A queue without a message has lag 0 also without a commit, as most topics of retries have none. Nobody can tell
    for one with messages and without a commit: where the group begins is for its member to decide when it takes the
    queue (`consumeFromWhere`), and RocketMQ itself says both: `mqadmin consumerProgress` (208) counts from 0, the
    broker's metrics count everything as consumed (`ConsumerLagCalculator`).
    """
    broadcasts = round_seen.views.message_model == BROADCASTING
    return LagRules(
        empty_counts=not broadcasts,
        kept_by_members=KEPT_BY_MEMBERS if broadcasts else None,
        untold=dict.fromkeys(_untold(round_seen.views), COMMITS_NOT_TOLD),
    )


def _packed(offsets: tuple[int, ...]) -> bytes:
    packed = array("q", offsets)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
