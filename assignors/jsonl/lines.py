"""A group as a line of `evenkeel assign`, for each family of strategies: its fields, read and written.

The classes say what a line may contain (docs/tools.md); msgspec checks it. Fields with default values are not written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, ValidationError, convert, to_builtins

from assignors.brokers import ServerGroup, ServerMember, ServerTopic
from assignors.model import Group, PartitionRacks, Subscription
from assignors.rocketmq import AllocateStrategy, MessageQueue, Options
from assignors.strategy import CUSTOM, JAVA, Library, parse_library
from assignors.streams import StreamsGroup, StreamsMember, Subtopology, TaskAssignment, assign_tasks

SERVER_PREFIX = "server-"
"""Prefix of all strategies of brokers."""

STREAMS_PREFIX = "streams-"
"""Prefix of the task assignors of streams groups."""

ROCKETMQ_PREFIX = "rocketmq:"
"""Prefix of RocketMQ strategies in a line."""

# Kafka's strings have an int16 length in bytes, and a character takes up to four. (Real topics have up to 249.)
_Name = Annotated[str, Meta(max_length=8_191)]

# Kafka's partition numbers and generations are signed 32-bit integers.
_Int32 = Annotated[int, Meta(ge=-(1 << 31), lt=1 << 31)]
_Generation = Annotated[int, Meta(ge=-1, lt=1 << 31)]

Pair = tuple[_Name, _Int32]
"""A topic, and the number of one of its partitions."""

# Rates of any unit are far below; the sum of a million of these is far below the largest float, 1.8e308.
Rate = Annotated[float, Meta(ge=0, le=1e100)]
"""The load of a partition."""

_Line = TypeVar("_Line", bound=Struct)


class BadLine(Exception):
    """The line cannot be answered; the text says why, and where."""


def read(line: object, kind: type[_Line]) -> _Line:
    """Read a decoded line; unknown fields are ignored.

    Raises:
        BadLine: It is not a line of this kind.
    """
    try:
        return convert(line, kind)
    except ValidationError as error:
        raise BadLine(str(error)) from None


class _Member(Struct, kw_only=True, omit_defaults=True):
    topics: tuple[str, ...]
    group_instance_id: str | None = None
    rack: str | None = None


class MemberOfLeader(_Member, kw_only=True):
    """A member of a classic group; `user_data` is hex."""

    owned: tuple[Pair, ...] | None = ()
    generation: int | None = None
    user_data: str | None = None

    def subscription(self, member_id: str) -> Subscription:
        """The member as its leader sees it; raises BadLine."""
        # The order of the pairs may matter, so only adjacent pairs of one topic are joined.
        owned: list[tuple[str, list[int]]] = []
        for topic, partition in self.owned or ():
            if not owned or owned[-1][0] != topic:
                owned.append((topic, []))
            owned[-1][1].append(partition)
        try:
            user_data = None if self.user_data is None else bytes.fromhex(self.user_data)
        except ValueError:
            message = f"The user_data of member {member_id!r} is not hex."
            raise BadLine(message) from None
        return Subscription(
            member_id,
            self.topics,
            owned=tuple((topic, tuple(partitions)) for topic, partitions in owned),
            generation=None if self.generation is None or self.generation < 0 else self.generation,
            group_instance_id=self.group_instance_id,
            rack=self.rack,
            user_data=user_data,
        )


class ClientLine(Struct, kw_only=True, omit_defaults=True):
    """A classic group: members in the order of the record, and what the leader knew beside it."""

    strategy: str = ""
    library: str | None = None
    partitions_per_topic: dict[str, int]
    members: dict[str, MemberOfLeader]
    partition_racks: dict[str, list[list[str | None]]] | None = None
    remembered_generation: _Generation | None = None
    other_topics_known: bool = False
    leader: str | None = None

    def group(self) -> Group:
        """The group; raises BadLine and BadGroup."""
        return Group(
            tuple(member.subscription(member_id) for member_id, member in self.members.items()),
            self.partitions_per_topic,
            remembered_generation=-1 if self.remembered_generation is None else self.remembered_generation,
            other_topics_known=self.other_topics_known,
            leader=self.leader,
        )

    def leaders_library(self) -> Library:
        """The leader's library; without one, the newest Java."""
        if self.library is None:
            return Library(JAVA)
        return parse_library(self.library)

    def racks(self) -> dict[str, list[list[str]]] | None:
        """Racks of the replicas, without null ones; None if they are not given."""
        if self.partition_racks is None:
            return None
        return {
            topic: [[rack for rack in replicas if rack is not None] for replicas in partitions]
            for topic, partitions in self.partition_racks.items()
        }


class TopicOfBroker(Struct, omit_defaults=True):
    """A topic of the broker's metadata; of a share group with the partitions that the group has initialized."""

    id: str
    partitions: int
    initialized: tuple[int, ...] | None = None


class MemberOfBroker(_Member, kw_only=True):
    """A member of a consumer or share group, with its previous target."""

    target: tuple[tuple[str, tuple[int, ...]], ...] | None = ()


class ServerLine(Struct, kw_only=True, omit_defaults=True):
    """A consumer or share group; `library` is the broker's release."""

    strategy: str = ""
    library: str | None = None
    topics: dict[str, TopicOfBroker]
    members: dict[str, MemberOfBroker]

    def group(self) -> ServerGroup:
        """The group; raises BadGroup."""
        return ServerGroup(
            tuple(
                ServerMember(member_id, of.topics, of.target or (), of.group_instance_id, of.rack or None)
                for member_id, of in self.members.items()
            ),
            {name: ServerTopic(of.id, of.partitions, of.initialized) for name, of in self.topics.items()},
        )


class SubtopologyOfLine(Struct, omit_defaults=True):
    """A subtopology, with its number of tasks and whether it has a store."""

    tasks: int
    stateful: bool = False


class MemberOfStreams(Struct, omit_defaults=True):
    """A member of a streams group, with its process and its previous tasks by subtopology."""

    process: str
    active: tuple[tuple[str, tuple[int, ...]], ...] = ()
    standby: tuple[tuple[str, tuple[int, ...]], ...] = ()


class StreamsLine(Struct, kw_only=True, omit_defaults=True):
    """A streams group; `library` is the broker's release."""

    strategy: str = ""
    library: str | None = None
    standby_replicas: int = 0
    subtopologies: dict[str, SubtopologyOfLine]
    members: dict[str, MemberOfStreams]

    def group(self) -> StreamsGroup:
        """The group; raises BadGroup."""
        return StreamsGroup(
            tuple(
                StreamsMember(member_id, of.process, of.active, of.standby) for member_id, of in self.members.items()
            ),
            tuple(Subtopology(name, of.tasks, of.stateful) for name, of in self.subtopologies.items()),
            self.standby_replicas,
        )

    def assign(self) -> TaskAssignment:
        """What the assignor gives; raises AssignorError."""
        if self.strategy != f"{STREAMS_PREFIX}sticky":
            message = f"{self.strategy!r} is no task assignor of Kafka's: it has {STREAMS_PREFIX}sticky only."
            raise BadLine(message)
        return assign_tasks(self.group(), self.library)


class QueueOfLine(Struct):
    """A queue of RocketMQ."""

    topic: str
    broker: str
    queue: int


class _Options(Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    virtual_node_cnt: int | None = None
    message_queue_list: tuple[QueueOfLine, ...] | None = None
    consumeridcs: list[str] | None = None
    room_separator: str | None = None


class AllocateLine(Struct, kw_only=True, omit_defaults=True):
    """One view of a RocketMQ group and a topic."""

    strategy: str = ""
    queues: tuple[QueueOfLine, ...]
    clients: list[str]
    presort: bool = True
    options: _Options | None = None

    def named(self, strategy: str) -> AllocateStrategy:
        """A strategy by its name in a line, with the line's options; raises AssignorError."""
        given = self.options or _Options()
        options = Options(
            virtual_node_cnt=10 if given.virtual_node_cnt is None else given.virtual_node_cnt,
            message_queue_list=None if given.message_queue_list is None else as_queues(given.message_queue_list),
            consumeridcs=None if given.consumeridcs is None else frozenset(given.consumeridcs),
            room_separator=given.room_separator,
        )
        return AllocateStrategy(strategy.removeprefix(ROCKETMQ_PREFIX), options)

    @property
    def separates_rooms(self) -> bool:
        """Whether the line says where a room's name ends."""
        return self.options is not None and bool(self.options.room_separator)


def as_queues(queues: Iterable[QueueOfLine]) -> tuple[MessageQueue, ...]:
    """Queues of a line as the strategies take them."""
    return tuple(MessageQueue(queue.topic, queue.broker, queue.queue) for queue in queues)


def _written_queues(queues: Iterable[MessageQueue]) -> tuple[QueueOfLine, ...]:
    return tuple(QueueOfLine(*queue) for queue in queues)


def write_client_line(
    strategy: str, group: Group, library: Library, partition_racks: PartitionRacks | None = None
) -> dict[str, Any]:
    """The line of a group with a client-side strategy.

    Args:
        strategy: Name of the strategy.
        group: Members and partition counts.
        library: The leader's library. A user's own strategy is found by its name, so its line has no library.
        partition_racks: Racks of the replicas; None when unknown.
    """
    members = {
        member.member_id: MemberOfLeader(
            topics=member.topics,
            owned=tuple((topic, partition) for topic, partitions in member.owned for partition in partitions),
            generation=member.generation,
            user_data=None if member.user_data is None else member.user_data.hex(),
            group_instance_id=member.group_instance_id,
            rack=member.rack,
        )
        for member in group.members
    }
    line = ClientLine(
        strategy=strategy,
        library=None if library.name == CUSTOM else str(library),
        partitions_per_topic=dict(group.partitions_per_topic),
        members=members,
        partition_racks=None
        if partition_racks is None
        else {topic: [list(of) for of in racks] for topic, racks in partition_racks.items()},
        remembered_generation=None if group.remembered_generation < 0 else group.remembered_generation,
        other_topics_known=group.other_topics_known,
        leader=group.leader,
    )
    return _written(line)


def write_server_line(strategy: str, group: ServerGroup, release: str) -> dict[str, Any]:
    """The line of a group with a broker-side assignor.

    Args:
        strategy: "server-uniform", "server-range" or "server-simple".
        group: Members with their previous targets, and topics.
        release: The broker's release, such as "4.0.1".
    """
    members = {
        member.member_id: MemberOfBroker(
            topics=member.topics,
            target=tuple((topic, tuple(partitions)) for topic, partitions in member.target),
            group_instance_id=member.group_instance_id,
            rack=member.rack,
        )
        for member in group.members
    }
    topics = {
        name: TopicOfBroker(topic.topic_id, topic.partitions, topic.initialized) for name, topic in group.topics.items()
    }
    return _written(ServerLine(strategy=strategy, library=release, topics=topics, members=members))


def write_streams_line(group: StreamsGroup, release: str) -> dict[str, Any]:
    """The line of a streams group; `release` is the broker's."""
    members = {
        member.member_id: MemberOfStreams(member.process_id, member.active, member.standby) for member in group.members
    }
    parts = {part.subtopology_id: SubtopologyOfLine(part.tasks, part.stateful) for part in group.subtopologies}
    line = StreamsLine(
        strategy=f"{STREAMS_PREFIX}sticky",
        library=release,
        standby_replicas=group.standby_replicas,
        subtopologies=parts,
        members=members,
    )
    return _written(line)


def write_allocate_line(
    strategy: str, queues: Iterable[MessageQueue], clients: Iterable[str], options: Options
) -> dict[str, Any]:
    """The line of one view of a RocketMQ group and a topic.

    Args:
        strategy: Its `getName()`.
        queues: All queues of the topic.
        clients: All clients of the group, duplicates kept.
        options: Options of the strategy.
    """
    listed = options.message_queue_list if "CONFIG" in strategy else None
    chosen = _Options(
        virtual_node_cnt=options.virtual_node_cnt if "CONSISTENT_HASH" in strategy else None,
        message_queue_list=None if listed is None else _written_queues(listed),
        consumeridcs=None if options.consumeridcs is None else sorted(options.consumeridcs),
        room_separator=options.room_separator,
    )
    line = AllocateLine(
        strategy=ROCKETMQ_PREFIX + strategy,
        queues=_written_queues(queues),
        clients=list(clients),
        options=None if chosen == _Options() else chosen,
    )
    return _written(line)


def _written(line: ClientLine | ServerLine | StreamsLine | AllocateLine) -> dict[str, Any]:
    written: dict[str, Any] = to_builtins(line)
    return written
