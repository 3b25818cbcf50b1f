"""What the alerter writes, transitions of alerts and their deliveries; and what people write: mutes of alerts, and marks of what they did."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import (
    BOOLEAN,
    CLUSTER,
    DATE,
    DOUBLE,
    INT,
    LABELS,
    LONG,
    STRING,
    TIMESTAMP,
    Column,
    Table,
)

ALERTS: Final = Table(
    "alerts",
    "One row per transition of an alert; the alerter's outbox",
    (
        Column(
            "transition_id", STRING, "Id of this transition: the same decision has the same id, also when sent twice"
        ),
        Column("alert_id", STRING, "Id of this occurrence: shared by its pending, firing, and resolved or gone"),
        CLUSTER,
        Column("rule", STRING, "Name of the rule"),
        Column("severity", STRING, "info, warning, critical"),
        Column("group_id", STRING, "Group id; NULL for a rule about the cluster"),
        Column("topic", STRING, "Topic; NULL for a rule about groups or the cluster"),
        Column("partition", INT, "Partition; NULL for a rule about groups or the cluster"),
        Column(
            "entity",
            STRING,
            "Key of the row that the alert is about, as a JSON object without the cluster and without columns that are NULL",
        ),
        Column("labels", LABELS, "The rule's labels, filled in, by name"),
        Column(
            "state",
            STRING,
            "pending: true, but not for long enough yet; firing; resolved: no longer true; gone: the group, partition or rule no longer exists",
        ),
        Column("from_state", STRING, "Previous state: pending or firing; NULL when the occurrence begins"),
        Column("ended", BOOLEAN, "Last row of this occurrence: resolved or gone"),
        Column(
            "since",
            TIMESTAMP,
            "Time of the first round of this occurrence, UTC; for silence, of the last round before it",
        ),
        Column("round", LONG, "Round that decided; for silence the newest round; NULL when there was none yet"),
        Column("round_time", TIMESTAMP, "Time of that round, UTC; NULL when there was none yet"),
        Column("event_date", DATE, "Day of round_time, or of decided_time without a round, UTC; partitions the table"),
        Column("late", BOOLEAN, "Whether it was found late: round_time was older than late_after"),
        Column("value", DOUBLE, "The rule's value at the round; NULL when it has none"),
        Column("message", STRING, "The rule's message, filled in"),
        Column("decided_time", TIMESTAMP, "When the alerter decided, by its own clock, UTC"),
        Column("decision", LONG, "Number of the alerter's commit; grows by one"),
    ),
    key=("cluster", "rule", "entity"),
    newest_by=("decision", "round"),
    keep_days=400,
    time="round_time",
    closes=True,
    with_cluster=True,
)

ALERT_DELIVERIES: Final = Table(
    "alert_deliveries",
    "One row per attempt to deliver a transition to a target, or per decision not to",
    (
        Column("transition_id", STRING, "Id of the transition; NULL in the row that says that a target was added"),
        Column("alert_id", STRING, "Id of its occurrence"),
        CLUSTER,
        Column("target", STRING, "Name of the target in the settings; its address is a secret and is stored nowhere"),
        Column("rule", STRING, "Name of the rule"),
        Column("state", STRING, "State that was reported: firing, resolved, gone"),
        Column("attempt", INT, "Number of the attempt, from 1; NULL when none was made"),
        Column(
            "outcome",
            STRING,
            "delivered; failed: will be retried; given_up: will not be retried; skipped: not sent; held: waits until a mute is over; added: a new target, which gets of earlier alerts only those that still fire",
        ),
        Column("reason", STRING, "Why it was not delivered; NULL otherwise"),
        Column("duration_ms", LONG, "Duration of the attempt, ms; NULL when none was made"),
        Column("attempt_time", TIMESTAMP, "Time by the alerter's clock, UTC"),
        Column("event_date", DATE, "Day of attempt_time, UTC; partitions the table"),
        Column(
            "incident",
            STRING,
            "Key of the incident at the target: alert_id, or the key of a digest; NULL where nothing was delivered",
        ),
    ),
    key=("transition_id", "target"),
    newest_by=("attempt_time", "attempt"),
    keep_days=400,
    time="attempt_time",
)

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
