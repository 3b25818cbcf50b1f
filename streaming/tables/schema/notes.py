"""What people and their tools write: mutes of alerts, and marks of what they did."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import BOOLEAN, CLUSTER, DATE, LONG, STRING, TIMESTAMP, Column, Table

_WRITTEN: Final = (
    Column("written_time", TIMESTAMP, "When the row was written, by the writer's clock, UTC"),
    Column("event_date", DATE, "Day of written_time, UTC; partitions the table"),
)

MUTES: Final = Table(
    "mutes",
    "One row per mute of alerts, and one more when it is lifted before its time",
    (
        Column("mute_id", STRING, "Id of the mute"),
        CLUSTER,
        Column("kind", STRING, "What is muted: group, rule, owner, severity"),
        Column(
            "name",
            STRING,
            "Name of the group, rule, team or severity; for a group also a regular expression between slashes",
        ),
        Column("reason", STRING, "Why, in the words of who muted it"),
        Column("made_by", STRING, "User and host that wrote the row"),
        Column("from_time", TIMESTAMP, "When it begins for the first time, UTC"),
        Column("until_time", TIMESTAMP, "When it ends by itself, UTC; for one that repeats, for the first time"),
        Column("repeat_ms", LONG, "It begins again after so long, for a year; NULL for once"),
        Column("ended", BOOLEAN, "Last row of the mute: it was lifted before its time"),
        *_WRITTEN,
    ),
    key=("cluster", "mute_id"),
    newest_by=("written_time",),
    keep_days=400,
    time="written_time",
    closes=True,
)

MARKS: Final = Table(
    "marks",
    "One row per mark: what somebody did outside of Kafka, such as a deploy",
    (
        Column("mark_id", STRING, "Id of the mark: a mark that is sent twice with one id is one mark"),
        CLUSTER,
        Column("text", STRING, "What was done"),
        Column("group_id", STRING, "The group that it concerns; NULL for the whole cluster"),
        Column("made_by", STRING, "User and host that wrote it, or api"),
        Column("mark_time", TIMESTAMP, "When it was done, UTC"),
        *_WRITTEN,
    ),
    key=("cluster", "mark_id"),
    newest_by=("written_time",),
    keep_days=400,
    time="written_time",
)
