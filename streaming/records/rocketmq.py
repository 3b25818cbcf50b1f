"""What one round saw of a RocketMQ group: the core's input, and the body of the probe's event.

RocketMQ has no log of decisions and no coordinator. Each client takes the members of its group from one broker and the
queues of a topic from one name server, and decides for itself. So an observation keeps what every broker, every name
server and every client says, separately, and nothing is merged: which of them an owner can have believed is for the
core to find out.

The same structs travel as JSON in `evenkeel.events` and as msgpack to the core: arrays, whose fields are only ever
appended, with defaults. Times are ms since the epoch, UTC; those of a broker are by the broker's clock, those of a
client by the client's, so that only differences of one source's times mean something. -1 means unknown wherever a
number may be missing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.records.observations import Configured

# How a question was answered.
#
# - `ok`: with what was asked for.
# - `none`: a broker says that the group has no consumer there (request 203, code 206).
# - `missing`: a name server says that there is no such topic (code 17).
# - `offline`: a broker says that it has no such client (request 307, code 1).
# - `timeout`: nobody answered in time: no connection, or code 207 for a client that does not answer its broker.
# - `refused`: no right (code 16).
# - `error`: any other code, or an answer that cannot be read.
# - `not_asked`: left out in this round, as for a client that has not answered for a while.
OK: Final = "ok"
NONE: Final = "none"
MISSING: Final = "missing"
OFFLINE: Final = "offline"
TIMEOUT: Final = "timeout"
REFUSED: Final = "refused"
ERROR: Final = "error"
NOT_ASKED: Final = "not_asked"

PUSH: Final = "push"
PULL: Final = "pull"
POP: Final = "pop"

CLUSTERING: Final = "CLUSTERING"
BROADCASTING: Final = "BROADCASTING"


class ChannelSeen(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A connection of a client to a broker (request 203). A client id that two processes use has two of them.

    Attributes:
        client_id: Client id.
        address: The client's address and port as the broker sees it.
        language: "JAVA", "GO", ...; None when not told.
    """

    client_id: str
    address: str
    language: str | None = None


class SubscriptionSeen(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A topic that a client subscribes to.

    Attributes:
        topic: Topic; `%RETRY%<group>` among them.
        expression: Filter as text: "*", "TagA || TagB", or SQL.
    """

    topic: str
    expression: str = "*"


class BrokerSeen(msgspec.Struct, frozen=True, array_like=True):
    """What one broker says of the group. Each address is a broker: a master and its slaves have their own lists.

    Attributes:
        name: Broker name, as in routes and queues.
        broker_id: 0 for the master.
        address: Address that was asked.
        answer: How it answered 203, one of the answers above.
        reason: What it said instead of an answer, as text; None where it answered.
        clients: Its list of the group's clients: one entry per connection, duplicates kept, sorted by the probe,
            because brokers list them in no order. () without an answer.
        channels: Its connections of the group, sorted; None without an answer.
        consume_type: The group's, by the last heartbeat (203): "push", "pull" or "pop"; None when not told.
        message_model: Likewise: "CLUSTERING" or "BROADCASTING".
        subscriptions: Likewise: the last writer's subscriptions, which need not be any other member's; None when not
            told.
    """

    name: str
    broker_id: int
    address: str
    answer: str
    reason: str | None = None
    clients: tuple[str, ...] = ()
    channels: tuple[ChannelSeen, ...] | None = None
    consume_type: str | None = None
    message_model: str | None = None
    subscriptions: tuple[SubscriptionSeen, ...] | None = None


class HeldQueue(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A queue that a client says it holds (request 307: `mqTable`, or `mqPopTable` with `pop`).

    Attributes:
        topic: Topic.
        broker: Broker name.
        queue: Queue id; -1 in POP mode, where a client takes a broker's queues as one.
        dropped: `droped`: it is being given up.
        locked: `locked`: the client believes that it holds the broker's lock. Means something for orderly clients only.
        pop: From `mqPopTable`.
    """

    topic: str
    broker: str
    queue: int
    dropped: bool = False
    locked: bool = False
    pop: bool = False


class MemberSeen(msgspec.Struct, frozen=True, array_like=True):
    """What one client says of itself (request 307), with what brokers say of it where it does not.

    One per client id: a question by client id reaches the first of several connections with it.

    Attributes:
        client_id: Client id.
        answer: How it answered, one of the answers above.
        language: "JAVA", "GO", ...; from 203. None when not told.
        version: "V5_5_0"; None when not told.
        strategy: Class of its strategy, without "@hash"; None when not told, as by Go and C++ clients.
        consume_type: "push", "pull" or "pop"; None when not told.
        message_model: "CLUSTERING" or "BROADCASTING"; None when not told.
        orderly: PROP_CONSUMEORDERLY; None when not told.
        client_rebalance: `clientRebalance`: False lets brokers assign; None when not told (before 5.x).
        started: PROP_CONSUMER_START_TIMESTAMP, by the client's clock; -1 when not told. Another one under the same
            client id is another life, or another process.
        subscriptions: Its own subscriptions, sorted by topic; None without an answer.
        queues: The queues that it holds, sorted; None without an answer, and where the client tells none at all
            (DefaultMQPullConsumer).
    """

    client_id: str
    answer: str
    language: str | None = None
    version: str | None = None
    strategy: str | None = None
    consume_type: str | None = None
    message_model: str | None = None
    orderly: bool | None = None
    client_rebalance: bool | None = None
    started: int = -1
    subscriptions: tuple[SubscriptionSeen, ...] | None = None
    queues: tuple[HeldQueue, ...] | None = None


class RouteBroker(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A broker in a topic's route.

    Attributes:
        name: Broker name.
        read: `readQueueNums`: clients read queues 0 to one less.
        perm: `perm`: 4 read, 2 write.
    """

    name: str
    read: int
    perm: int


class RouteSeen(msgspec.Struct, frozen=True, array_like=True):
    """A topic's route as one name server tells it (request 105).

    Attributes:
        name_server: Address of the name server.
        answer: One of the answers above; "missing" when it does not know the topic.
        brokers: By broker name; () without an answer.
        mapped: The topic is a static one (`topicQueueMappingByBroker`): clients see logical queues, which are not
            these.
    """

    name_server: str
    answer: str
    brokers: tuple[RouteBroker, ...] = ()
    mapped: bool = False


class QueuesSeen(msgspec.Struct, frozen=True, array_like=True):
    """Offsets of a topic's queues on one broker, by queue id from 0 on; all tuples that are there are of one length.

    Attributes:
        broker: Broker name.
        answer: How its master answered, one of the answers above; the tuples are () or None where it did not.
        min: Lowest offset that can be read (202); -1 where unknown.
        max: Offset of the next message (202); -1 where unknown.
        committed: The group's offset of the next message to consume (43): -1 where it has none. None when it was not
            told, and where the group keeps offsets itself (BROADCASTING).
    """

    broker: str
    answer: str
    min: tuple[int, ...] = ()
    max: tuple[int, ...] = ()
    committed: tuple[int, ...] | None = None


class TopicSeen(msgspec.Struct, frozen=True, array_like=True):
    """A topic of the group: subscribed, committed, or its own `%RETRY%<group>` and `%DLQ%<group>`.

    Attributes:
        topic: Topic.
        routes: One per name server, in the order of the configuration.
        queues: One per broker of its routes, by name.
    """

    topic: str
    routes: tuple[RouteSeen, ...] = ()
    queues: tuple[QueuesSeen, ...] = ()


class RocketMQObservation(msgspec.Struct, frozen=True, array_like=True, tag="q"):
    """One RocketMQ group in one round.

    Attributes:
        round: Number of the round; increases, with jumps.
        time: The round's time, ms.
        gone: None while the group is there; "deleted" or "filtered" in its last observation.
        brokers: Every address that was asked.
        members: Every client id on any broker's list, and in any name under which a client answered.
        topics: Topics of the group that passed the filters.
        idle: As in `GroupObservation`.
        cut: Parts that were too large for an event and are not whole: "brokers", "members", "queues", "subscriptions",
            "topics".
        elapsed: As in `GroupObservation`, ms; -1 when unknown.
        closed: Append time of the round's closing record, ms: everything in it was seen before. -1 when unknown.
        rested_since: As in `GroupObservation`.
        rested_until: As in `GroupObservation`.
        configured: As in `GroupObservation`.
    """

    round: int
    time: int
    gone: str | None
    brokers: tuple[BrokerSeen, ...] = ()
    members: tuple[MemberSeen, ...] = ()
    topics: tuple[TopicSeen, ...] = ()
    idle: bool = False
    cut: tuple[str, ...] = ()
    elapsed: int = -1
    closed: int = -1
    rested_since: int = -1
    rested_until: int = -1
    configured: Configured | None = None

    @property
    def elapsed_time(self) -> int:
        """A time in ms that never jumps, for durations only: `elapsed`, or `time` if that is unknown."""
        if self.elapsed >= 0:
            return self.elapsed
        return self.time

    @property
    def position(self) -> int:
        """0: there is no log."""
        return 0

    @property
    def source(self) -> str:
        """Where the group is read from."""
        return "rocketmq"
