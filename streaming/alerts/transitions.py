"""A transition of an alert as a row of the table `alerts`, with what had happened before it: what is delivered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from streaming.notes import Mark

PENDING: Final = "pending"
FIRING: Final = "firing"
RESOLVED: Final = "resolved"
GONE: Final = "gone"

CLOSED: Final = (RESOLVED, GONE)
"""States that end an occurrence."""


@dataclass(frozen=True, slots=True)
class DecisionBefore:
    """A group's newest decision before an alert.

    Attributes:
        decision: Its number.
        time: When, ms.
        causes: Words of docs/causes.md with their evidence: "member_gone (a on 10.0.0.1)".
    """

    decision: int
    time: int
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerDown:
    """A broker of the cluster that rounds missed.

    Attributes:
        broker: Its node id.
        host: Its host; None where it is not known.
        since: Time of the first round without it, ms.
        is_back: The newest round before the alert had it again.
    """

    broker: int
    host: str | None
    since: int
    is_back: bool


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What had happened before an alert.

    Attributes:
        rebalance: The group's newest decision; None where none is known, and for alerts about the cluster.
        brokers: Brokers of the cluster that went down in the last half hour, the newest first.
        coordinators: Groups of the cluster whose coordinator moved in the last half hour.
        marks: Marks of the last hour that concern it, the oldest first.
    """

    rebalance: DecisionBefore | None = None
    brokers: tuple[BrokerDown, ...] = ()
    coordinators: int = 0
    marks: tuple[Mark, ...] = ()


NOTHING: Final = Circumstances()


@dataclass(frozen=True, slots=True)
class TransitionRow:
    """A transition as a row of the table: what a delivery reports.

    Attributes:
        transition_id: Its id.
        alert_id: Id of the occurrence.
        cluster: The cluster.
        rule: Name of the rule.
        severity: info, warning, critical.
        group_id: None where the rule is about the cluster.
        topic: None likewise.
        partition: None likewise.
        labels: Pairs of name and value.
        state: pending, firing, resolved, gone.
        from_state: State before.
        since: Time of its first round, ms.
        time: Time of the round that decided, ms; None before the first round.
        round: Number of that round.
        late: It was found late.
        value: The rule's number.
        message: The message.
        decided: Time of the decision, ms.
        decision: Number of the decision; 0 while it is not written.
        entity: Key of what the alert is about, as in `Subject`.
        circumstances: What had happened before; filled in for messages, and not written.
    """

    transition_id: str
    alert_id: str
    cluster: str
    rule: str
    severity: str
    group_id: str | None
    topic: str | None
    partition: int | None
    labels: tuple[tuple[str, str], ...]
    state: str
    from_state: str | None
    since: int
    time: int | None
    round: int | None
    late: bool
    value: float | None
    message: str
    decided: int
    decision: int = 0
    entity: str = ""
    circumstances: Circumstances = NOTHING

    @property
    def broker(self) -> str | None:
        """Broker of the partition, where each broker numbers its own (RocketMQ); None elsewhere."""
        key = json.loads(self.entity) if self.entity else {}
        found = key.get("broker") if isinstance(key, dict) else None
        return None if found is None else str(found)

    @property
    def closes(self) -> bool:
        """Whether it ends its occurrence."""
        return self.state in CLOSED

    @property
    def notifies(self) -> bool:
        """Whether people hear of it: never of a pending alert, nor of the end of one that was only pending."""
        return self.state != PENDING and not (self.closes and self.from_state == PENDING)
