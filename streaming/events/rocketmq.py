"""The event of a RocketMQ group: everything that one round saw of it, in one record.

When it is written: at every round, as long as the group has members, or anything of it has changed in the last twelve
rounds; then, with `idle`, once per heartbeat. A probe that may not or could not ask something writes the event without
it: a missing answer is recorded as missing, never filled in from an earlier round. One event per group and round:
members, lists, routes and offsets mean something only together.

The parts are the core's own inputs (`streaming.records.rocketmq`); this module says which of them can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from streaming.records import (
    ANSWERS,
    OK,
    BrokerSeen,
    Configured,
    HeldQueue,
    MemberSeen,
    QueuesSeen,
    RouteSeen,
    SubscriptionSeen,
    TopicSeen,
)

MOST_BROKERS: Final = 1_000
"""Addresses that one event tells of. Larger clusters than a hundred brokers are not known."""

MOST_CLIENTS: Final = 20_000
"""Entries of one broker's list, and members. A group of that size would spend its day rebalancing."""

MOST_TOPICS: Final = 10_000
"""Topics of a group."""

MOST_QUEUES: Final = 65_536
"""Queues of a topic on one broker, by id. The tools' default is 8 or 16; a larger number is a mistake, or hostile, and
would make the core allocate for queues that cannot exist."""

MOST_QUEUES_OF_TOPIC: Final = 262_144
"""Queues of a topic in one route, and of a member over all topics."""

MOST_QUEUES_OF_ROUTES: Final = 2 * MOST_QUEUES_OF_TOPIC
"""Queues in all routes of an event: those of the largest topic as two name servers tell it. A route has only their
number, and the core makes a value of each: 100 MB for these, and gigabytes for a small event of many topics. The probe
leaves out topics that do not fit and names "topics" in `cut`."""

LONGEST_NAME: Final = 512
"""Characters of a topic's, a broker's or a name server's name. Brokers allow 127 for topics, 255 with older releases,
and a prefix."""

LONGEST_CLIENT: Final = 1_000
"""Characters of a client id. They are an address, an instance name and a unit; anybody may choose them."""

LONGEST_EXPRESSION: Final = 4_000
"""Characters of a subscription's filter; the probe cuts a longer one and names "subscriptions" in `cut`."""

LONGEST_REASON: Final = 200
"""Characters of any text that explains; the probe cuts a longer one."""

CUT: Final = frozenset({"brokers", "members", "queues", "subscriptions", "topics"})

_MAX_OFFSET = 2**63 - 1
_MAX_INT = 2**31 - 1
_LAST_TIMESTAMP_MS = 253_402_300_799_999

_Part = TypeVar("_Part")


class RocketMQGroupEvent(msgspec.Struct, frozen=True, tag="rocketmq_group", tag_field="type", omit_defaults=True):
    """One RocketMQ group in one round.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        round: The round's number.
        time: The round's time.
        group: Group name.
        gone: None while the group is there. In its last event "deleted" (no broker has a client, an offset or a setting
            of it, and all have answered) or "filtered" (the configuration excludes it now); then nothing else is known.
        name_servers: Every name server of the configuration, in its order.
        brokers: Every broker address that was asked, by name and id.
        members: Every client id on a broker's list, by id.
        topics: Its topics, by name.
        cut: Parts that are not whole, because they exceed a limit: of "brokers", "members", "queues", "subscriptions",
            "topics".
        idle: The group has no members and has not changed for a while: until it changes, it has events only once per
            heartbeat.
        rested: As in `GroupEvent`.
        configured: As in `GroupEvent`.
    """

    v: int
    cluster: str
    round: int
    time: int
    group: str
    gone: str | None = None
    name_servers: tuple[str, ...] = ()
    brokers: tuple[BrokerSeen, ...] = ()
    members: tuple[MemberSeen, ...] = ()
    topics: tuple[TopicSeen, ...] = ()
    cut: tuple[str, ...] = ()
    idle: bool = False
    rested: tuple[int, int] | None = None
    configured: Configured | None = None


def are_possible_brokers(known: Mapping[str, int]) -> bool:
    """Whether a closing record can name these brokers, and how long each has been missing, ms."""
    return len(known) <= MOST_BROKERS and all(
        0 < len(name) <= LONGEST_NAME and 0 <= missing <= _MAX_OFFSET for name, missing in known.items()
    )


def wrong_rocketmq_group(event: RocketMQGroupEvent) -> str | None:
    """Why no probe can have written this event; None if one can."""
    if not 0 <= event.round <= _MAX_OFFSET or not 0 <= event.time <= _LAST_TIMESTAMP_MS:
        return f"round {event.round} at {event.time}"
    if not 0 < len(event.group) <= LONGEST_NAME:
        return f"a group name of {len(event.group)} characters"
    if event.gone is not None:
        if not 0 < len(event.gone) <= LONGEST_REASON:
            return "a reason of impossible length"
        return "a group that is gone with members or topics" if event.members or event.topics else None
    if not CUT.issuperset(event.cut) or len(event.cut) > len(CUT):
        return "a part was cut that does not exist"
    if event.rested is not None and not all(0 <= time <= _LAST_TIMESTAMP_MS for time in event.rested):
        return "an impossible time of rest"
    return (
        _too_many("name servers", event.name_servers, MOST_BROKERS)
        or _too_many("brokers", event.brokers, MOST_BROKERS)
        or _too_many("members", event.members, MOST_CLIENTS)
        or _too_many("topics", event.topics, MOST_TOPICS)
        or _unnamed("name server", event.name_servers)
        or _twice("broker", [broker.address for broker in event.brokers])
        or _twice("member", [member.client_id for member in event.members])
        or _twice("topic", [topic.topic for topic in event.topics])
        or _first(_wrong_broker, event.brokers)
        or _first(_wrong_member, event.members)
        or _first(_wrong_topic, event.topics)
        or _too_many_routed(event.topics)
    )


def queues_in_routes(seen: TopicSeen) -> int:
    """Queues of a topic in all its routes together, as far as clients may read them or not."""
    return sum(broker.read for route in seen.routes for broker in route.brokers)


def _too_many_routed(topics: Iterable[TopicSeen]) -> str | None:
    total = sum(map(queues_in_routes, topics))
    if total <= MOST_QUEUES_OF_ROUTES:
        return None
    return f"{total:,} queues in routes; no event has more than {MOST_QUEUES_OF_ROUTES:,}"


def _first(wrong: Callable[[_Part], str | None], parts: Iterable[_Part]) -> str | None:
    return next((reason for part in parts if (reason := wrong(part)) is not None), None)


def _too_many(what: str, parts: Sequence[object], most: int) -> str | None:
    return f"{len(parts):,} {what}; no event has more than {most:,}" if len(parts) > most else None


def _twice(what: str, names: Sequence[str]) -> str | None:
    if len(set(names)) == len(names):
        return None
    return f"a {what} appears a second time"


def _unnamed(what: str, names: Iterable[str | None], longest: int = LONGEST_NAME) -> str | None:
    for name in names:
        if name is not None and not 0 < len(name) <= longest:
            return f"a {what} with a name of {len(name)} characters"
    return None


def _is_time(time: int) -> bool:
    return -1 <= time <= _LAST_TIMESTAMP_MS


def _wrong_broker(seen: BrokerSeen) -> str | None:
    if seen.answer not in ANSWERS or not 0 <= seen.broker_id <= _MAX_OFFSET:
        return "a broker with an impossible id or answer"
    if seen.clients and seen.answer != OK:
        return "clients of a broker that did not answer"
    texts = (seen.reason, seen.consume_type, seen.message_model, seen.consume_from, seen.version, seen.cluster)
    channels = seen.channels or ()
    wrong = (
        _unnamed("broker", (seen.name, seen.address))
        or _unnamed("text of a broker", texts)
        or _too_many("clients", seen.clients, MOST_CLIENTS)
        or _unnamed("client", seen.clients, LONGEST_CLIENT)
        or _too_many("channels", channels, MOST_CLIENTS)
        or _wrong_subscriptions(seen.subscriptions)
        or _too_many("request modes", seen.modes or (), MOST_TOPICS)
    )
    if wrong is not None:
        return wrong
    for channel in channels:
        if (wrong := _unnamed("client", (channel.client_id,), LONGEST_CLIENT)) is not None:
            return wrong
        if (wrong := _unnamed("text of a channel", (channel.address, channel.language, channel.version))) is not None:
            return wrong
    for mode in seen.modes or ():
        if _unnamed("request mode", (mode.topic, mode.mode)) or not -_MAX_INT <= mode.share <= _MAX_INT:
            return "an impossible request mode"
    return None


def _wrong_subscriptions(subscriptions: tuple[SubscriptionSeen, ...] | None) -> str | None:
    if subscriptions is None:
        return None
    wrong = _too_many("subscriptions", subscriptions, MOST_TOPICS) or _twice(
        "subscription", [one.topic for one in subscriptions]
    )
    if wrong is not None:
        return wrong
    for one in subscriptions:
        if _unnamed("subscription", (one.topic, one.expression_type)) or len(one.expression) > LONGEST_EXPRESSION:
            return "a subscription of impossible length"
        if not -1 <= one.version <= _MAX_OFFSET:
            return f"a subscription of version {one.version}"
    return None


def _wrong_member(seen: MemberSeen) -> str | None:
    if seen.answer not in ANSWERS or not _is_time(seen.started):
        return "a member with an impossible start or answer"
    if (seen.queues is not None or seen.subscriptions is not None) and seen.answer != OK:
        return "queues of a member that did not answer"
    texts = (
        *(seen.broker, seen.reason, seen.language, seen.version, seen.strategy),
        *(seen.consume_type, seen.message_model, seen.consume_from),
    )
    wrong = (
        _unnamed("member", (seen.client_id,), LONGEST_CLIENT)
        or _unnamed("text of a member", texts)
        or _wrong_subscriptions(seen.subscriptions)
        or _too_many("queues of a member", seen.queues or (), MOST_QUEUES_OF_TOPIC)
    )
    return wrong or _first(_wrong_held, seen.queues or ())


def _wrong_held(queue: HeldQueue) -> str | None:
    if _unnamed("queue", (queue.topic, queue.broker)) or not -1 <= queue.queue < MOST_QUEUES:
        return f"a held queue {queue.queue}"
    times = (queue.pulled, queue.consumed, queue.locked_at)
    if not all(_is_time(time) for time in times):
        return "a held queue with an impossible time"
    if not all(-1 <= number <= _MAX_OFFSET for number in (queue.cached, queue.committed)):
        return "a held queue with an impossible offset"
    return None


def _wrong_topic(seen: TopicSeen) -> str | None:
    return (
        _unnamed("topic", (seen.topic,))
        or _too_many("routes", seen.routes, MOST_BROKERS)
        or _too_many("brokers of a topic", seen.queues, MOST_BROKERS)
        or _twice("broker of a topic", [queues.broker for queues in seen.queues])
        or _twice("route of a topic", [route.name_server for route in seen.routes])
        or _first(_wrong_route, seen.routes)
        or _first(_wrong_queues, seen.queues)
    )


def _wrong_route(seen: RouteSeen) -> str | None:
    if seen.answer not in ANSWERS or (seen.brokers and seen.answer != OK):
        return "a route with an impossible answer"
    wrong = (
        _unnamed("name server", (seen.name_server, seen.reason))
        or _too_many("brokers in a route", seen.brokers, MOST_BROKERS)
        or _unnamed("broker", (broker.name for broker in seen.brokers))
        or _twice("broker in a route", [broker.name for broker in seen.brokers])
    )
    if wrong is not None:
        return wrong
    for broker in seen.brokers:
        if not (0 <= broker.read <= MOST_QUEUES and 0 <= broker.write <= MOST_QUEUES and 0 <= broker.perm <= _MAX_INT):
            return f"a route of {broker.read} and {broker.write} queues with perm {broker.perm}"
    total = sum(broker.read for broker in seen.brokers)
    return f"a route of {total:,} queues" if total > MOST_QUEUES_OF_TOPIC else None


def _wrong_queues(seen: QueuesSeen) -> str | None:
    if seen.answer not in ANSWERS or _unnamed("broker", (seen.broker,)):
        return "queues of a broker with an impossible name or answer"
    numbers = (seen.min, seen.max, seen.committed, seen.stored, seen.consumed)
    there = [values for values in numbers if values is not None]
    if len(seen.max) > MOST_QUEUES or len({len(values) for values in there}) > 1:
        return "offsets of a topic of different or impossible lengths"
    for values in there:
        if values and (min(values) < -1 or max(values) > _MAX_OFFSET):
            return "an offset below -1 or beyond int64"
    for times in (seen.stored, seen.consumed):
        if times and max(times) > _LAST_TIMESTAMP_MS:
            return "an impossible time of a message"
    return None
