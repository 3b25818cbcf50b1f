"""A transition of an alert: a row of the table `alerts`, and what is delivered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from streaming.tables import table_named
from streaming.times import day_of, epoch_ms

PENDING: Final = "pending"
FIRING: Final = "firing"
RESOLVED: Final = "resolved"
GONE: Final = "gone"

CLOSED: Final = (RESOLVED, GONE)
"""States that end an occurrence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A transition of an alert: what the judge decides, the table `alerts` holds, and a delivery reports.

    Attributes:
        alert_id: Id of the occurrence.
        cluster: The cluster.
        rule: Name of the rule.
        severity: info, warning, critical: the rule's, when the occurrence began.
        group_id: None where the rule is about the cluster.
        topic: None likewise.
        partition: None likewise.
        entity: Key of what the alert is about, as in `RuleRow`.
        labels: Pairs of name and value.
        state: pending, firing, resolved, gone.
        from_state: State before; None when the occurrence begins.
        since: Time of its first round, ms.
        round: Number of the round that decided; None before the first round.
        round_time: Its time, ms; None before the first round.
        late: It was found late.
        value: The rule's number; None where it has none.
        message: The message.
        decided_time: Time of the decision, ms; 0 while it is not written.
        decision: Number of the decision; 0 while it is not written.
    """

    alert_id: str
    cluster: str
    rule: str
    severity: str
    group_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    entity: str = "{}"
    labels: tuple[tuple[str, str], ...] = ()
    state: str
    from_state: str | None = None
    since: int
    round: int | None = None
    round_time: int | None = None
    late: bool = False
    value: float | None = None
    message: str = ""
    decided_time: int = 0
    decision: int = 0

    @property
    def transition_id(self) -> str:
        """The same for the same decision, however often it is made."""
        return id_of(self.alert_id, self.state, str(self.round))

    @property
    def ended(self) -> bool:
        """Whether it ends its occurrence."""
        return self.state in CLOSED

    @property
    def event_date(self) -> int:
        """Its day."""
        return day_of(self.decided_time if self.round_time is None else self.round_time)

    @property
    def at(self) -> int:
        """Time of the round that decided, ms; for a rule by the clock without one, since when it holds."""
        if self.round_time is None:
            return self.since
        return self.round_time

    @property
    def broker(self) -> str | None:
        """Broker of a queue (RocketMQ)."""
        found: str | None = json.loads(self.entity).get("broker")
        return found

    @property
    def notifies(self) -> bool:
        """Whether people hear of it: never of a pending alert, nor of the end of one that was only pending."""
        return self.state != PENDING and not (self.ended and self.from_state == PENDING)

    def row(self) -> dict[str, Any]:
        """Its row of the table `alerts`."""
        return {column.name: getattr(self, column.name) for column in table_named("alerts").columns}


def transition_of(row: Mapping[str, Any]) -> Transition:
    """A transition as a reader of the table `alerts` gives it."""
    given = {field.name: row[field.name] for field in fields(Transition)}
    for name in ("since", "round_time", "decided_time"):
        given[name] = row[name] and epoch_ms(row[name])
    return Transition(**given | {"labels": tuple((pair["name"], pair["value"]) for pair in row["labels"] or ())})


def id_of(*parts: str) -> str:
    """An id of 32 hexadecimal digits."""
    # Lengths before the parts: no two lists of parts give the same bytes.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
