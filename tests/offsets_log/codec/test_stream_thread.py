"""User data of Kafka Streams: what its own classes encode, version by version, and what nobody has encoded."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from uuid import UUID

import pytest

from streaming.offsets_log.codec.membership import seen_member
from streaming.offsets_log.codec.record_types import RecordValue, UnknownVersion
from streaming.offsets_log.codec.stream_thread import (
    AssignmentInfo,
    decode_assignment_info,
    decode_subscription_info,
    stream_thread,
)
from streaming.records import Member, StreamThread, thread_of
from tests.oracle.java_runner import JavaRunner

_VERSIONS = range(1, 12)


def _text(task: tuple[str, int]) -> str:
    return f"{task[0]}_{task[1]}"


@dataclass(frozen=True)
class Told:
    """What a thread tells its leader; offset sums are None below version 7, which has only the tasks."""

    version: int
    latest_version: int
    process: str
    active: frozenset[tuple[str, int]]
    offset_sums: dict[tuple[str, int], int | None]
    endpoint: bytes
    tags: dict[bytes, bytes]
    error: int

    @classmethod
    def of(cls, read: RecordValue) -> Told:
        """From Kafka's fields."""
        fields = read.fields
        sums: dict[tuple[str, int], int | None] = {
            (str(of.topicGroupId), of.partition): None for of in fields.standbyTasks
        }
        for of in fields.taskOffsetSums:
            name = f"{of.namedTopology}__{of.topicGroupId}" if of.namedTopology else str(of.topicGroupId)
            parts = [of] if read.version >= 10 else of.partitionToOffsetSum
            sums |= {(name, part.partition): part.offsetSum for part in parts}
        active = {(str(of.topicGroupId), of.partition) for of in fields.prevTasks}
        return cls(
            read.version,
            fields.latestSupportedVersion,
            str(UUID(bytes=read.fields.processId)),
            frozenset(active | {task for task, offset in sums.items() if offset == LATEST_OFFSET}),
            {task: offset for task, offset in sums.items() if offset != LATEST_OFFSET},
            bytes(fields.userEndPoint),
            {bytes(tag.key): bytes(tag.value) for tag in fields.clientTags},
            fields.errorCode,
        )


LATEST_OFFSET = -2
"""`Task.LATEST_OFFSET`: the thread has the task as an active one."""


def _random(random: Random, version: int) -> tuple[str, Told, AssignmentInfo]:
    """A line of the runner, and what is to be read of its answer."""
    named = version >= 10 and random.random() < 0.3
    tasks = [
        (f"{'payments__' if named else ''}{number}", partition)
        for number in range(random.randint(1, 12))
        for partition in random.sample(range(40), random.randint(0, 4))
    ]
    random.shuffle(tasks)
    cut = sorted(random.choices(range(len(tasks) + 1), k=2))
    active, standby = tasks[: cut[0]], tasks[cut[0] : cut[1]]
    sums = {task: random.choice((0, 17, 2**40, -3)) for task in standby} if version >= 7 else dict.fromkeys(standby)
    sent = {**dict.fromkeys(active, -2), **{task: offset or 0 for task, offset in sums.items()}}
    process, error = str(UUID(bytes=random.randbytes(16))), random.choice((0, 0, 1, 4))
    endpoint = random.choice(("", "here:8080", "10.0.0.1:9"))
    tags = {"zone": "a", "cluster": "b"} if version >= 11 and random.random() < 0.5 else {}
    hosts = random.sample(("a", "b", "c"), random.randint(0, 3)) if version > 1 else []
    following = random.choice(("", "0", "1790000000000"))
    line = (
        version,
        process,
        endpoint,
        ",".join(f"{key}={value}" for key, value in tags.items()),
        ",".join(f"{_text(task)}={offset}" for task, offset in sent.items()),
        ",".join(map(_text, active)),
        ",".join(map(_text, standby)),
        ",".join(hosts),
        error,
        following,
    )
    told = Told(
        version=version,
        latest_version=11 if version >= 3 else -1,
        process=process,
        active=frozenset(active),
        offset_sums=sums,
        endpoint=endpoint.encode() if version > 1 else b"",
        tags={key.encode(): value.encode() for key, value in tags.items()},
        error=error if version >= 9 else 0,
    )
    got = AssignmentInfo(
        version=version,
        active=tuple(active),
        standby=tuple(standby),
        error=error if version >= 4 else 0,
        next_rebalance=int(following) if version >= 7 and following else None,
    )
    return "\t".join(map(str, line)), told, got


@pytest.mark.nightly
@pytest.mark.java
def test_each_version_is_read_as_its_own_classes_have_written_it() -> None:
    random = Random("stream threads")
    cases = [_random(random, version) for version in _VERSIONS for _ in range(50)]
    with JavaRunner("StreamThreadRunner.java", "streams") as java:
        answers = java.ask([line for line, _, _ in cases])
    for (line, told, got), answer in zip(cases, answers, strict=True):
        subscription, assignment = map(bytes.fromhex, answer.split("\t"))
        read = decode_subscription_info(subscription)
        assert isinstance(read, RecordValue), (line, read)
        assert Told.of(read) == told, line
        assert decode_assignment_info(assignment) == got, line
        for damaged in (_damaged(random, subscription), _damaged(random, assignment)):
            thread = stream_thread(damaged, damaged, ())
            assert isinstance(thread, StreamThread)


def _damaged(random: Random, data: bytes) -> bytes:
    """Bytes with a part cut off, or changed."""
    at = random.randrange(len(data))
    if random.random() < 0.5:
        return data[:at]
    return data[:at] + random.randbytes(random.randint(1, 8)) + data[at + 4 :]


_PROCESS = bytes(range(16))
_TOLD = b"\0\0\0\1" + _PROCESS + b"\0\0\0\0" * 2
_GOT = (
    b"".join(
        number.to_bytes(4, "big")
        for number in (1, 2, 0, 3, 1, 3, 1, 0, 4, 1)  # version 1; active 0_3 and 1_3; standby 0_4 with one partition
    )
    + b"\0\1t\0\0\0\4"
)


def test_a_thread_has_the_tasks_of_its_partitions_in_their_order() -> None:
    thread = stream_thread(_TOLD, _GOT, (("b", (3,)), ("a", (3,))))

    assert thread == StreamThread(
        version=1,
        process="00010203-0405-0607-0809-0a0b0c0d0e0f",
        active=(("0", (3,)), ("1", (3,))),
        standby=(("0", (4,)),),
        topics=(("0", ("a",)), ("1", ("b",))),
    )


@pytest.mark.parametrize(
    ("subscription", "assignment", "why"),
    [
        (None, None, "version needs 4 bytes"),
        (b"\0\0\0\0", None, "version 0 is none of Kafka Streams"),
        (_TOLD, b"", "assignment info: version needs 4 bytes"),
        (_TOLD, b"\0\0\0\x0c", "version 12 is not known"),
        (_TOLD, _GOT, "2 active tasks for 1 partitions"),
        (_TOLD, b"\0\0\0\1\x7f\xff\xff\xff", "activeTasks at byte 4 claims 2147483647 elements"),
    ],
)
def test_what_cannot_be_read_says_why(subscription: bytes | None, assignment: bytes | None, why: str) -> None:
    unreadable = stream_thread(subscription, assignment, (("a", (3,)),)).unreadable

    assert why in unreadable


def test_a_newer_version_is_known_by_its_number() -> None:
    assert decode_subscription_info(b"\0\0\0\x0c\0\0\0\x0c") == UnknownVersion(12)
    assert stream_thread(b"\0\0\0\x0c\0\0\0\x0c", None, ()) == StreamThread(version=12)


def test_a_member_with_more_tasks_than_fit_into_memory_is_not_read_and_its_record_is() -> None:
    count = 700_000
    many = b"\0\0\0\1" + count.to_bytes(4, "big") + bytes(8 * count)

    unreadable = stream_thread(_TOLD, many, (("a", (3,)),)).unreadable

    assert "claims 700000 elements: more than any coordinator writes" in unreadable


def test_a_group_metadata_record_of_kafka_streams_has_the_tasks_of_its_members() -> None:
    assigned = b"\0\0" + b"\0\0\0\2" + b"\0\1a\0\0\0\1\0\0\0\3" + b"\0\1b\0\0\0\1\0\0\0\3"
    subscribed = b"\0\0" + b"\0\0\0\2\0\1a\0\1b" + len(_TOLD).to_bytes(4, "big") + _TOLD

    def member(protocol: str) -> Member:
        given = assigned + len(_GOT).to_bytes(4, "big") + _GOT
        return seen_member("m", None, "c", "/h", subscribed, given, protocol_type="consumer", protocol=protocol)

    assert thread_of(member("stream")) == stream_thread(_TOLD, _GOT, (("a", (3,)), ("b", (3,))))
    assert member("range").user_data == _TOLD
