"""What the demo writes to a broker as no ordinary client does: records of the offsets log, and hostile names.

A foreign record puts Kafka's coordinator out of step with its own log: it unloads the partition's groups and loads them
again, and refuses the whole partition if a record of a known type is broken (seen with Kafka 4.3.1, which skips unknown
types). So junk goes into partitions without any group of the demo, which would otherwise break the groups it watches.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from streaming.demo.stage import QUIET_LIBRDKAFKA, Cast, Stage
from streaming.offsets_log import partition_for

HOSTILE_GROUPS: tuple[str, ...] = (
    'quote\'d "group"; DROP TABLE lag; --',
    "two\nlines\r\nand\ttabs",
    "<script>alert('group')</script><b>&amp;</b>",
    "../../../etc/passwd",
    "C:\\temp\\%USERPROFILE%\\${jndi:ldap://127.0.0.1/a}",
    "emoji 😀 and \u202eright to left\u202c",
    "__consumer_offsets",
    "null",
    " leading and trailing ",
    "long-" + "x" * 4_000,
)
"""Group ids that a broker accepts. Kafka 4.3.1 accepts even the empty one, but then its `kafka-consumer-groups
--describe --all-groups` fails for all groups, so it is not among them."""

LOG = "__consumer_offsets"

_REAL_COMMIT_VALUE = (
    struct.pack(">hqi", 3, 1234, 5) + struct.pack(">h", 4) + b"meta" + struct.pack(">q", 1_760_000_000_000)
)
"""OffsetCommit value version 3: offset, leader epoch, metadata, commit timestamp."""

_GROUP_HEAD = struct.pack(">h", 3) + struct.pack(">h", 8) + b"consumer" + struct.pack(">i", 7)
"""GroupMetadata value version 3 up to and including the generation."""

_AGE_MS = 2 * 3_600_000


@dataclass(frozen=True, slots=True)
class JunkRecord:
    """One record: what is wrong with it, how a reader must classify it, and its bytes.

    Attributes:
        kind: The defect, in a few words.
        expected: `undecodable`, `unknown_type` or `newer_version`.
        key: Key bytes; brokers refuse a null key in a compacted topic.
        value: Value bytes.
    """

    kind: str
    expected: str
    key: bytes
    value: bytes


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


_KEY = struct.pack(">h", 1) + _string("junk") + _string("orders") + struct.pack(">i", 0)

_GROUP_KEY = struct.pack(">h", 2) + _string("junk")

_NO_UTF8_KEY = struct.pack(">hh", 1, 4) + b"\xff\xfe\xc3\x28" + _string("orders") + struct.pack(">i", 0)

_ENDLESS_GROUP = _GROUP_HEAD + struct.pack(">hhqi", -1, -1, 1_760_000_000_000, 2**31 - 1)
"""A value that claims two billion members."""

JUNK = (
    JunkRecord("truncated commit value", "undecodable", _KEY, _REAL_COMMIT_VALUE[:7]),
    JunkRecord("empty key", "undecodable", b"", _REAL_COMMIT_VALUE),
    JunkRecord("invalid UTF-8", "undecodable", _NO_UTF8_KEY, _REAL_COMMIT_VALUE),
    JunkRecord("two billion members", "undecodable", _GROUP_KEY, _ENDLESS_GROUP),
    JunkRecord("unknown key type", "unknown_type", struct.pack(">h", 77) + b"later", b"\0\0"),
    JunkRecord("newer commit value", "newer_version", _KEY, struct.pack(">h", 9) + b"later"),
)
"""A record of each kind."""


def write_junk(cast: Cast, records: Iterable[JunkRecord]) -> None:
    """Write records into partitions of the log without any group of the demo, with a line of the journal each."""
    stage = cast.stage
    count = len(stage.admin.describe_topics([LOG])[0]["partitions"])
    lived_in = {partition_for(group, count) for group in stage.groups}
    partitions = [partition for partition in range(count) if partition not in lived_in]
    producer = _log_producer(stage)
    for number, record in enumerate(records):

        def written(error: KafkaError | None, message: Message, record: JunkRecord = record) -> None:
            stage.journal.write(
                "junk" if error is None else "junk refused",
                kind=record.kind,
                expected=record.expected,
                partition=message.partition(),
                offset=message.offset(),
                key=record.key.hex(),
                value=record.value.hex(),
                error=None if error is None else str(error),
            )

        partition = partitions[number % len(partitions)]
        producer.produce(LOG, record.value, record.key, partition=partition, on_delivery=written)
    producer.flush(20)
    cast.step("junk was written into the offsets log")


def commit_for_hostile_groups(cast: Cast, offset: int) -> None:
    """Let each of them assign partition 0 of `orders` to itself and commit."""
    for group in HOSTILE_GROUPS:
        consumer = KafkaConsumer(
            bootstrap_servers=cast.stage.bootstrap, client_id="hostile", group_id=group, enable_auto_commit=False
        )
        partition = TopicPartition("orders", 0)
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(offset, "<i>meta</i>\n'\"", -1)}, timeout_ms=10_000)
        consumer.close()
        cast.stage.ledger.committed(group, {("orders", 0): offset})
    cast.step("groups with hostile names have committed")


def write_past(cast: Cast, group: str) -> None:
    """Write the creation of a group two hours ago: a GroupMetadata record, version 3, of generation 0 without members.

    It must come before the group's first member: a coordinator whose log has a record that it did not write loads the
    partition again, with all its groups. The log exists as soon as any member has joined.
    """
    stage = cast.stage
    while (count := len(stage.admin.describe_topics([LOG])[0]["partitions"])) == 0:
        stage.sleep(1)
    created = round(time.time() * 1000) - _AGE_MS
    key = struct.pack(">h", 2) + _string(group)
    value = struct.pack(">h", 3) + _string("consumer") + struct.pack(">ihhqi", 0, -1, -1, created, 0)
    producer = _log_producer(stage)
    producer.produce(LOG, value, key, partition=partition_for(group, count), timestamp=created)
    producer.flush(20)


def _log_producer(stage: Stage) -> Producer:
    """With a client id by which brokers let it write to internal topics."""
    return Producer(
        {"bootstrap.servers": stage.bootstrap, "client.id": "__admin_client", "log_level": QUIET_LIBRDKAFKA}
    )
