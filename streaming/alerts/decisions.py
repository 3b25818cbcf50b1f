"""The decisions in the tables: `alerts` is the memory of the firing state and the outbox of the deliveries.

One Delta commit holds the transitions of a poll and two transaction ids: the number of the decision, and the round up
to which everything is decided. Both are written or neither is, so a restart continues exactly where the tables are; and
two alerters that decide at the same time cannot both succeed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from deltalake import Transaction

from streaming.alerts.exceptions import AnotherAlerterError
from streaming.alerts.judging.firing import Active
from streaming.alerts.judging.judge import Remembered
from streaming.alerts.rules.rules import EVENTS
from streaming.alerts.transitions import Transition, transition_of
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
