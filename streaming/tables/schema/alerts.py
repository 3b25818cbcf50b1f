"""What the alerter writes: transitions of alerts, and their deliveries."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.shared import CLUSTER
from streaming.tables.schema.table import Column, Table
from streaming.tables.schema.types import BOOLEAN, DATE, DOUBLE, INT, LABELS, LONG, STRING, TIMESTAMP

__all__ = ["ALERTS", "ALERT_DELIVERIES"]

ALERTS: Final = Table(
    "alerts",
    "One row per transition of an alert; written by the alerter, and its outbox",
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
            "Key of the row that the rule read, as a JSON object without the cluster and without columns that are NULL",
        ),
        Column("labels", LABELS, "The rule's labels, filled in, by name"),
        Column(
            "state",
            STRING,
            "pending: true, but not yet for as long as the rule asks; firing; resolved: no longer true; gone: what it spoke of, or its rule, is gone",
        ),
        Column("from_state", STRING, "State before: pending or firing; NULL when the occurrence begins"),
        Column("ended", BOOLEAN, "Last row of this occurrence: resolved or gone"),
        Column(
            "since",
            TIMESTAMP,
            "Time of the first round of this occurrence, UTC; of silence, time of the last round before it",
        ),
        Column("round", LONG, "Round that decided; of silence the newest round; NULL when there was none yet"),
        Column("round_time", TIMESTAMP, "Time of that round, UTC; NULL when there was none yet"),
        Column("event_date", DATE, "Day of round_time, or of decided_time without a round, UTC; partitions the table"),
        Column("late", BOOLEAN, "Found late: round_time was then older than the alerter's late_after"),
        Column("value", DOUBLE, "The rule's value at the round; NULL when it has none"),
        Column("message", STRING, "The rule's message, filled in"),
        Column("decided_time", TIMESTAMP, "When the alerter decided, by its own clock, UTC"),
        Column("decision", LONG, "Number of the alerter's commit, grows by one"),
    ),
    key=("cluster", "rule", "entity"),
    newest_by=("decision", "round"),
    closes=True,
)

ALERT_DELIVERIES: Final = Table(
    "alert_deliveries",
    "One row per attempt to deliver a transition to a target, or per reason not to",
    (
        Column("transition_id", STRING, "Id of the transition; NULL in the row that says that a target was added"),
        Column("alert_id", STRING, "Id of its occurrence"),
        CLUSTER,
        Column("target", STRING, "Name of the target in the settings; its address is a secret and stands nowhere"),
        Column("rule", STRING, "Name of the rule"),
        Column("state", STRING, "State that was told: firing, resolved, gone"),
        Column("attempt", INT, "Number of the attempt, from 1; NULL when none was made"),
        Column(
            "outcome",
            STRING,
            "delivered: the target took it; failed: tried again later; given_up: not tried again; skipped: not to be sent; added: the target is new, of what was before it gets only what still fires",
        ),
        Column("reason", STRING, "Why, where it was not delivered; NULL otherwise"),
        Column("duration_ms", LONG, "Time that the attempt took, ms; NULL when none was made"),
        Column("attempt_time", TIMESTAMP, "When, by the alerter's clock, UTC"),
        Column("event_date", DATE, "Day of attempt_time, UTC; partitions the table"),
        Column(
            "incident",
            STRING,
            "Key under which it was delivered: alert_id, or of a rule's incident that many alerts share (a digest); NULL where nothing was",
        ),
    ),
    key=("transition_id", "target"),
    newest_by=("attempt_time", "attempt"),
)
