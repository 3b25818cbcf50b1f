"""The first start on an estate that has lived for years: one summary of what would fire, and then a person decides.

Nobody wants three hundred alerts about what has been so for months. So until somebody accepts the summary, nothing but
alerts about Evenkeel itself is sent. What the summary counts is accepted with it; what has fired since is delivered
then, if it still fires. Where nothing fires, there is nothing to accept, and delivery begins by itself.

Where it stands is kept in Delta's transaction ids of the table `alerts`, which survive everything that rows do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable, Transaction
from deltalake.exceptions import TableNotFoundError

from streaming.exceptions import SetupError
from streaming.tables import DeltaLake, append_once, table_named


@dataclass(frozen=True, slots=True)
class FirstStart:
    """Where a first start stands.

    Attributes:
        began: Delivery waits, or has waited, for acceptance.
        summary: Number of the newest decision that the summary counted; None before it was made.
        told_s: When the summary was made, seconds since the epoch.
        accepted: Decisions up to this number were accepted; None before somebody did.
    """

    began: bool = False
    summary: int | None = None
    told_s: int | None = None
    accepted: int | None = None

    @property
    def waits(self) -> bool:
        """Whether nothing may be sent yet."""
        return self.began and self.accepted is None


@dataclass(frozen=True, slots=True)
class FirstStartIds:
    """Names of the transaction ids; their versions are numbers of decisions plus one, because no version is 0."""

    began: str
    summary: str
    told_s: str
    accepted: str

    @classmethod
    def of(cls, cluster: str) -> FirstStartIds:
        """Those of a cluster."""
        return cls(*(f"alerts/{cluster}/first_start/{what}" for what in ("began", "summary", "told", "accepted")))

    def read(self, table: DeltaTable) -> FirstStart:
        """What a table's newest version says."""

        def number(name: str) -> int | None:
            found = table.transaction_version(name)
            return None if found is None else found - 1

        began = number(self.began) is not None
        return FirstStart(began, number(self.summary), number(self.told_s), number(self.accepted))

    def write(self, table: DeltaTable, change: FirstStart) -> None:
        """Write what a change has; a number that is there already stays."""
        schema = table_named("alerts").arrow_schema
        given = {
            self.began: 0 if change.began else None,
            self.summary: change.summary,
            self.told_s: change.told_s,
            self.accepted: change.accepted,
        }
        for name, number in given.items():
            if number is not None:
                is_there = _is_there(table, name)
                rows = pa.Table.from_pylist([], schema=pa.schema([field.remove_metadata() for field in schema]))
                append_once(table, rows, is_there, [Transaction(name, number + 1)])


def _is_there(table: DeltaTable, name: str) -> Callable[[], bool]:
    return lambda: table.transaction_version(name) is not None


def accept(lake: str, cluster: str) -> str:
    """Accept the summary of a first start, so that delivery begins; returns a sentence.

    Raises:
        SetupError: No alerter has run on this lake.
    """
    try:
        table = DeltaTable(DeltaLake(lake).path("alerts"))
    except TableNotFoundError:
        message = f"No alerter has run on the lake {lake} yet: start it, and accept its summary then."
        raise SetupError(message) from None
    ids = FirstStartIds.of(cluster)
    found = ids.read(table)
    if found.accepted is not None:
        return f"Delivery for the cluster {cluster} was accepted before: alerts are sent."
    if not found.began:
        return f"There is nothing to accept for the cluster {cluster}: no first start waits there."
    decided = table.transaction_version(f"alerts/{cluster}/decision") or 0
    up_to = decided if found.summary is None else found.summary
    ids.write(table, FirstStart(accepted=up_to))
    return f"Accepted: alerts of the cluster {cluster} that fire from now on are sent. The alerter notices in seconds."
