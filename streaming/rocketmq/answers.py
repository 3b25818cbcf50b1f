r"""Bodies of the answers that we ask for, as values with only the fields that we use (5.5.0; the same in 4.9.8).

A field that a release does not write has its default. What an answer is about has none: without it an answer is not one
that says "nothing", but none at all.

Their text is what fastjson writes, which is JSON except for its maps. A map with other keys than texts is written with
these keys as they are, bare integers and whole objects:

    {0:"127.0.0.1:20911"}
    {"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"t"}:{"minOffset":0}}}

Here such a key becomes a text with the key's own JSON, so that what remains is JSON: `"0"`, and
`"{\"brokerName\":\"broker-a\",\"queueId\":3,\"topic\":\"t\"}"`; `queue_of` reads one. A key that is an object
has no objects in it: theirs are message queues. Seen in 4.9.8 (fastjson 1) and 5.5.0 (fastjson 2).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")

_TEXT = rb'"(?:[^"\\]|\\.)*+"'
_FLAT = rb'\{(?:[^{}"]|' + _TEXT + rb")*+\}"
_SPACE = rb"[ \t\r\n]*+"
_BARE = rb"[{,]" + _SPACE + rb"(?:-?[0-9]++|" + _FLAT + rb")" + _SPACE + rb":"

# Everything up to the next key that is no text; then the key. Possessive, so that each byte is looked at a fixed number
# of times whatever the input (`{{{{…` is tried once for each `{`, each time up to the next).
_PARTS: Final = re.compile(
    rb"(?P<plain>(?:[^{,\"]|" + _TEXT + rb"|(?!" + _BARE + rb')[{,]|".*+)++)'
    # A text that does not end is the rest: to look for another one behind each of its quotes would take forever.
    rb"|(?P<mark>[{,])" + _SPACE + rb"(?P<key>-?[0-9]++|" + _FLAT + rb")",
    re.DOTALL,
)

_MAY_HAVE_BARE: Final = re.compile(rb"[{,]" + _SPACE + rb"(?:[{]|-?[0-9]++" + _SPACE + rb":)")


def as_json(data: bytes) -> bytes:
    """The same text with all keys as texts; of what is no JSON of their kind, something that is no JSON either."""
    if _MAY_HAVE_BARE.search(data) is None:
        return data
    return _PARTS.sub(_with_text_key, data)


def _with_text_key(part: re.Match[bytes]) -> bytes:
    key = part["key"]
    if key is None:
        return part[0]
    quoted = key.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return part["mark"] + b'"' + quoted + b'"'


# A key has the names of a topic (up to 255 characters, of a small alphabet) and of a broker. Clients write such keys,
# too: longer ones, and those with other letters, may be made up to fill the memory, so they are read each time.
_LONGEST_CACHED: Final = 600


class Unreadable(ValueError):
    """A text that is no JSON of their kind, or not what was asked for; the message says what is wrong."""


class MessageQueue(msgspec.Struct, frozen=True, gc=False):
    """A key of many maps."""

    topic: str = ""
    brokerName: str = ""  # noqa: N815 - their names, here and below
    queueId: int = 0  # noqa: N815


class BrokerData(msgspec.Struct, frozen=True):
    """A broker name and its addresses: by id as text, "0" for the master."""

    brokerName: str = ""  # noqa: N815
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
    perm: int = 0


class TopicRoute(msgspec.Struct, frozen=True):
    """Answer to GET_ROUTEINFO_BY_TOPIC."""

    queueDatas: list[QueueData]  # noqa: N815
    topicQueueMappingByBroker: dict[str, Any] | None = None  # noqa: N815


class SubscriptionData(msgspec.Struct, frozen=True):
    """`SubscriptionData`."""

    topic: str = ""
    subString: str | None = None  # noqa: N815


class ClientConnection(msgspec.Struct, frozen=True):
    """A client's connection to a broker."""

    clientId: str | None = None  # noqa: N815
    clientAddr: str | None = None  # noqa: N815
    language: str | None = None


class ConsumerConnection(msgspec.Struct, frozen=True):
    """Answer to GET_CONSUMER_CONNECTION_LIST."""

    connectionSet: list[ClientConnection]  # noqa: N815
    subscriptionTable: dict[str, SubscriptionData] = {}  # noqa: N815
    consumeType: str | None = None  # noqa: N815
    messageModel: str | None = None  # noqa: N815


class ProcessQueue(msgspec.Struct, frozen=True):
    """`ProcessQueueInfo` and, with `droped` alone, `PopProcessQueueInfo`: a queue that a client works on."""

    droped: bool = False
    locked: bool = False


class RunningInfo(msgspec.Struct, frozen=True):
    """Answer of a client to GET_CONSUMER_RUNNING_INFO."""

    properties: dict[str, str | int | bool | None] = {}
    subscriptionSet: list[SubscriptionData] | None = None  # noqa: N815
    mqTable: dict[str, ProcessQueue] | None = None  # noqa: N815
    mqPopTable: dict[str, ProcessQueue] | None = None  # noqa: N815


class SubscriptionGroups(msgspec.Struct, frozen=True):
    """Answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG, by group."""

    subscriptionGroupTable: dict[str, Any]  # noqa: N815


class ConsumerOffsets(msgspec.Struct, frozen=True):
    """Answer to GET_ALL_CONSUMER_OFFSET: by "topic@group", then by queue id as text."""

    offsetTable: dict[str, dict[str, int]]  # noqa: N815


class TopicOffset(msgspec.Struct, frozen=True):
    """A queue's offsets."""

    minOffset: int = -1  # noqa: N815
    maxOffset: int = -1  # noqa: N815


class TopicStats(msgspec.Struct, frozen=True):
    """Answer to GET_TOPIC_STATS_INFO, by queue."""

    offsetTable: dict[str, TopicOffset]  # noqa: N815


def read_body(kind: type[T], body: bytes | None) -> T:
    """Read a body, or a header; fields that we do not know are passed over, and of equal keys the last one counts.

    Raises:
        Unreadable: It is not of that kind.
    """
    try:
        # What is not UTF-8 becomes U+FFFD, as in Java.
        return msgspec.json.decode(as_json(body or b"").decode("utf-8", "replace"), type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(str(error)) from None


def read_text(body: bytes) -> Any:
    """Read whatever it holds, objects as dicts; raises as `read_body`."""
    return read_body(Any, body)


def queue_of(key: str) -> MessageQueue:
    """A message queue that was a key.

    Raises:
        Unreadable: It is none.
    """
    if len(key) <= _LONGEST_CACHED and key.isascii():
        return _cached_queue(key)
    return _queue(key)


def _queue(key: str) -> MessageQueue:
    return read_body(MessageQueue, key.encode())


_cached_queue = lru_cache(maxsize=1 << 16)(_queue)
