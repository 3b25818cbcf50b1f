"""The decisions in the tables: `alerts` is the memory of the firing state and the outbox of the deliveries.

One Delta commit holds the transitions of a poll and two transaction ids: the number of the decision, and the round up
to which everything is decided. Both are written or neither is, so a restart continues exactly where the tables are; and
two alerters that decide at the same time cannot both succeed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deltalake import DeltaTable, Transaction

from streaming.alerts.exceptions import AnotherAlerterError
from streaming.alerts.judging.evaluation import Remembered
from streaming.alerts.judging.firing import Active, Subject, Transition
from streaming.alerts.rules.expressions import fetched
from streaming.alerts.rules.rules import EVENTS
from streaming.alerts.transitions import CLOSED, PENDING, TransitionRow
from streaming.tables import (
    ALERT_TABLES,
    NOTE_TABLES,
    VIEWS,
    DeltaLake,
    alerter_place,
    all_rows,
    append_once,
    in_memory,
    named_to_arrow,
    table_named,
)
from streaming.times import DAY_MS, epoch_ms


class Decisions:
    """Reads and writes the decisions on one cluster's alerts."""

    def __init__(self, lake: str, cluster: str) -> None:
        """Open the alerter's tables; creates those that are missing."""
        self._lake = DeltaLake(lake)
        self._lake.create((*ALERT_TABLES, *NOTE_TABLES))
        self._cluster = cluster
        self._decision_id = f"alerts/{cluster}/decision"
        self._round_id = alerter_place(cluster)
        self._table = DeltaTable(self._lake.path("alerts"))
        self._decision = 0

    def remember(self) -> Remembered:
        """Read the decisions, and continue from there."""
        self._table.update_incremental()
        self._decision = self._table.transaction_version(self._decision_id) or 0
        rows = self._rows(f"SELECT * FROM ({VIEWS['alerts_current']}) WHERE cluster = ?", [self._cluster])  # noqa: S608
        return Remembered(
            self._table.transaction_version(self._round_id),
            {(row["rule"], row["entity"]): _active(row) for row in rows},
            {
                name: at
                for name in EVENTS
                if (at := self._table.transaction_version(self._version_id(name))) is not None
            },
        )

    def have_moved(self) -> bool:
        """Whether the table has decisions that are not known here yet: ours, or another alerter's."""
        self._table.update_incremental()
        return (self._table.transaction_version(self._decision_id) or 0) != self._decision

    def commit(
        self,
        transitions: Sequence[Transition],
        up_to: int | None,
        now: int,
        late: Sequence[bool],
        versions: Mapping[str, int],
    ) -> list[TransitionRow]:
        """Write transitions, and the round up to which everything is decided; both or neither.

        Args:
            transitions: In order; without any only the round moves.
            up_to: The round; None before the first.
            now: The alerter's clock, ms.
            late: For each transition, whether it was found late.
            versions: By table of events, the version up to which it was judged.

        Raises:
            AnotherAlerterError: Another alerter has decided meanwhile.
        """
        number = self._decision
        named = [
            _alert_row(self._cluster, t, now, is_late, number + 1) for t, is_late in zip(transitions, late, strict=True)
        ]
        ids = [Transaction(self._decision_id, number + 1)]
        if up_to is not None:
            ids.append(Transaction(self._round_id, up_to))
        ids += [Transaction(self._version_id(name), version) for name, version in versions.items()]
        if not append_once(self._table, named_to_arrow(table_named("alerts"), named), self.have_moved, ids):
            raise _another(self._cluster)
        self._decision = number + 1
        return [_decided(row) for row in named]

    def _version_id(self, table: str) -> str:
        return f"alerts/{self._cluster}/seen/{table}"

    @property
    def number(self) -> int:
        """Number of the newest known decision."""
        return self._decision

    def after(self, number: int) -> list[TransitionRow]:
        """Transitions of decisions after that one, in order."""
        sql = "SELECT * FROM alerts WHERE cluster = ? AND decision > ? ORDER BY decision, round"
        return [transition_of(row) for row in self._rows(sql, [self._cluster, number])]

    def since(self, decided: int) -> list[TransitionRow]:
        """Transitions decided since a time (ms), and those of alerts that are firing now, in order."""
        current = f"SELECT alert_id FROM ({VIEWS['alerts_current']}) AS c"  # noqa: S608 - our own view
        sql = (
            f"SELECT * FROM alerts WHERE cluster = ? AND (epoch_ms(decided_time) >= ? OR alert_id IN ({current})) "  # noqa: S608
            "ORDER BY decision, round"
        )
        return [transition_of(row) for row in self._rows(sql, [self._cluster, decided])]

    def _rows(self, sql: str, given: list[Any]) -> list[dict[str, Any]]:
        with in_memory() as connection:
            connection.register("alerts", all_rows(table_named("alerts"), self._table, self._lake.path("alerts")))
            rows: list[dict[str, Any]] = fetched(connection, sql, given).to_pylist()
            return rows


def decided_of(cluster: str, transition: Transition, now: int, late: bool) -> TransitionRow:
    """A transition as its future row, for one that cannot be written now."""
    return _decided(_alert_row(cluster, transition, now, late, decision=0))


def _alert_row(cluster: str, transition: Transition, now: int, late: bool, decision: int) -> dict[str, Any]:
    alert, subject = transition.alert, transition.alert.subject
    time = transition.time if transition.round is not None else None
    return {
        "transition_id": transition.transition_id,
        "alert_id": alert.alert_id,
        "cluster": cluster,
        "rule": transition.rule,
        "severity": alert.severity,
        "group_id": subject.group_id,
        "topic": subject.topic,
        "partition": subject.partition,
        "entity": subject.entity,
        "labels": list(alert.labels),
        "state": transition.state,
        "from_state": transition.from_state,
        "ended": transition.state in CLOSED,
        "since": alert.since,
        "round": transition.round,
        "round_time": time,
        "event_date": (now if time is None else time) // DAY_MS,
        "late": late,
        "value": transition.value,
        "message": alert.message,
        "decided_time": now,
        "decision": decision,
    }


def _another(cluster: str) -> AnotherAlerterError:
    message = f"Another alerter is running for {cluster}: run only one."
    return AnotherAlerterError(message)


def _active(row: Mapping[str, Any]) -> Active:
    return Active(
        subject=Subject(row["entity"], row["group_id"], row["topic"], row["partition"]),
        severity=row["severity"],
        state=row["state"],
        alert_id=row["alert_id"],
        since=epoch_ms(row["since"]),
        since_round=row["round"] if row["state"] == PENDING else None,
        value=row["value"],
        message=row["message"],
        labels=_labels(row["labels"]),
    )


def _decided(row: Mapping[str, Any]) -> TransitionRow:
    return TransitionRow(
        transition_id=row["transition_id"],
        alert_id=row["alert_id"],
        cluster=row["cluster"],
        rule=row["rule"],
        severity=row["severity"],
        group_id=row["group_id"],
        topic=row["topic"],
        partition=row["partition"],
        labels=_labels(row["labels"]),
        state=row["state"],
        from_state=row["from_state"],
        since=row["since"],
        time=row["round_time"],
        round=row["round"],
        late=row["late"],
        value=row["value"],
        message=row["message"],
        decided=row["decided_time"],
        decision=row["decision"],
        entity=row["entity"] or "",
    )


def transition_of(row: Mapping[str, Any]) -> TransitionRow:
    """A row as a reader of the table `alerts` gives it."""
    times = {
        name: None if row[name] is None else epoch_ms(row[name]) for name in ("since", "round_time", "decided_time")
    }
    return _decided({**row, **times})


def _labels(pairs: Any) -> tuple[tuple[str, str], ...]:
    return tuple((p["name"], p["value"]) if isinstance(p, dict) else (p[0], p[1]) for p in pairs or ())
