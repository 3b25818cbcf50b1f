"""The transitions of some rules over the past, and the occurrences that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from streaming.alerts import FIRING, Conditions, FiringState, Rule, Transition, step
from streaming.backtest.past import ClusterPast


@dataclass(slots=True)
class Occurrence:
    """One time that a rule fired.

    Attributes:
        rule: The rule.
        severity: Its severity.
        group_id: The group; None for a rule about the cluster.
        topic: The topic; None where the rule is not about one.
        partition: The partition, likewise.
        fired: Time of the round at which it fired, ms.
        ended: Time of the round at which it ended, ms; None while it fires.
        how: resolved, gone, or firing.
        value: The rule's number when it fired.
        message: Its message.
    """

    rule: str
    severity: str
    group_id: str | None
    topic: str | None
    partition: int | None
    fired: int
    ended: int | None = None
    how: str = FIRING
    value: float | None = None
    message: str = ""


@dataclass(slots=True)
class Replay:
    """What some rules would have done.

    Attributes:
        rules: The rules that were replayed.
        left_out: Rules that cannot be: they are judged by the alerter's clock, or over events that belong to no round.
        transitions: Every transition, in order.
        occurrences: Every time that a rule fired, in order.
        first: Time of the first round, ms; None without any.
        last: Time of the newest one.
        rounds: How many.
    """

    rules: tuple[Rule, ...]
    left_out: tuple[Rule, ...]
    transitions: list[Transition] = field(default_factory=list)
    occurrences: list[Occurrence] = field(default_factory=list)
    first: int | None = None
    last: int | None = None
    rounds: int = 0


def replay(lake: str, cluster: str, rules: Sequence[Rule], since_ms: int, heartbeat_ms: int) -> Replay:
    """Let rules judge the past, as an alerter would have that was started at its beginning.

    Args:
        lake: Folder or URI.
        cluster: The cluster.
        rules: The rules.
        since_ms: How far back from the newest round, ms.
        heartbeat_ms: Heartbeat of the job.
    """
    kept = tuple(rule for rule in rules if not (rule.by_clock or rule.of_events))
    done = Replay(kept, tuple(rule for rule in rules if rule not in kept))
    conditions = Conditions(kept)
    state = FiringState(cluster, {rule.name: rule for rule in kept})
    open_ones: dict[str, Occurrence] = {}
    for chunk in ClusterPast(lake, cluster, kept, conditions, since_ms, heartbeat_ms).chunks():
        done.first = done.first or chunk.rounds[0].time
        done.last, done.rounds = chunk.rounds[-1].time, done.rounds + len(chunk.rounds)
        for observed in conditions.rounds(chunk, state.active):
            state, found = step(state, observed)
            for transition in found:
                done.transitions.append(transition)
                _note(done, open_ones, transition)
    return done


def _note(done: Replay, open_ones: dict[str, Occurrence], transition: Transition) -> None:
    alert = transition.alert
    if transition.state == FIRING:
        subject = alert.subject
        occurrence = Occurrence(
            transition.rule,
            alert.severity,
            subject.group_id,
            subject.topic,
            subject.partition,
            transition.time,
            value=transition.value,
            message=alert.message,
        )
        open_ones[alert.alert_id] = occurrence
        done.occurrences.append(occurrence)
    elif transition.from_state == FIRING and (ended := open_ones.pop(alert.alert_id, None)) is not None:
        ended.ended, ended.how = transition.time, transition.state
