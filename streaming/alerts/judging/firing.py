"""The core: from each rule's observations of a round to the transitions that follow.

`step(state, observed) -> (state, transitions)` knows no clock, no table and no engine. The time of `for` is the rounds'
own (`passed_ms`): it grows from round to round, by three intervals at the most, because nobody knows whether anything
held throughout a longer pause. An alert that is not known for a while (NULL) neither fires nor resolves, and that while
does not count towards `for`.

    nothing ── true ──► pending ── for is over ──► firing
                           │                          │
                           ├──── false ──► resolved ◄─┤
                           └── row ended ──► gone  ◄──┘
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from streaming.alerts.rules.rules import Rule
from streaming.alerts.transitions import FIRING, GONE, PENDING, RESOLVED, Transition, id_of
from streaming.records import SILENT_INTERVALS

AlertKey: TypeAlias = "tuple[str, str]"
"""Rule and entity, as in `RuleRow`."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One row as one rule sees it.

    Attributes:
        rule: Name of the rule.
        entity: Key of the row as a JSON object, without the cluster and without columns that are NULL.
        condition: Whether the rule holds; None when it is not known.
        gone: The row ends its key: the rest of it does not count.
        value: The rule's number; None when it has none.
        message: The message, filled in; used where the condition is true.
        labels: The labels, filled in; used where the condition is true.
    """

    rule: str
    entity: str
    condition: bool | None
    gone: bool = False
    value: float | None = None
    message: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> AlertKey:
        """Key of the alert that the row can begin, keep or end."""
        return self.rule, self.entity


@dataclass(frozen=True, slots=True)
class FeedRound:
    """One closed round.

    Attributes:
        number: Its number.
        time: Its time, ms; only displayed.
        interval_ms: The probe's interval.
        elapsed: Elapsed time over all rounds, ms (`rounds.elapsed_ms`).
    """

    number: int
    time: int
    interval_ms: int
    elapsed: int


@dataclass(frozen=True, slots=True)
class Observed:
    """The news of one round: the rows that it changed, at most one per rule and key.

    Attributes:
        round: The round; None before the first.
        seen: The rows.
        now: The alerter's clock, ms; used where there is no round.
    """

    round: FeedRound | None
    seen: tuple[RuleRow, ...] = ()
    now: int = 0


@dataclass(frozen=True, slots=True)
class Active:
    """An alert that is pending or firing.

    Attributes:
        alert: Its newest transition; while it is pending with value, message and labels of the newest true row.
        known: The newest row is true; False while it is NULL.
        held_ms: Time for which it is known to have been true.
        held_rounds: Rounds after the first in which it is known to have been true.
        quiet_ms: For a rule over events: time since the last row that was true.
        orphaned: Its rule reads rows with another key now, and will never judge it: it is gone.
    """

    alert: Transition
    known: bool = True
    held_ms: int = 0
    held_rounds: int = 0
    quiet_ms: int = 0
    orphaned: bool = False


@dataclass(frozen=True, slots=True)
class FiringState:
    """Everything known between two rounds of one cluster.

    Attributes:
        cluster: The cluster.
        rules: The rules by name.
        newest: The newest round that was judged; None before the first.
        active: Alerts that are pending or firing.
    """

    cluster: str
    rules: Mapping[str, Rule]
    newest: FeedRound | None = None
    active: Mapping[AlertKey, Active] = field(default_factory=dict)


def passed_ms(before: FeedRound, after: FeedRound) -> int:
    """Time that passed between two rounds that follow each other, ms: between 0 and three intervals."""
    return max(0, min(after.elapsed - before.elapsed, SILENT_INTERVALS * after.interval_ms))


def step(state: FiringState, observed: Observed) -> tuple[FiringState, tuple[Transition, ...]]:
    """Judge one round, or the newest one again (by the clock), in which no time passes.

    Alerts whose rule no longer exists, or judges something else now, are gone. Transitions come in the order of the
    rows, then those whose `for` is over.
    """
    passed, passed_rounds = 0, 0
    if state.newest is not None and observed.round is not None and observed.round.number > state.newest.number:
        passed = passed_ms(state.newest, observed.round)
        passed_rounds = 1
    active = dict(state.active)
    lost = [key for key, known in active.items() if known.orphaned or key[0] not in state.rules]
    found = [_moved(active.pop(key).alert, GONE, observed, None) for key in lost]
    for seen in observed.seen:
        key = seen.key
        known = active.get(key)
        if known is None:
            if seen.condition and not seen.gone:
                active[key] = _begin(state.cluster, state.rules[seen.rule], seen, observed)
                found.append(active[key].alert)
        elif seen.gone or seen.condition is False:
            del active[key]
            to, value = (GONE, None) if seen.gone else (RESOLVED, seen.value)
            found.append(_moved(known.alert, to, observed, value))
        else:
            active[key] = _go_on(known, seen)
    for key, known in active.items():
        before = state.active.get(key)
        if known.alert.state != PENDING or before is None or not (before.known and known.known):
            continue
        rule = state.rules[key[0]]
        held = replace(known, held_ms=known.held_ms + passed, held_rounds=known.held_rounds + passed_rounds)
        if passed_rounds and held.held_ms >= rule.hold_ms and held.held_rounds >= rule.hold_rounds:
            held = replace(held, alert=_moved(held.alert, FIRING, observed, held.alert.value))
            found.append(held.alert)
        active[key] = held
    if passed:
        found += _rested(state, active, passed, observed)
    return replace(state, active=active, newest=observed.round or state.newest), tuple(found)


def _rested(state: FiringState, active: dict[AlertKey, Active], passed: int, observed: Observed) -> list[Transition]:
    """Resolve alerts over events without a new one for as long as their rule keeps them; changes `active`."""
    found = []
    for key, known in list(active.items()):
        keep_ms = state.rules[key[0]].keep_ms
        if not keep_ms or key not in state.active:
            continue
        active[key] = replace(known, quiet_ms=known.quiet_ms + passed)
        if active[key].quiet_ms >= keep_ms:
            found.append(_moved(active.pop(key).alert, RESOLVED, observed, None))
    return found


def _begin(cluster: str, rule: Rule, seen: RuleRow, observed: Observed) -> Active:
    number = None if observed.round is None else observed.round.number
    about = json.loads(seen.entity)
    begun = Transition(
        alert_id=id_of(cluster, rule.name, seen.entity, str(number)),
        cluster=cluster,
        rule=rule.name,
        severity=rule.severity,
        group_id=about.get("group_id"),
        topic=about.get("topic"),
        partition=about.get("partition"),
        entity=seen.entity,
        labels=seen.labels,
        state="",
        since=observed.now if observed.round is None else observed.round.time,
        message=seen.message,
    )
    return Active(_moved(begun, PENDING if rule.hold_ms or rule.hold_rounds else FIRING, observed, seen.value))


def _go_on(known: Active, seen: RuleRow) -> Active:
    if seen.condition is None:
        return replace(known, known=False)
    if known.alert.state == FIRING:
        return replace(known, known=True, quiet_ms=0)
    alert = replace(known.alert, value=seen.value, message=seen.message, labels=seen.labels)
    return replace(known, known=True, alert=alert)


def _moved(alert: Transition, state: str, observed: Observed, value: float | None) -> Transition:
    """The transition of an alert into a state."""
    number, time = (None, None) if observed.round is None else (observed.round.number, observed.round.time)
    return replace(
        alert, state=state, from_state=alert.state or None, round=number, round_time=time, late=False, value=value,
        decided_time=0, decision=0,
    )  # fmt: skip
