"""`evenkeel backtest`: how often rules would have fired, for whom and for how long, beside today's rules.

The alerter's own feed, conditions and `step` do the work. `tests/backtest/` compares the result with that of an alerter
that ran all the time, transition by transition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from streaming.alerts import FIRING, Conditions, Feed, FiringState, Rule, Transition, load_rules, step
from streaming.config import Settings, rules_file, span_ms
from streaming.exceptions import SetupError
from streaming.terminal import counted, printable, say, visible
from streaming.times import utc

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


# Groups that are named in a line of the terminal.
_MOST_NAMED = 3


def print_backtest(settings: Settings, console: Console, rules: Path | None, since: str) -> None:
    """Replay rules over the past and print what they would have done.

    Args:
        settings: All settings.
        console: Where to print.
        rules: A rules file to try beside today's; None replays today's alone.
        since: How far back: 30d, 12h.

    Raises:
        SetupError: There is no round, or an argument is wrong.
        RulesError: A rule is wrong.
        LakeUnreadableError: A table cannot be read.
    """
    try:
        since_ms = span_ms(since)
    except ValueError as error:
        message = f"--since: {error}."
        raise SetupError(message) from None
    heartbeat = settings.job.heartbeat_ms
    files = {"today": rules_file() if settings.alerts.rules is None else settings.alerts.rules}
    if rules is not None:
        files = {"given": rules, **files}
    loaded = {which: load_rules(file) for which, file in files.items()}
    done = {
        which: replay(settings.lake, settings.cluster, of_file, since_ms, heartbeat)
        for which, of_file in loaded.items()
    }
    if next(iter(done.values())).last is None:
        message = (
            f"There is no round of the cluster {visible(settings.cluster)} in {settings.lake}: name the lake with "
            "--lake, and the cluster with --cluster."
        )
        raise SetupError(message)
    _show(done, console, files)


def _show(done: Mapping[str, Replay], console: Console, files: Mapping[str, Path]) -> None:
    newest = next(iter(done.values()))
    assert newest.first is not None  # noqa: S101 - the caller has seen a round
    assert newest.last is not None  # noqa: S101
    listed = ", ".join(f"{which}: {file}" for which, file in files.items())
    rounds = counted(newest.rounds, "round")
    say(console, f"{rounds}, {_moment(newest.first)} to {_moment(newest.last)} UTC; {listed}")
    table = Table(box=None, pad_edge=False)
    for column in ("rule", "severity"):
        table.add_column(column)
    for which in done:
        table.add_column("fired" if len(done) == 1 else f"fired, {which}", justify="right")
    for column in ("groups", "still", "median", "longest", "in all"):
        table.add_column(column, justify="right")
    table.add_column("most often for")
    names = list(dict.fromkeys(rule.name for one in done.values() for rule in one.rules))
    for name in names:
        of_rule = {which: _occurrences_of(one, name) for which, one in done.items()}
        table.add_row(*_cells(name, of_rule, done))
    console.print(table)
    for which, one in done.items():
        if one.left_out:
            names_left = ", ".join(rule.name for rule in one.left_out)
            say(
                console,
                f"Not replayed ({which}): {names_left}. They are judged by the alerter's clock, or once when a row is "
                "written; the tables do not say at which round that was.",
            )


def _occurrences_of(done: Replay, name: str) -> list[Occurrence]:
    return [one for one in done.occurrences if one.fired.rule == name]


def _cells(name: str, of_rule: Mapping[str, Sequence[Occurrence]], done: Mapping[str, Replay]) -> list[str]:
    shown = next(iter(of_rule.values()))
    last = next(iter(done.values())).last or 0
    rule = next(rule for one in done.values() for rule in one.rules if rule.name == name)
    fired = [
        f"{len(found):,}" if any(known.name == name for known in done[which].rules) else "-"
        for which, found in of_rule.items()
    ]
    lengths = [_time(one.ended, last) - _time(one.fired, last) for one in shown]
    counts = Counter(one.fired.group_id or "the cluster" for one in shown)
    often = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_NAMED]
    return [
        name,
        rule.severity,
        *fired,
        f"{len(counts):,}",
        f"{sum(one.ended is None for one in shown):,}",
        _length(median(lengths)) if lengths else "-",
        _length(max(lengths)) if lengths else "-",
        _length(sum(lengths)) if lengths else "-",
        printable(", ".join(f"{visible(who)} ({times:,})" for who, times in often)),
    ]


def _time(transition: Transition | None, otherwise: int) -> int:
    if transition is None or transition.round_time is None:
        return otherwise
    return transition.round_time


def _moment(ms: int) -> str:
    return f"{utc(ms):%Y-%m-%d %H:%M}"


def _length(ms: float) -> str:
    seconds = ms / 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} s"
