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

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from streaming.alerts.judging.chunks import FeedRound
from streaming.alerts.rules.rules import Rule
from streaming.alerts.transitions import FIRING, GONE, PENDING, RESOLVED
from streaming.records import SILENT_INTERVALS

AlertKey: TypeAlias = "tuple[str, str]"
"""Rule and entity (`Subject.entity`)."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What an alert is about.

    Attributes:
        entity: Key of the row as a JSON object, without the cluster and without columns that are NULL.
        group_id: None for a rule about the cluster.
        topic: None for a rule about groups or the cluster.
        partition: None for a rule about groups or the cluster.
    """

    entity: str
    group_id: str | None = None
    topic: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One row as one rule sees it.

    Attributes:
        rule: Name of the rule.
        subject: What the row is about.
        condition: Whether the rule holds; None when it is not known.
        gone: The row ends its key: the rest of it does not count.
        value: The rule's number; None when it has none.
        message: The message, filled in; used where the condition is true.
        labels: The labels, filled in; used where the condition is true.
    """

    rule: str
    subject: Subject
    condition: bool | None
    gone: bool = False
    value: float | None = None
    message: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """The news of one round: the rows that it changed, at most one per rule and key.

    Attributes:
        round: Number; None before the first round.
        time: Its time, ms since the epoch.
        interval_ms: The probe's interval.
        seen: The rows.
        elapsed: Elapsed time over the rounds, ms (`rounds.elapsed_ms`); None in rows of older releases.
    """

    round: int | None
    time: int
    interval_ms: int
    seen: tuple[RuleRow, ...] = ()
    elapsed: int | None = None


@dataclass(frozen=True, slots=True)
class Active:
    """An alert that is pending or firing.

    Attributes:
        subject: What it is about.
        severity: The rule's, when the occurrence began.
        state: pending or firing.
        alert_id: Id of this occurrence.
        since: Time of its first round, ms.
        since_round: Number of that round.
        known: The newest row is true; False while it is NULL.
        held_ms: Time for which it is known to have been true.
        held_rounds: Rounds after the first in which it is known to have been true.
        value: The rule's number, while pending.
        message: Message of the newest row that was true before it fired.
        labels: Labels likewise.
        quiet_ms: For a rule over events: time since the last row that was true.
        orphaned: Its rule reads rows with another key now, and will never judge it: it is gone.
    """

    subject: Subject
    severity: str
    state: str
    alert_id: str
    since: int
    since_round: int | None
    known: bool = True
    held_ms: int = 0
    held_rounds: int = 0
    value: float | None = None
    message: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    quiet_ms: int = 0
    orphaned: bool = False


@dataclass(frozen=True, slots=True)
class Transition:
    """One transition of one alert.

    Attributes:
        rule: The rule's name.
        alert: The alert; an ended one as it was.
        state: pending, firing, resolved or gone.
        from_state: State before; None when the occurrence begins.
        round: Round that decided; None before the first round.
        time: Its time, ms.
        value: The rule's number at that round; None when there is none.
    """

    rule: str
    alert: Active
    state: str
    from_state: str | None
    round: int | None
    time: int
    value: float | None

    @property
    def transition_id(self) -> str:
        """The same for the same decision, however often it is made."""
        return _digest(self.alert.alert_id, self.state, str(self.round))


@dataclass(frozen=True, slots=True)
class FiringState:
    """Everything known between two rounds of one cluster.

    Attributes:
        cluster: The cluster.
        rules: The rules by name.
        round: The newest round that was judged; None before the first.
        time: Its time, ms.
        elapsed: As in `Observed`.
        active: Alerts that are pending or firing.
    """

    cluster: str
    rules: Mapping[str, Rule]
    round: int | None = None
    time: int = 0
    elapsed: int | None = None
    active: Mapping[AlertKey, Active] = field(default_factory=dict)


def passed_ms(time: int, elapsed: int | None, after: Observed | FeedRound) -> int:
    """Time that passed between two rounds that follow each other, ms: between 0 and three intervals.

    The job has summed the steps (`elapsed_ms`); for rows of an older release without it, the rounds' times are used.

    Args:
        time: Time of the round before, ms.
        elapsed: Elapsed time at that round, ms; None when not known.
        after: The round after it.
    """
    step = after.time - time if elapsed is None or after.elapsed is None else after.elapsed - elapsed
    return max(0, min(step, SILENT_INTERVALS * after.interval_ms))


def step(state: FiringState, observed: Observed) -> tuple[FiringState, tuple[Transition, ...]]:
    """Judge one round, or the newest one again (by the clock), in which no time passes.

    Alerts whose rule no longer exists, or judges something else now, are gone. Transitions come in the order of the
    rows, then those whose `for` is over.
    """
    passed, passed_rounds = 0, 0
    if state.round is not None and observed.round is not None and observed.round > state.round:
        passed = passed_ms(state.time, state.elapsed, observed)
        passed_rounds = 1
    active = dict(state.active)
    found: list[Transition] = []
    for key in [key for key, alert in active.items() if alert.orphaned or key[0] not in state.rules]:
        alert = active.pop(key)
        found.append(_transition(key[0], alert, GONE, alert.state, observed, None))
    for seen in observed.seen:
        key = (seen.rule, seen.subject.entity)
        known = active.get(key)
        rule = state.rules[seen.rule]
        if known is None:
            if seen.condition and not seen.gone:
                alert = _begin(state.cluster, rule, seen, observed)
                active[key] = alert
                found.append(_transition(rule.name, alert, alert.state, None, observed, seen.value))
        elif seen.gone or seen.condition is False:
            del active[key]
            to = GONE if seen.gone else RESOLVED
            found.append(_transition(rule.name, known, to, known.state, observed, None if seen.gone else seen.value))
        else:
            active[key] = _go_on(known, seen)
    for key, alert in active.items():
        before = state.active.get(key)
        if alert.state != PENDING or before is None:
            continue
        if not (before.known and alert.known):
            continue
        rule = state.rules[key[0]]
        held = replace(alert, held_ms=alert.held_ms + passed, held_rounds=alert.held_rounds + passed_rounds)
        if passed_rounds and held.held_ms >= rule.hold_ms and held.held_rounds >= rule.hold_rounds:
            held = replace(held, state=FIRING)
            found.append(_transition(rule.name, held, FIRING, PENDING, observed, held.value))
        active[key] = held
    if passed:
        found += _rested(state, active, passed, observed)
    if observed.round is None:
        return replace(state, active=active), tuple(found)
    state = replace(state, active=active, round=observed.round, time=observed.time, elapsed=observed.elapsed)
    return state, tuple(found)


def _rested(state: FiringState, active: dict[AlertKey, Active], passed: int, observed: Observed) -> list[Transition]:
    """Resolve alerts over events without a new one for as long as their rule keeps them; changes `active`."""
    found = []
    for key, alert in list(active.items()):
        rule = state.rules[key[0]]
        if not rule.keep_ms or key not in state.active:
            continue
        rested = replace(alert, quiet_ms=alert.quiet_ms + passed)
        active[key] = rested
        if rested.quiet_ms >= rule.keep_ms:
            del active[key]
            found.append(_transition(rule.name, rested, RESOLVED, alert.state, observed, None))
    return found


def _begin(cluster: str, rule: Rule, seen: RuleRow, observed: Observed) -> Active:
    return Active(
        subject=seen.subject,
        severity=rule.severity,
        state=PENDING if rule.hold_ms or rule.hold_rounds else FIRING,
        alert_id=_digest(cluster, rule.name, seen.subject.entity, str(observed.round)),
        since=observed.time,
        since_round=observed.round,
        value=seen.value,
        message=seen.message,
        labels=seen.labels,
    )


def _go_on(alert: Active, seen: RuleRow) -> Active:
    if seen.condition is None:
        return replace(alert, known=False)
    if alert.state == FIRING:
        return replace(alert, known=True, quiet_ms=0)
    return replace(alert, known=True, value=seen.value, message=seen.message, labels=seen.labels)


def _transition(
    rule: str, alert: Active, state: str, from_state: str | None, observed: Observed, value: float | None
) -> Transition:
    return Transition(rule, alert, state, from_state, observed.round, observed.time, value)


def _digest(*parts: str) -> str:
    # Lengths before the parts: no two lists of parts give the same bytes.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
