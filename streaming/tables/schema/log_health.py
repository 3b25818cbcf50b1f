"""What could not be read: records that do not decode, ranges that were gone."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import BINARY, CLUSTER, DATE, INT, LONG, STRING, TIMESTAMP, Column, Table

QUARANTINE: Final = Table(
    "quarantine",
    "One row per record that could not be decoded, up to a hundred per partition and day, and one row that counts the rest; "
    "for unknown types and newer versions one sample per type, version and day, with a count. A day is 24 hours of rounds",
    (
        CLUSTER,
        Column("topic", STRING, "Topic of the record: __consumer_offsets, or one of the probe's"),
        Column("partition", INT, "Its partition"),
        Column("record_offset", LONG, "Its offset"),
        Column("record_time", TIMESTAMP, "Its timestamp, UTC; NULL when that is not a valid time"),
        Column("event_date", DATE, "Day of record_time, UTC"),
        Column("kind", STRING, "undecodable: of a known type; unknown: of an unknown type or a newer version"),
        Column("key_type", INT, "Record type at the head of the key; NULL when the key is null or too short"),
        Column("value_version", INT, "Version at the head of the value; NULL when the value is null or too short"),
        Column("reason", STRING, "What is wrong with it"),
        Column("records", LONG, "Records that this row stands for; in a row that counts, those of the day so far"),
        Column("last_record_offset", LONG, "Offset of the last of them"),
        Column(
            "key",
            BINARY,
            "The key, cut to 64 KiB, or to 4 KiB in a row that counts; NULL when it is null, or not kept",
        ),
        Column("value", BINARY, "The value, cut likewise; NULL when it is null, or not kept"),
        Column("key_size", INT, "Bytes of the whole key; NULL when it is null"),
        Column("value_size", INT, "Bytes of the whole value; NULL when it is null"),
        Column("sha256", STRING, "SHA-256 of key and value together when either was cut; NULL otherwise"),
    ),
    key=("cluster", "topic", "partition", "record_offset"),
    newest_by=("last_record_offset",),
    keep_days=None,
    time="record_time",
    # Timestamps in broken records are whatever somebody wrote: a folder per day of them could be any number.
    partition_by=(),
)

GAPS: Final = Table(
    "gaps",
    "One row per range of a topic that was deleted before we read it, or was truncated after that; per recreated topic; per time without rounds; and per time that the job's state was lost and rebuilt",
    (
        CLUSTER,
        Column(
            "kind",
            STRING,
            "log: records were deleted before we read them; truncated: the cluster has lost records that were read; recreated: the topic was deleted and created again; rounds: no round closed; state: the job's state was rebuilt from what is left of log and rounds",
        ),
        Column("topic", STRING, "Topic of the records; NULL for rounds and state"),
        Column("partition", INT, "Its partition; NULL for rounds and state"),
        Column("from_offset", LONG, "First offset that is missing; NULL for rounds and state"),
        Column("to_offset", LONG, "First offset after the gap; NULL for rounds and state"),
        Column("from_time", TIMESTAMP, "Time of the last round before the gap, UTC; NULL for records"),
        Column("to_time", TIMESTAMP, "Time of the first round after it, UTC; NULL for records and state"),
        Column("reason", STRING, "Why, as far as known"),
    ),
    key=("cluster", "kind", "topic", "partition", "from_offset", "from_time"),
    newest_by=("to_offset", "to_time"),
    keep_days=None,
    time="to_time",
    partition_by=(),
)
