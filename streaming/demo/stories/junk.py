"""Story 10: junk in the offsets log, and groups with hostile names.

From 30 s to 50 s a producer with the client id `__admin_client` (brokers let it write to internal topics) writes 312
undecodable records into partitions of `__consumer_offsets` without any group of the demo. Besides, `HOSTILE_GROUPS`
(quotes, line feeds, HTML, path separators, 4 KB of name) assign and commit like any group, at 10 s and at 60 s.

Expected: a row of `quarantine` for every record of the class `undecodable`; for the classes `unknown_type` and
`newer_version` one sample per type and version with the right counts, or, where the record names a group that
belongs to another partition, its own row as a stray; nothing else changes. The hostile groups are ordinary groups
(`not_applicable`, one commit of partition 0 each time), shown escaped, and none is lost.

The partitions have no live groups because a foreign record puts Kafka's coordinator out of step with its own log. It
unloads the partition's groups and loads them again, and refuses the whole partition if a record of a known type is
broken (seen with Kafka 4.3.1, which skips unknown types). A demo that breaks the groups it watches would show nothing.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from streaming.demo.stage import QUIET_LIBRDKAFKA, Stage, Story
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

_LOG = "__consumer_offsets"

_COPIES = 24
"""Copies of each kind: a few hundred records in total."""

_SEED = 10
"""Fixed, so that every demo writes the same junk."""

_REAL_COMMIT_VALUE = (
    struct.pack(">hqi", 3, 1234, 5) + struct.pack(">h", 4) + b"meta" + struct.pack(">q", 1_760_000_000_000)
)
"""OffsetCommit value version 3: offset, leader epoch, metadata, commit timestamp."""

_GROUP_HEAD = struct.pack(">h", 3) + struct.pack(">h", 8) + b"consumer" + struct.pack(">i", 7)
"""GroupMetadata value version 3 up to and including the generation."""


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


def junk() -> Iterator[JunkRecord]:
    """Yield the records of this story, the same in every demo, kinds mixed."""
    chance = random.Random(_SEED)  # noqa: S311  (no secret)
    for copy in range(_COPIES):
        group = f"junk-{copy}"
        key = _commit_key(group)
        group_key = struct.pack(">h", 2) + _string(group)
        cut = chance.randrange(len(_REAL_COMMIT_VALUE))
        yield JunkRecord("truncated commit value", "undecodable", key, _REAL_COMMIT_VALUE[:cut])
        cut = chance.randrange(2, len(key))
        yield JunkRecord("truncated commit key", "undecodable", key[:cut], _REAL_COMMIT_VALUE)
        yield JunkRecord("empty key", "undecodable", b"\0"[: copy % 2], _REAL_COMMIT_VALUE)
        yield JunkRecord("negative version", "undecodable", key, struct.pack(">h", -1 - copy) + _REAL_COMMIT_VALUE[2:])
        bad = struct.pack(">hh", 1, -2 - copy) + key[4:]
        yield JunkRecord("negative length", "undecodable", bad, _REAL_COMMIT_VALUE)
        bad = struct.pack(">hh", 1, 4) + b"\xff\xfe\xc3\x28" + _string("orders") + struct.pack(">i", copy)
        yield JunkRecord("invalid UTF-8", "undecodable", bad, _REAL_COMMIT_VALUE)
        counts = struct.pack(">hhqi", -1, -1, 1_760_000_000_000, -5 - copy)
        yield JunkRecord("negative member count", "undecodable", group_key, _GROUP_HEAD + counts)
        counts = struct.pack(">hhqi", -1, -1, 1_760_000_000_000, 2**31 - 1 - copy)
        yield JunkRecord("two billion members", "undecodable", group_key, _GROUP_HEAD + counts)
        noise = chance.randbytes(chance.randrange(3, 60))
        yield JunkRecord("random commit key", "undecodable", struct.pack(">hh", 1, 32_000) + noise, _REAL_COMMIT_VALUE)
        yield JunkRecord("random group value", "undecodable", group_key, struct.pack(">hh", 2, 32_000) + noise)
        unknown = struct.pack(">h", (77, 300, -3)[copy % 3])
        yield JunkRecord("unknown key type", "unknown_type", unknown + noise, b"\0\0" + noise)
        yield JunkRecord("newer commit value", "newer_version", key, struct.pack(">h", 9) + noise)
        yield JunkRecord("newer group value", "newer_version", group_key, struct.pack(">h", 77) + noise)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _commit_key(group: str) -> bytes:
    return struct.pack(">h", 1) + _string(group) + _string("orders") + struct.pack(">i", 0)


def _write_junk(stage: Stage, records: list[JunkRecord]) -> None:
    count = len(stage.admin.describe_topics([_LOG])[0]["partitions"])
    lived_in = {partition_for(group, count) for group in stage.groups}
    partitions = [partition for partition in range(count) if partition not in lived_in]
    producer = Producer(
        {"bootstrap.servers": stage.bootstrap, "client.id": "__admin_client", "log_level": QUIET_LIBRDKAFKA}
    )
    for number, record in enumerate(records):

        def written(error: KafkaError | None, message: Message, record: JunkRecord = record) -> None:
            stage.journal.write(
                10,
                "junk" if error is None else "junk refused",
                kind=record.kind,
                expected=record.expected,
                partition=message.partition(),
                offset=message.offset(),
                key=record.key.hex(),
                value=record.value.hex(),
                error=None if error is None else str(error),
            )

        producer.produce(
            _LOG,
            record.value,
            record.key,
            partition=partitions[number % len(partitions)],
            on_delivery=written,
        )
    producer.flush(20)


def _commit_once(stage: Stage, offset: int) -> None:
    for group in HOSTILE_GROUPS:
        consumer = KafkaConsumer(
            bootstrap_servers=stage.bootstrap, client_id="hostile", group_id=group, enable_auto_commit=False
        )
        partition = TopicPartition("orders", 0)
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(offset, "<i>meta</i>\n'\"", -1)}, timeout_ms=10_000)
        consumer.close()
        stage.ledger.committed(10, group, {("orders", 0): offset})


def _play(stage: Stage) -> None:
    stage.until(10)
    _commit_once(stage, 1)
    stage.step(10, "groups with hostile names have committed")
    records = list(junk())
    quarter = len(records) // 4 + 1
    for part in range(4):
        stage.until(30 + 5 * part)
        _write_junk(stage, records[part * quarter : (part + 1) * quarter])
        stage.step(10, "junk was written into the offsets log")
    stage.until(60)
    _commit_once(stage, 2)


STORY = Story(
    number=10,
    title="junk in the offsets log, hostile group names",
    groups=HOSTILE_GROUPS,
    topics={"orders": 6},
    play=_play,
)
