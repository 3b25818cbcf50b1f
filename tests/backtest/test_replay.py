"""A replay gives what an alerter gave that ran all the time, transition by transition."""

from __future__ import annotations

import io
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console

from streaming.alerts import load_rules
from streaming.backtest import past, print_backtest, replay
from streaming.backtest.suggest import rounded_up
from streaming.exceptions import SetupError
from tests.backtest.made_month import CLUSTER, Month, live
from tests.examples import examples

MONTH_MS = 400 * 86_400_000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Month, list[tuple[Any, ...]]]:
    month = Month(tmp_path_factory.mktemp("month"), "a month")
    sizes = Random("batches")
    return month, live(month, examples(150), lambda: sizes.choice((1, 5, 70, 140)))


def replayed(month: Month) -> list[tuple[Any, ...]]:
    rules = load_rules(month.settings.alerts.rules)
    done = replay(month.settings.lake, CLUSTER, rules, MONTH_MS, 600_000)
    assert [rule.name for rule in done.left_out] == ["silence"]
    found = [
        (t.round, t.rule, t.alert.subject.entity, t.state, t.from_state, t.value, t.alert.message, t.alert.alert_id,
         t.transition_id)
        for t in done.transitions
    ]  # fmt: skip
    return sorted(found, key=lambda row: row[:4])


def test_a_month_gives_the_transitions_that_the_alerter_gave_live(
    recorded: tuple[Month, list[tuple[Any, ...]]],
) -> None:
    month, was = recorded
    told = replayed(month)
    assert len(was) > 500
    assert {row[1] for row in was} == {"drift", "lag", "uneven", "unassigned", "behind", "partition", "held"}
    assert {row[3] for row in was} == {"pending", "firing", "resolved", "gone"}
    assert told == sorted(was, key=lambda row: row[:4])


def test_how_a_month_is_cut_into_chunks_changes_nothing(
    recorded: tuple[Month, list[tuple[Any, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    month, was = recorded
    monkeypatch.setattr(past, "_CHUNK_ROUNDS", 97)
    assert replayed(month) == sorted(was, key=lambda row: row[:4])


def printed(month: Month, *arguments: Any, **options: Any) -> str:
    out = io.StringIO()
    print_backtest(month.settings, Console(file=out, width=250), *arguments, **options)
    return out.getvalue()


def test_rules_are_shown_beside_todays(recorded: tuple[Month, list[tuple[Any, ...]]], tmp_path: Path) -> None:
    month, was = recorded
    text = month.settings.alerts.rules.read_text("utf-8") if month.settings.alerts.rules else ""
    file = tmp_path / "tried.yaml"
    file.write_text(text.replace("for: 2 rounds", "for: 12 rounds"), encoding="utf-8")
    said = printed(month, file, "400d")
    assert "fired, given" in said
    assert "fired, today" in said
    [line] = [line for line in said.splitlines() if line.startswith("lag ")]
    given, today = (int(word.replace(",", "")) for word in line.split()[2:4])
    assert today == sum(row[1] == "lag" and row[3] == "firing" for row in was)
    assert 0 < given < today
    assert "Not replayed (today): silence." in said


def test_json_is_a_line_per_transition(recorded: tuple[Month, list[tuple[Any, ...]]]) -> None:
    month, was = recorded
    lines = [json.loads(line) for line in printed(month, None, "400d", as_json=True).splitlines()]
    assert len(lines) == len(was)
    assert {line["transition_id"] for line in lines} == {row[8] for row in was}


def test_bounds_are_proposed_with_what_they_cost(recorded: tuple[Month, list[tuple[Any, ...]]]) -> None:
    month, _ = recorded
    lines = [json.loads(line) for line in printed(month, None, "400d", as_json=True, suggests=True).splitlines()]
    lag = {line["group_id"]: line for line in lines if line["measure"] == "lag"}
    assert lag["g0"]["pages"] == 0
    assert lag["g0"]["bound"] >= 50
    assert all(line["bound"] <= 1.2 * line["largest"] + 0.1 for line in lines)
    said = printed(month, None, "400d", suggests=True)
    assert "own_lag" in said


@pytest.mark.parametrize(("value", "bound"), [(0.0, 0.1), (0.5, 0.5), (1.01, 1.1), (99.1, 100.0), (12_345.0, 13_000.0)])
def test_a_bound_has_two_digits_and_is_never_below(value: float, bound: float) -> None:
    assert rounded_up(value) == bound


def test_a_time_that_is_none_is_said_in_one_sentence(recorded: tuple[Month, list[tuple[Any, ...]]]) -> None:
    with pytest.raises(SetupError, match="--since is a number with m, h, d or w"):
        printed(recorded[0], None, "soon")
