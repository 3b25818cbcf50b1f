"""Answers of RocketMQ's servers as the parts of an event: what each said, cut to what an event may hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from streaming.records import (
    ERROR,
    MISSING,
    NONE,
    OFFLINE,
    OK,
    POP,
    PULL,
    PUSH,
    REFUSED,
    TIMEOUT,
    BrokerSeen,
    ChannelSeen,
    HeldQueue,
    MemberSeen,
    QueuesSeen,
    RouteBroker,
    RouteSeen,
    SubscriptionSeen,
)
from streaming.rocketmq import Answer, Code, Unanswered, answers
from streaming.terminal import visible

T = TypeVar("T")

MOST_CLIENTS: Final = 20_000
"""Entries of one broker's list, and members. A group of that size would spend its day rebalancing."""

MOST_TOPICS: Final = 10_000
"""Topics of a group."""

MOST_QUEUES: Final = 65_536
"""Queues of a topic on one broker, by id. The tools' default is 8 or 16; a larger number is a mistake, or hostile, and
would make the core allocate for queues that cannot exist."""

MOST_QUEUES_OF_TOPIC: Final = 262_144
"""Queues of a topic in one route, and of a member over all topics."""

LONGEST_NAME: Final = 512
"""Characters of a topic's, a broker's or a name server's name. Brokers allow 127 for topics, 255 with older releases,
and a prefix."""

LONGEST_CLIENT: Final = 1_000
"""Characters of a client id. They are an address, an instance name and a unit; anybody may choose them."""

LONGEST_EXPRESSION: Final = 4_000
"""Characters of a subscription's filter; the probe cuts a longer one and names "subscriptions" in `cut`."""

LONGEST_REASON: Final = 200
"""Characters of any text that explains; the probe cuts a longer one."""

_TYPES: Final = {"CONSUME_PASSIVELY": PUSH, "CONSUME_ACTIVELY": PULL, "CONSUME_POP": POP}

_MAX_OFFSET = 2**63 - 1
_LAST_TIMESTAMP_MS = 253_402_300_799_999

_MEANINGS: Final = (
    (Code.NO_PERMISSION, "", REFUSED),
    # Access control of 4.x has no code of its own.
    (None, "AclException", REFUSED),
    (Code.CONSUMER_NOT_ONLINE, "", NONE),
    (Code.TOPIC_NOT_EXIST, "", MISSING),
    (Code.CONSUME_MSG_TIMEOUT, "", TIMEOUT),
    (Code.SYSTEM_ERROR, "not online", OFFLINE),
)
"""What answers without success mean, by code (None for any) and a part of the remark; any other is an error."""


def outcome(answer: Answer, kind: type[T]) -> tuple[str, str | None, T | None]:
    """How a question was answered (`records/rocketmq.py`), what was said instead of an answer, and the answer."""
    if isinstance(answer, Unanswered):
        return TIMEOUT, text(answer.reason), None
    if answer.code == Code.SUCCESS:
        try:
            return OK, None, answers.read_body(kind, answer.body)
        except answers.Unreadable as error:
            return ERROR, text(f"its body is not what was asked for: {error}"), None
    remark = answer.remark or ""
    meant = (how for code, part, how in _MEANINGS if code in (None, answer.code) and part in remark)
    how = next(meant, ERROR)
    reason = None if how in (NONE, MISSING) else text(f"code {answer.code}: {remark or 'without a remark'}")
    return how, reason, None


def text(said: str) -> str:
    """A reason, printable, as long as an event may hold it."""
    return visible(said, LONGEST_REASON)[:LONGEST_REASON] or "?"


def name(given: str | None) -> str | None:
    """A name or word that somebody else chose, as long as an event may hold it; None for none."""
    if given:
        return given[:LONGEST_NAME]
    return None


def offset(value: int) -> int:
    """An offset, -1 where it cannot be one."""
    if 0 <= value <= _MAX_OFFSET:
        return value
    return -1


def time(value: int) -> int:
    """A time in ms, -1 where there is none (they write 0)."""
    if 0 < value <= _LAST_TIMESTAMP_MS:
        return value
    return -1


def subscriptions(told: Iterable[answers.SubscriptionData], cut: set[str]) -> tuple[SubscriptionSeen, ...]:
    """Subscriptions by topic; what had to be left out or shortened is named in `cut`."""
    found: dict[str, SubscriptionSeen] = {}
    for one in told:
        expression = one.subString or ""
        if not 0 < len(one.topic) <= LONGEST_NAME or len(found) >= MOST_TOPICS:
            cut.add("subscriptions")
            continue
        if len(expression) > LONGEST_EXPRESSION:
            cut.add("subscriptions")
        found[one.topic] = SubscriptionSeen(one.topic, expression[:LONGEST_EXPRESSION])
    return tuple([found[topic] for topic in sorted(found)])


def broker_seen(place: BrokerSeen, connections: Answer, cut: set[str]) -> BrokerSeen:
    """What one broker says of a group.

    A list of connections (203) has an entry per connection, as the list that clients take (38): the broker makes both
    from one table.

    Args:
        place: The broker, with what it says of the group's settings.
        connections: Its answer to GET_CONSUMER_CONNECTION_LIST.
        cut: Gets the parts that are not whole.
    """
    answer, reason, told = outcome(connections, answers.ConsumerConnection)
    seen = msgspec.structs.replace(place, answer=answer, reason=reason, channels=() if answer == NONE else None)
    if told is None:
        return seen
    channels = _channels(told.connectionSet, cut)
    return msgspec.structs.replace(
        seen,
        clients=tuple([channel.client_id for channel in channels]),
        channels=channels,
        consume_type=_consume_type(told.consumeType),
        message_model=name(told.messageModel),
        subscriptions=subscriptions(told.subscriptionTable.values(), cut),
    )


def _channels(told: Sequence[answers.ClientConnection], cut: set[str]) -> tuple[ChannelSeen, ...]:
    found = [
        ChannelSeen(one.clientId, name(one.clientAddr) or "?", name(one.language))
        for one in told
        if one.clientId and len(one.clientId) <= LONGEST_CLIENT
    ]
    if len(found) < len(told) or len(found) > MOST_CLIENTS:
        cut.add("brokers")
    found.sort(key=lambda channel: (channel.client_id, channel.address))
    return tuple(found[:MOST_CLIENTS])


def _consume_type(told: str | None) -> str | None:
    if told:
        return name(_TYPES.get(told, told))
    return None


def member_seen(member: MemberSeen, answer: Answer, cut: set[str]) -> MemberSeen:
    """What a client says of itself.

    Args:
        member: What brokers say of it.
        answer: What came.
        cut: Gets the parts that are not whole.
    """
    how, _, told = outcome(answer, answers.RunningInfo)
    seen = msgspec.structs.replace(member, answer=how)
    if told is None:
        return seen
    properties = {key: str(value) for key, value in told.properties.items() if value is not None}
    strategy = properties.get("allocateMessageQueueStrategy", "").partition("@")[0]
    return msgspec.structs.replace(
        seen,
        version=name(properties.get("PROP_CLIENT_VERSION")),
        strategy=name(strategy),
        consume_type=_consume_type(properties.get("PROP_CONSUME_TYPE")),
        message_model=name(properties.get("messageModel")),
        orderly=_truth(properties.get("PROP_CONSUMEORDERLY")),
        client_rebalance=_truth(properties.get("clientRebalance")),
        started=_number(properties.get("PROP_CONSUMER_START_TIMESTAMP")),
        subscriptions=None if told.subscriptionSet is None else subscriptions(told.subscriptionSet, cut),
        queues=None if told.mqTable is None and told.mqPopTable is None else _held(told, cut),
    )


def _truth(told: str | None) -> bool | None:
    return {"true": True, "false": False}.get((told or "").lower())


def _number(told: str | None) -> int:
    if told is not None and told.isascii() and told.isdigit() and len(told) < 19:
        return time(int(told))
    return -1


def _held(told: answers.RunningInfo, cut: set[str]) -> tuple[HeldQueue, ...]:
    found = []
    for pop, table in ((False, told.mqTable), (True, told.mqPopTable)):
        for key, info in (table or {}).items():
            try:
                queue = answers.queue_of(key)
            except answers.Unreadable:
                cut.add("queues")
                continue
            names = (queue.topic, queue.brokerName)
            if not (-1 <= queue.queueId < MOST_QUEUES and all(0 < len(one) <= LONGEST_NAME for one in names)):
                cut.add("queues")
                continue
            found.append(
                HeldQueue(
                    topic=queue.topic,
                    broker=queue.brokerName,
                    queue=queue.queueId,
                    dropped=info.droped,
                    locked=info.locked,
                    pop=pop,
                )
            )
    if len(found) > MOST_QUEUES_OF_TOPIC:
        cut.add("queues")
    found.sort(key=lambda queue: (queue.topic, queue.broker, queue.queue, queue.pop))
    return tuple(found[:MOST_QUEUES_OF_TOPIC])


def route_seen(name_server: str, answer: Answer) -> RouteSeen:
    """A topic's route as one name server tells it."""
    how, _, told = outcome(answer, answers.TopicRoute)
    if told is None:
        return RouteSeen(name_server, how)
    brokers = {data.brokerName: RouteBroker(data.brokerName, data.readQueueNums, data.perm) for data in told.queueDatas}
    return RouteSeen(
        name_server, OK, tuple([brokers[one] for one in sorted(brokers)]), mapped=bool(told.topicQueueMappingByBroker)
    )


def queues_seen(
    broker: str,
    answer: Answer,
    committed: Mapping[int, int] | None,
    cut: set[str],
) -> QueuesSeen:
    """Offsets of a topic's queues on one broker.

    Args:
        broker: Broker name.
        answer: Its answer to GET_TOPIC_STATS_INFO.
        committed: The group's offsets by queue id; None when not told.
        cut: Gets the parts that are not whole.
    """
    how, _, told = outcome(answer, answers.TopicStats)
    if told is None:
        return QueuesSeen(broker, how)
    of: dict[int, answers.TopicOffset] = {}
    for key, value in told.offsetTable.items():
        try:
            queue = answers.queue_of(key).queueId
        except answers.Unreadable:
            queue = -1
        if 0 <= queue < MOST_QUEUES:
            of[queue] = value
        else:
            cut.add("queues")
    highest = max((*of, *(queue for queue in committed or {} if 0 <= queue < MOST_QUEUES)), default=-1)
    none = answers.TopicOffset()
    every = [of.get(queue, none) for queue in range(highest + 1)]
    return QueuesSeen(
        broker,
        how,
        min=tuple([offset(one.minOffset) for one in every]),
        max=tuple([offset(one.maxOffset) for one in every]),
        committed=None
        if committed is None
        else tuple([offset(committed.get(queue, -1)) for queue in range(highest + 1)]),
    )


def offsets_by_group(told: answers.ConsumerOffsets) -> dict[str, dict[str, dict[int, int]]]:
    """Committed offsets by group, topic and queue id.

    No group's name has an "@": what has one is a broker's own note of how far a BROADCASTING group has read, as
    "topic@group@broadcast" (seen on 5.5.0).
    """
    found: dict[str, dict[str, dict[int, int]]] = {}
    for key, offsets in told.offsetTable.items():
        topic, _, group = key.partition("@")
        if topic and group and "@" not in group:
            found.setdefault(group, {})[topic] = {int(queue): at for queue, at in offsets.items() if _is_id(queue)}
    return found


def _is_id(queue: str) -> bool:
    return queue.isascii() and queue.isdigit() and len(queue) < 6
