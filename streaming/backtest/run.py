"""`evenkeel backtest`: how often rules would have fired, for whom and for how long, beside today's rules.

The alerter's own feed, conditions and `step` do the work. `tests/backtest/` compares the result with that of an alerter
that ran all the time, transition by transition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from streaming.alerts import Conditions, Feed, FiringState, Rule, Transition, load_rules, step
from streaming.config import Settings, rules_file, span_ms
from streaming.exceptions import SetupError
from streaming.tables import computed, named_to_arrow, table_named
from streaming.terminal import counted, printable, say, visible
from streaming.times import utc

# Rounds that are judged together: more cost memory (a thousand groups that are behind have a million rows), fewer cost
# reads of a day's files.
_CHUNK_ROUNDS = 1_000


@dataclass(slots=True)
class Replay:
    """What some rules would have done.

    Attributes:
        rules: The rules that were replayed.
        left_out: Rules that cannot be: they are judged by the alerter's clock, or over events that belong to no round.
        transitions: Every transition, in order.
        first: Time of the first round, ms; None without any.
        last: Time of the newest one.
        rounds: How many.
    """

    rules: tuple[Rule, ...]
    left_out: tuple[Rule, ...]
    transitions: list[Transition] = field(default_factory=list)
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
    for chunk in Feed(lake, cluster, conditions.columns(), heartbeat_ms).begin(None, since_ms, chunk_rounds):
        done.first = done.first or chunk.rounds[0].time
        done.last, done.rounds = chunk.rounds[-1].time, done.rounds + len(chunk.rounds)
        for observed in conditions.rounds(chunk, state.active):
            state, found = step(state, observed)
            done.transitions += found
    return done


# What each rule did: every alert that fired, with ms from there to its end, or to the newest round.
_FIGURES = """
WITH occurrences AS (
  SELECT rule, alert_id, coalesce(group_id, 'the cluster') AS who,
    epoch_ms(min(round_time) FILTER (state = 'firing')) AS began,
    epoch_ms(max(round_time) FILTER (state IN ('resolved', 'gone'))) AS ended
  FROM found GROUP BY ALL HAVING began IS NOT NULL
),
by_group AS (SELECT rule, who, count(*) AS times FROM occurrences GROUP BY ALL),
often AS (
  SELECT rule, list({'who': who, 'times': times} ORDER BY times DESC, who)[:3] AS often FROM by_group GROUP BY ALL
)
SELECT rule, count(*) AS fired, count(DISTINCT who) AS groups, count(*) FILTER (ended IS NULL) AS still,
  median(coalesce(ended, $last) - began) AS median, max(coalesce(ended, $last) - began) AS longest,
  sum(coalesce(ended, $last) - began)::BIGINT AS total, any_value(often) AS often
FROM occurrences JOIN often USING (rule) GROUP BY ALL
"""

_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("fired", "groups", "still"), 0),
    **dict.fromkeys(("median", "longest", "total")),
    "often": (),
}
"""The figures of a rule that never fired."""


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
    figures = [_figures(one) for one in done.values()]
    rules = [rule for one in done.values() for rule in one.rules]
    for name in dict.fromkeys(rule.name for rule in rules):
        table.add_row(*_cells(next(rule for rule in rules if rule.name == name), figures))
    console.print(table)
    for which, one in done.items():
        if one.left_out:
            names_left = ", ".join(rule.name for rule in one.left_out)
            say(
                console,
                f"Not replayed ({which}): {names_left}. They are judged by the alerter's clock, or once when a row is "
                "written; the tables do not say at which round that was.",
            )


def _figures(done: Replay) -> dict[str, Mapping[str, Any]]:
    """What each of its rules did."""
    transitions = named_to_arrow(table_named("alerts"), [one.row() for one in done.transitions])
    fired = computed({"found": transitions}, _FIGURES, {"last": done.last}).to_pylist()
    return {**{rule.name: _NOTHING for rule in done.rules}, **{row["rule"]: row for row in fired}}


def _cells(rule: Rule, figures: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[str]:
    shown = figures[0].get(rule.name, _NOTHING)
    fired = [f"{of[rule.name]['fired']:,}" if rule.name in of else "-" for of in figures]
    lengths = [_length(shown[column]) for column in ("median", "longest", "total")]
    often = ", ".join(f"{visible(one['who'])} ({one['times']:,})" for one in shown["often"])
    counts = [f"{shown[column]:,}" for column in ("groups", "still")]
    return [rule.name, rule.severity, *fired, *counts, *lengths, printable(often)]


def _moment(ms: int) -> str:
    return f"{utc(ms):%Y-%m-%d %H:%M}"


def _length(ms: float | None) -> str:
    if ms is None:
        return "-"
    seconds = ms / 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} s"
