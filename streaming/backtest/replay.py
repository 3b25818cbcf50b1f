"""The transitions of some rules over the past, and the occurrences that they make.

The alerter's own feed, conditions and `step` do the work. `tests/backtest/` compares the result with that of an alerter
that ran all the time, transition by transition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from streaming.alerts import FIRING, Conditions, Feed, FiringState, Rule, Transition, step

# Rounds that are judged together: more cost memory (a thousand groups that are behind have a million rows), fewer cost
# reads of a day's files.
_CHUNK_ROUNDS = 1_000


@dataclass(slots=True)
class Occurrence:
    """One time that a rule fired.

    Attributes:
        fired: How it began to fire.
        ended: How it ended; None while it fires.
    """

    fired: Transition
    ended: Transition | None = None


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


def replay(
    lake: str,
    cluster: str,
    rules: Sequence[Rule],
    since_ms: int,
    heartbeat_ms: int,
    chunk_rounds: int = _CHUNK_ROUNDS,
) -> Replay:
    """Let rules judge the past, as an alerter would have that was started at its beginning.

    Args:
        lake: Folder or URI.
        cluster: The cluster.
        rules: The rules.
        since_ms: How far back from the newest round, ms.
        heartbeat_ms: Heartbeat of the job.
        chunk_rounds: At most this many rounds are judged together.

    Raises:
        LakeUnreadableError: A table cannot be read.
    """
    kept = tuple(rule for rule in rules if not (rule.by_clock or rule.of_events))
    done = Replay(kept, tuple(rule for rule in rules if rule not in kept))
    conditions = Conditions(kept)
    state = FiringState(cluster, {rule.name: rule for rule in kept})
    open_ones: dict[str, Occurrence] = {}
    for chunk in Feed(lake, cluster, conditions.columns(), heartbeat_ms).begin(None, since_ms, chunk_rounds):
        done.first = done.first or chunk.rounds[0].time
        done.last, done.rounds = chunk.rounds[-1].time, done.rounds + len(chunk.rounds)
        for observed in conditions.rounds(chunk, state.active):
            state, found = step(state, observed)
            done.transitions += found
    for transition in done.transitions:
        alert_id = transition.alert_id
        if transition.state == FIRING:
            open_ones[alert_id] = Occurrence(transition)
            done.occurrences.append(open_ones[alert_id])
        elif alert_id in open_ones:
            open_ones.pop(alert_id).ended = transition
    return done
