"""From what a round saw of a RocketMQ cluster to the round's events, and what the next round must know. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import msgspec

from streaming.config import Filters
from streaming.events import EVENTS_VERSION, Event, RocketMQGroupEvent
from streaming.probe.idle import Reporting, Rest, is_settled, reporting, rest_after, rested
from streaming.records import (
    LONGEST_INTERVAL_MS,
    SILENT_INTERVALS,
    Configured,
    RocketMQObservation,
    RoundClosed,
)
from streaming.times import DAY_MS

UNTOLD: Final = (-1, -1, None)
"""Round, time and end of an observation that no round has told yet."""


@dataclass(frozen=True, slots=True)
class RocketMQLook:
    """What a round saw.

    Attributes:
        groups: Watched groups, and those that the caller knows; those whose turn it was not are missing.
        there: Groups of which a broker has a client, an offset or a setting.
        waiting: Groups that are known to be there and were not looked at, because it was not their turn.
        brokers: Names of the brokers that name servers know.
        whole: Every name server and every broker has answered: what nobody told is not there.
    """

    groups: Mapping[str, RocketMQObservation]
    there: frozenset[str]
    waiting: frozenset[str]
    brokers: frozenset[str]
    whole: bool


_BROKER_KNOWN_MS: Final = DAY_MS
"""A broker that no name server lists may come back with its groups; after a day it counts as taken away.

Counted in elapsed time, which no clock jump shortens, and kept in the closing record: no event names a missing broker,
and a day counted from each restart of the probe might never end.
"""

_ENCODER = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class RocketMQMemory:
    """What a probe knows from its last closed round.

    Attributes:
        groups: Groups that were there.
        rest: How long groups without members have rested.
        brokers: For how long no name server has listed a broker, in elapsed time, ms, by its name.
    """

    groups: frozenset[str] = frozenset()
    rest: Rest = field(default_factory=Rest)
    brokers: Mapping[str, int] = field(default_factory=dict)

    @property
    def quiet(self) -> frozenset[str]:
        """Groups without members of which nothing has changed for long."""
        return frozenset(group for group in self.groups if is_settled(group, self.rest))

    def untold(self, events: Iterable[RocketMQGroupEvent]) -> int:
        """Groups that are there but have no event in the round, because they are idle or were not asked."""
        return len(self.groups - {event.key for event in events})


_NOTHING: Final = dict[str, Configured]().get


def round_of_groups(
    cluster: str,
    number: int,
    time: int,
    look: RocketMQLook,
    memory: RocketMQMemory,
    filters: Filters,
    period_ms: int,
    interval_ms: int,
    configured: Callable[[str], Configured | None] = _NOTHING,
) -> tuple[list[RocketMQGroupEvent], RocketMQMemory]:
    """The events of one round, those of groups that are gone or idle first; and the memory for the next.

    A group is gone when the filters exclude it now, or when every server has answered, no broker is missing, and none
    has a trace of it.

    Args:
        cluster: Configured name.
        number: The round's number.
        time: The round's time, ms.
        look: What the round saw.
        memory: From the closed round before.
        filters: What is watched.
        period_ms: An idle group has one event within it.
        interval_ms: The probe's interval.
        configured: What the settings say of a group.
    """
    brokers = _brokers(memory, look.brokers, time, interval_ms)
    whole = look.whole and look.brokers == brokers.keys()
    # What never was there in a closed round, and is not now, is only a name: of a topic of retries for example.
    nothing = look.groups.keys() - look.there
    gone = dict.fromkeys(nothing & memory.groups if whole else (), "deleted")
    gone |= {group: "filtered" for group in memory.groups if not filters.watches_group(group)}
    there = {
        group: seen
        for group, seen in look.groups.items()
        if group not in gone and (group in look.there or group in memory.groups)
    }
    waiting = look.waiting - gone.keys()
    rest = _rest(memory.rest, there, waiting, time)
    resting: list[RocketMQGroupEvent] = []
    others: list[RocketMQGroupEvent] = []
    for group in sorted(there.keys() | gone.keys()):
        if group in gone:
            saw = RocketMQObservation(number, time, gone[group])
            resting.append(RocketMQGroupEvent(EVENTS_VERSION, cluster, group, saw))
            continue
        how = reporting(group, memory.rest, rest, period_ms)
        if how is Reporting.NOT_AT_ALL:
            continue
        idle = how is Reporting.AS_IDLE
        since, until = (None if idle else rested(group, memory.rest)) or (-1, -1)
        saw = msgspec.structs.replace(
            there[group],
            round=number,
            time=time,
            idle=idle,
            rested_since=since,
            rested_until=until,
            configured=configured(group),
        )
        event = RocketMQGroupEvent(EVENTS_VERSION, cluster, group, saw)
        (resting if idle else others).append(event)
    return resting + others, RocketMQMemory(frozenset(there.keys() | waiting), rest, brokers)


def _brokers(memory: RocketMQMemory, listed: Iterable[str], time: int, interval_ms: int) -> dict[str, int]:
    """For how long the brokers of the last day have been missing, ms of elapsed time; 0 for those that are listed."""
    before = time if memory.rest.time < 0 else memory.rest.time
    step = max(0, min(time - before, SILENT_INTERVALS * min(interval_ms, LONGEST_INTERVAL_MS)))
    known = {name: missing + step for name, missing in memory.brokers.items() if missing + step < _BROKER_KNOWN_MS}
    return known | dict.fromkeys(listed, 0)


def _rest(before: Rest, there: Mapping[str, RocketMQObservation], waiting: Iterable[str], time: int) -> Rest:
    """How long groups without members have looked the same; those that were not looked at rest on."""
    marks = {
        group: hash(_ENCODER.encode((seen.brokers, seen.topics))) for group, seen in there.items() if not seen.members
    }
    marks |= {group: before.marks[group] for group in waiting if group in before.marks}
    after = rest_after(before, marks, time)
    # It is not news for a group that was not looked at that it has rested a round more.
    rounds = {group: before.rounds[group] if group in set(waiting) else n for group, n in after.rounds.items()}
    return replace(after, rounds=rounds)


def recall(closed: RoundClosed, events: Iterable[Event], resting: Iterable[Event]) -> RocketMQMemory:
    """The memory of a closed round from its records; how long groups have rested is not recorded.

    Args:
        closed: The closing record.
        events: All events of its round.
        resting: Events of idle groups, and of groups that are gone, from the rounds before; the oldest first.
    """
    groups: set[str] = set()
    for event in chain(resting, events):
        if event.saw.gone is not None:
            groups.discard(event.key)
        elif isinstance(event, RocketMQGroupEvent):
            groups.add(event.key)
    return RocketMQMemory(frozenset(groups), Rest(closed.time), closed.known_brokers or {})
