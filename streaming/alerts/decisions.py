"""What the alerter keeps in tables: its decisions (`alerts`), and what became of them (`alert_deliveries`).

`alerts` is the memory of the firing state and the outbox; after a restart the other shows what is still to be sent.

One Delta commit holds the transitions of a poll and two transaction ids: the number of the decision, and the round up
to which everything is decided. Both are written or neither is, so a restart continues exactly where the tables are; and
two alerters that decide at the same time cannot both succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from deltalake import Transaction

from streaming.alerts.delivery.items import Delivery
from streaming.alerts.exceptions import AnotherAlerterError
from streaming.alerts.judging.firing import Active
from streaming.alerts.judging.judge import Remembered
from streaming.alerts.rules.rules import EVENTS
from streaming.alerts.transitions import FIRING, Transition, transition_of
from streaming.tables import (
    ALERT_TABLES,
    NOTE_TABLES,
    DeltaLake,
    OpenedTable,
    alerter_place,
    append_once,
    current_sql,
    named_to_arrow,
    table_named,
)
from streaming.times import day_of

# Those of a closed cluster, too: they are still to be ended.
_CURRENT: Final = (
    f"SELECT * FROM ({current_sql(replace(table_named('alerts'), with_cluster=False))}) WHERE cluster = $cluster"  # noqa: S608 - our own view
)

_AFTER: Final = "SELECT * FROM alerts WHERE cluster = $cluster AND decision > $number ORDER BY decision, round"

_SINCE: Final = f"""
SELECT * FROM alerts
WHERE cluster = $cluster AND (epoch_ms(decided_time) >= $decided OR alert_id IN (SELECT alert_id FROM ({_CURRENT})))
ORDER BY decision, round
"""  # noqa: S608 - as above


class Decisions:
    """Reads and writes the decisions on one cluster's alerts."""

    def __init__(self, lake: str, cluster: str) -> None:
        """Open the alerter's tables; creates those that are missing."""
        DeltaLake(lake).create((*ALERT_TABLES, *NOTE_TABLES))
        self._cluster = cluster
        self._decision_id = f"alerts/{cluster}/decision"
        self._round_id = alerter_place(cluster)
        self._table = OpenedTable(lake, table_named("alerts"))
        self._table.refresh()
        self.number = 0
        """Number of the newest known decision."""

    def remember(self) -> Remembered:
        """Read the decisions, and continue from there."""
        self._table.refresh()
        self.number = self._newest()
        alerts = self._rows(_CURRENT)
        versions = {name: self._table.transaction(self._version_id(name)) for name in EVENTS}
        return Remembered(
            self._table.transaction(self._round_id),
            {(alert.rule, alert.entity): Active(alert) for alert in alerts},
            {name: version for name, version in versions.items() if version is not None},
        )

    def have_moved(self) -> bool:
        """Whether the table has decisions that are not known here yet: ours, or another alerter's."""
        self._table.refresh()
        return self._newest() != self.number

    def commit(
        self, transitions: Sequence[Transition], up_to: int | None, now: int, versions: Mapping[str, int]
    ) -> list[Transition]:
        """Write transitions, and the round up to which everything is decided; both or neither.

        Args:
            transitions: In order; without any only the round moves.
            up_to: The round; None before the first.
            now: The alerter's clock, ms.
            versions: By table of events, the version up to which it was judged.

        Raises:
            AnotherAlerterError: Another alerter has decided meanwhile.
        """
        number = self.number + 1
        decided = [replace(one, decided_time=now, decision=number) for one in transitions]
        ids = [Transaction(self._decision_id, number)]
        if up_to is not None:
            ids.append(Transaction(self._round_id, up_to))
        ids += [Transaction(self._version_id(name), version) for name, version in versions.items()]
        rows = named_to_arrow(self._table.table, [one.row() for one in decided])
        if not append_once(self._table.delta, rows, self.have_moved, ids):
            message = f"Another alerter is running for {self._cluster}: run only one."
            raise AnotherAlerterError(message)
        self.number = number
        return decided

    def after(self, number: int) -> list[Transition]:
        """Transitions of decisions after that one, in order."""
        return self._rows(_AFTER, number=number)

    def since(self, decided: int) -> list[Transition]:
        """Transitions decided since a time (ms), and those of alerts that are firing now, in order."""
        return self._rows(_SINCE, decided=decided)

    def _newest(self) -> int:
        return self._table.transaction(self._decision_id) or 0

    def _version_id(self, table: str) -> str:
        return f"alerts/{self._cluster}/seen/{table}"

    def _rows(self, sql: str, **given: Any) -> list[Transition]:
        rows = self._table.ask(sql, {"cluster": self._cluster, **given}, beside_viewers=True)
        return [transition_of(row) for row in rows]


_ADDED = "added"

_ADDED_TARGETS = """
SELECT target, min(epoch_ms(attempt_time)) AS added FROM alert_deliveries
WHERE cluster = $cluster AND outcome = 'added' GROUP BY target
"""

_SETTLED = """
SELECT target, transition_id, bool_and(outcome = 'skipped') AS skipped FROM alert_deliveries
WHERE cluster = $cluster AND outcome IN ('delivered', 'given_up', 'skipped')
  AND transition_id IN (SELECT unnest($transitions::VARCHAR[]))
GROUP BY target, transition_id
"""

# An end that is not to be sent ends it too. What the first message opened is to be closed.
_SENT = """
SELECT target, alert_id, arg_min(incident, attempt_time) FILTER (WHERE state = 'firing' AND outcome = 'delivered')
  AS incident
FROM alert_deliveries
WHERE cluster = $cluster AND outcome IN ('delivered', 'given_up', 'skipped')
GROUP BY target, alert_id
HAVING bool_or(state = 'firing' AND outcome = 'delivered') AND NOT bool_or(state <> 'firing')
"""


@dataclass(frozen=True, slots=True)
class KnownDeliveries:
    """What the table has about one target.

    Attributes:
        added: Time since when it is a target, ms.
        done: Those of the requested transitions that were sent to it, or are not to be sent.
        skipped: Those of them that were not sent, nor given up.
        sent: By occurrence, those whose firing was sent to it, but not their end: the keys of their incidents.
    """

    added: int
    done: frozenset[str]
    skipped: frozenset[str]
    sent: Mapping[str, str]

    def left(self, decided: Iterable[Transition], firing: Collection[str]) -> list[Transition]:
        """Transitions still to be sent, in order; from before it was a target only those that fire now (`firing`)."""
        return [
            d
            for d in decided
            if d.transition_id not in self.done and (d.decided_time >= self.added or d.alert_id in firing)
        ]

    def rerouted(
        self, decided: Iterable[Transition], firing: Collection[str], refusal: Callable[[Transition], str | None]
    ) -> list[Transition]:
        """Transitions that an earlier run did not send here, of alerts that fire now and are to be sent here now.

        By the present settings, not by the reason that was written: that one is a text for people.

        Args:
            decided: Transitions, in order.
            firing: Occurrences that fire now.
            refusal: Why this target never gets a transition; None when it does.
        """
        return [
            d
            for d in decided
            if d.state == FIRING and d.transition_id in self.skipped and d.alert_id in firing and refusal(d) is None
        ]


class Deliveries:
    """Reads and writes the deliveries of one cluster's alerts."""

    def __init__(self, lake: str, cluster: str) -> None:
        """Open the table, which exists (`Decisions` creates it)."""
        self._table = OpenedTable(lake, table_named("alert_deliveries"))
        self._table.refresh()
        self._cluster = cluster
        self._id = f"alerts/{cluster}/deliveries"
        self._number = 0
        self._in_doubt: list[dict[str, object]] = []

    def know(self, targets: Sequence[str], transitions: Sequence[str], now: int) -> Mapping[str, KnownDeliveries]:
        """Read what is known about targets and transitions (ids); unknown targets are added now (ms)."""
        self._table.refresh()
        added = {row["target"]: row["added"] for row in self._rows(_ADDED_TARGETS)}
        settled = self._rows(_SETTLED, transitions=[*transitions])
        sent = self._rows(_SENT)
        new = [target for target in targets if target not in added]
        if new:
            self._append([{"cluster": self._cluster, "target": t, "outcome": _ADDED, "attempt_time": now} for t in new])
        return {
            target: KnownDeliveries(
                added.get(target, now),
                frozenset(row["transition_id"] for row in settled if row["target"] == target),
                frozenset(row["transition_id"] for row in settled if row["target"] == target and row["skipped"]),
                {row["alert_id"]: row["incident"] for row in sent if row["target"] == target},
            )
            for target in targets
        }

    def write(self, deliveries: Sequence[Delivery]) -> None:
        """Write the outcomes of attempts."""
        self._append(
            [
                {
                    "transition_id": d.decided.transition_id,
                    "alert_id": d.decided.alert_id,
                    "cluster": self._cluster,
                    "target": d.target,
                    "rule": d.decided.rule,
                    "state": d.decided.state,
                    "attempt": d.attempt,
                    "outcome": d.outcome,
                    "reason": d.reason,
                    "duration_ms": d.duration_ms,
                    "attempt_time": d.time,
                    "incident": d.incident,
                }
                for d in deliveries
            ]
        )

    def _append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        dated = [{**row, "event_date": day_of(row["attempt_time"])} for row in rows]
        # A commit that failed may have been made all the same: then its rows, which come again, are not new.
        if self._in_doubt:
            self._table.refresh()
            if self._committed() >= self._number:
                dated = [row for row in dated if row not in self._in_doubt]
        self._in_doubt, self._number = dated, self._committed() + 1
        if dated:
            arrow = named_to_arrow(self._table.table, dated)
            ids = [Transaction(self._id, self._number)]
            append_once(self._table.delta, arrow, lambda: self._committed() >= self._number, ids)
        self._in_doubt = []

    def _committed(self) -> int:
        return self._table.transaction(self._id) or 0

    def _rows(self, sql: str, **given: Any) -> list[dict[str, Any]]:
        return self._table.ask(sql, {"cluster": self._cluster, **given}, beside_viewers=True)
