"""Bodies of the answers that we ask for, as values with only the fields that we use (5.5.0; the same in 4.9.8).

A field that a release does not write has its default. What an answer is about has none: without it an answer is not one
that says "nothing", but none at all. Maps whose keys are objects have them as JSON text here
(`bodies.py`); `queue_of` reads one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from streaming.rocketmq.bodies import as_json

T = TypeVar("T")

# A key has the names of a topic (up to 255 characters, of a small alphabet) and of a broker. Clients write such keys,
# too: longer ones, and those with other letters, may be made up to fill the memory, so they are read each time.
_LONGEST_CACHED: Final = 600


class Unreadable(ValueError):
    """A body that is not what was asked for; the message says what is wrong."""


class MessageQueue(msgspec.Struct, frozen=True, gc=False):
    """A key of many maps."""

    topic: str = ""
    brokerName: str = ""  # noqa: N815 - their names, here and below
    queueId: int = 0  # noqa: N815


class BrokerData(msgspec.Struct, frozen=True):
    """A broker name and its addresses: by id as text, "0" for the master."""

    brokerName: str = ""  # noqa: N815
    cluster: str | None = None
    brokerAddrs: dict[str, str] = {}  # noqa: N815


class ClusterInfo(msgspec.Struct, frozen=True):
    """Answer to GET_BROKER_CLUSTER_INFO, by broker name."""

    brokerAddrTable: dict[str, BrokerData]  # noqa: N815


class TopicList(msgspec.Struct, frozen=True):
    """Answer to GET_ALL_TOPIC_LIST_FROM_NAMESERVER."""

    topicList: list[str]  # noqa: N815


class QueueData(msgspec.Struct, frozen=True):
    """A broker's queues in a route."""

    brokerName: str = ""  # noqa: N815
    readQueueNums: int = 0  # noqa: N815
    writeQueueNums: int = 0  # noqa: N815
    perm: int = 0


class TopicRoute(msgspec.Struct, frozen=True):
    """Answer to GET_ROUTEINFO_BY_TOPIC."""

    brokerDatas: list[BrokerData]  # noqa: N815
    queueDatas: list[QueueData]  # noqa: N815
    topicQueueMappingByBroker: dict[str, Any] | None = None  # noqa: N815


class SubscriptionData(msgspec.Struct, frozen=True):
    """`SubscriptionData`."""

    topic: str = ""
    subString: str | None = None  # noqa: N815
    expressionType: str | None = None  # noqa: N815
    subVersion: int = -1  # noqa: N815


class ClientConnection(msgspec.Struct, frozen=True):
    """A client's connection to a broker. `version` is an ordinal."""

    clientId: str | None = None  # noqa: N815
    clientAddr: str | None = None  # noqa: N815
    language: str | None = None
    version: int | None = None


class ConsumerConnection(msgspec.Struct, frozen=True):
    """Answer to GET_CONSUMER_CONNECTION_LIST."""

    connectionSet: list[ClientConnection]  # noqa: N815
    subscriptionTable: dict[str, SubscriptionData] = {}  # noqa: N815
    consumeType: str | None = None  # noqa: N815
    messageModel: str | None = None  # noqa: N815
    consumeFromWhere: str | None = None  # noqa: N815


class ConsumerList(msgspec.Struct, frozen=True):
    """Answer to GET_CONSUMER_LIST_BY_GROUP."""

    consumerIdList: list[str]  # noqa: N815


class ProcessQueue(msgspec.Struct, frozen=True):
    """`ProcessQueueInfo` and, with `droped` alone, `PopProcessQueueInfo`: a queue that a client works on."""

    droped: bool = False
    locked: bool = False
    cachedMsgCount: int = -1  # noqa: N815
    commitOffset: int = -1  # noqa: N815
    lastPullTimestamp: int = -1  # noqa: N815
    lastConsumeTimestamp: int = -1  # noqa: N815
    lastLockTimestamp: int = -1  # noqa: N815


class RunningInfo(msgspec.Struct, frozen=True):
    """Answer of a client to GET_CONSUMER_RUNNING_INFO."""

    properties: dict[str, str | int | bool | None] = {}
    subscriptionSet: list[SubscriptionData] | None = None  # noqa: N815
    mqTable: dict[str, ProcessQueue] | None = None  # noqa: N815
    mqPopTable: dict[str, ProcessQueue] | None = None  # noqa: N815


class SubscriptionGroup(msgspec.Struct, frozen=True):
    """`SubscriptionGroupConfig`."""

    consumeEnable: bool = True  # noqa: N815


class SubscriptionGroups(msgspec.Struct, frozen=True):
    """Answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG, by group."""

    subscriptionGroupTable: dict[str, SubscriptionGroup]  # noqa: N815


class RequestModeBody(msgspec.Struct, frozen=True):
    """`SetMessageRequestModeRequestBody`."""

    mode: str | None = None
    popShareQueueNum: int = 0  # noqa: N815


class RequestModes(msgspec.Struct, frozen=True):
    """Answer to GET_ALL_MESSAGE_REQUEST_MODE, by topic and group."""

    messageRequestModeMap: dict[str, dict[str, RequestModeBody]] = {}  # noqa: N815


class ConsumerOffsets(msgspec.Struct, frozen=True):
    """Answer to GET_ALL_CONSUMER_OFFSET: by "topic@group", then by queue id as text."""

    offsetTable: dict[str, dict[str, int]]  # noqa: N815


class TopicOffset(msgspec.Struct, frozen=True):
    """A queue's offsets, and the store time of its newest message."""

    minOffset: int = -1  # noqa: N815
    maxOffset: int = -1  # noqa: N815
    lastUpdateTimestamp: int = -1  # noqa: N815


class TopicStats(msgspec.Struct, frozen=True):
    """Answer to GET_TOPIC_STATS_INFO, by queue."""

    offsetTable: dict[str, TopicOffset]  # noqa: N815


class Consumed(msgspec.Struct, frozen=True):
    """`OffsetWrapper`: a group's offset, and the store time of the message before it."""

    consumerOffset: int = -1  # noqa: N815
    lastTimestamp: int = -1  # noqa: N815


class ConsumeStats(msgspec.Struct, frozen=True):
    """One topic of a group, by queue."""

    offsetTable: dict[str, Consumed] = {}  # noqa: N815


class BrokerConsumeStats(msgspec.Struct, frozen=True):
    """Answer to GET_BROKER_CONSUME_STATS: a list of maps of one group each."""

    consumeStatsList: list[dict[str, list[ConsumeStats]]] = []  # noqa: N815


class RuntimeInfo(msgspec.Struct, frozen=True):
    """Answer to GET_BROKER_RUNTIME_INFO."""

    table: dict[str, str] = {}


def read_body(kind: type[T], body: bytes | None) -> T:
    """Read a body; fields that we do not know are passed over.

    Raises:
        Unreadable: It is not of that kind.
    """
    try:
        return msgspec.json.decode(as_json(body or b""), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"its body is not what was asked for: {error}"
        raise Unreadable(message) from None


def queue_of(key: str) -> MessageQueue:
    """A message queue that was a key.

    Raises:
        Unreadable: It is none.
    """
    return _cached_queue(key) if len(key) <= _LONGEST_CACHED and key.isascii() else _queue(key)


def _queue(key: str) -> MessageQueue:
    return read_body(MessageQueue, key.encode("utf-8", "surrogatepass"))


_cached_queue = lru_cache(maxsize=1 << 16)(_queue)
