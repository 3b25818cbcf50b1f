"""The core against hand-written timelines, and against itself with arbitrary cuts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.alerts.judging.firing import FeedRound, FiringState, Observed, RuleRow, step
from streaming.alerts.rules.rules import Rule
from streaming.alerts.transitions import Transition
from tests.alerts.build import INTERVAL, held_rules, time_of
from tests.examples import examples

_G, _H = (f'{{"group_id":"{name}"}}' for name in "gh")

_Timeline = Sequence[tuple[int, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rule]:
    return held_rules(tmp_path_factory.mktemp("rules"), rounds="2 rounds", time="25s", at_once="0 rounds")


def _group(entity: str) -> str:
    return str(json.loads(entity)["group_id"])


def _seen(rule: str, sign: str, entity: str = _G, value: float | None = None) -> RuleRow:
    truth = {"T": True, "F": False, "?": None, "x": None}[sign]
    return RuleRow(rule, entity, truth, gone=sign == "x", value=value, message=f"{rule} {_group(entity)}")


def _observed(number: int, *seen: RuleRow) -> Observed:
    return Observed(FeedRound(number, time_of(number), INTERVAL, number * INTERVAL), seen)


def _play(state: FiringState, rule: str, timeline: _Timeline) -> tuple[FiringState, list[Transition]]:
    """Play rounds, each with a sign: T true, F false, ? unknown, x closed, - no new row."""
    found: list[Transition] = []
    for number, sign in timeline:
        seen = () if sign == "-" else (_seen(rule, sign),)
        state, transitions = step(state, _observed(number, *seen))
        found += transitions
    return state, found


def _told(found: list[Transition]) -> list[tuple[int | None, str]]:
    return [(t.round, t.state) for t in found]


def _numbered(signs: str) -> list[tuple[int, str]]:
    return list(enumerate(signs))


@pytest.mark.parametrize(
    ("rule", "signs", "expected"),
    [
        ("at_once", "FT-F", [(1, "firing"), (3, "resolved")]),
        ("at_once", "TTTT", [(0, "firing")]),
        ("at_once", "T?-T", [(0, "firing")]),
        ("at_once", "T-x-", [(0, "firing"), (2, "gone")]),
        ("at_once", "?xF-", []),
        ("at_once", "TFTF", [(0, "firing"), (1, "resolved"), (2, "firing"), (3, "resolved")]),
        ("rounds", "T--", [(0, "pending"), (2, "firing")]),
        ("rounds", "TTT", [(0, "pending"), (2, "firing")]),
        ("rounds", "TTF", [(0, "pending"), (2, "resolved")]),
        ("rounds", "T-x", [(0, "pending"), (2, "gone")]),
        ("rounds", "TFT--F", [(0, "pending"), (1, "resolved"), (2, "pending"), (4, "firing"), (5, "resolved")]),
        ("rounds", "T?------", [(0, "pending")]),
        ("rounds", "T-?--T--", [(0, "pending"), (6, "firing")]),
        ("rounds", "T--?--F", [(0, "pending"), (2, "firing"), (6, "resolved")]),
        ("time", "T----", [(0, "pending"), (3, "firing")]),
        ("time", "T--F", [(0, "pending"), (3, "resolved")]),
    ],
)
def test_a_timeline_leads_to_these_transitions(
    made: dict[str, Rule], rule: str, signs: str, expected: list[tuple[int, str]]
) -> None:
    _, found = _play(FiringState("c", made), rule, _numbered(signs))
    assert _told(found) == expected


def test_a_time_without_rounds_counts_three_intervals_towards_for_and_no_more(made: dict[str, Rule]) -> None:
    (rule,) = (replace(made["time"], hold_ms=40_000),)
    state = FiringState("c", {"time": rule})
    _, found = _play(state, "time", [(0, "T"), (100, "-"), (101, "-")])
    assert _told(found) == [(0, "pending"), (101, "firing")]


def test_an_alert_knows_since_when_it_holds_and_what_it_came_from(made: dict[str, Rule]) -> None:
    _, found = _play(FiringState("c", made), "rounds", _numbered("FT--F"))
    assert [(t.since, t.from_state, t.round_time) for t in found] == [
        (time_of(1), None, time_of(1)),
        (time_of(1), "pending", time_of(3)),
        (time_of(1), "firing", time_of(4)),
    ]


def test_the_parts_of_an_occurrence_share_its_id_and_no_two_transitions_share_theirs(made: dict[str, Rule]) -> None:
    _, found = _play(FiringState("c", made), "rounds", _numbered("T--FT--F"))
    first, second = found[:3], found[3:]
    assert len({t.alert_id for t in first}) == len({t.alert_id for t in second}) == 1
    assert first[0].alert_id != second[0].alert_id
    assert len({t.transition_id for t in found}) == len(found) == 6
    _, again = _play(FiringState("c", made), "rounds", _numbered("T--FT--F"))
    assert [t.transition_id for t in again] == [t.transition_id for t in found]
    _, elsewhere = _play(FiringState("d", made), "rounds", _numbered("T--FT--F"))
    assert {t.transition_id for t in elsewhere}.isdisjoint({t.transition_id for t in found})


def test_the_message_is_that_of_the_round_that_fires_and_stays_when_it_ends(made: dict[str, Rule]) -> None:
    state = FiringState("c", made)
    texts = []
    for number, (sign, text) in enumerate([("T", "two"), ("T", "three"), ("T", "four"), ("T", "five"), ("F", "")]):
        seen = replace(_seen("rounds", sign), message=text, value=float(number))
        state, found = step(state, _observed(number, seen))
        texts += [(t.state, t.message, t.value) for t in found]
    assert texts == [("pending", "two", 0.0), ("firing", "four", 2.0), ("resolved", "four", 4.0)]


def test_an_alert_whose_rule_was_taken_away_is_gone(made: dict[str, Rule]) -> None:
    state, _ = _play(FiringState("c", made), "at_once", [(0, "T")])
    without = replace(state, rules={"rounds": made["rounds"]})
    state, found = step(without, _observed(1))
    assert [(t.rule, t.state, t.from_state) for t in found] == [("at_once", "gone", "firing")]
    assert not state.active


def test_a_second_look_at_the_same_round_lets_no_time_pass(made: dict[str, Rule]) -> None:
    state, _ = _play(FiringState("c", made), "rounds", _numbered("T-"))
    for _ in range(5):
        state, found = step(state, _observed(1))
        assert found == ()


def test_before_the_first_round_only_the_clock_can_fire(made: dict[str, Rule]) -> None:
    state, found = step(FiringState("c", made), Observed(None, (_seen("at_once", "T"),), time_of(0)))
    assert [(t.state, t.round) for t in found] == [("firing", None)]
    assert state.newest is None
    state, found = step(state, _observed(7, _seen("at_once", "F")))
    assert [(t.state, t.round) for t in found] == [("resolved", 7)]


# Two rules for two groups, each with a sign (or no row) per round.
_ROUNDS = st.lists(st.lists(st.sampled_from("TF?x-"), min_size=4, max_size=4), min_size=1, max_size=14)


@settings(max_examples=examples(150), deadline=None)
@given(rounds=_ROUNDS, jumps=st.lists(st.integers(1, 6), min_size=14, max_size=14))
def test_firing_needs_for_in_known_rounds_and_ends_are_told_only_of_what_began(
    made: dict[str, Rule], rounds: list[list[str]], jumps: list[int]
) -> None:
    numbers = list(itertools.accumulate(jumps))
    keys = list(itertools.product(("rounds", "at_once"), (_G, _H)))
    state = FiringState("c", made)
    live: dict[tuple[str, str], tuple[str, int]] = {}
    newest: dict[tuple[str, str], str] = {}
    for number, signs in zip(numbers, rounds, strict=False):
        given_rows = tuple(_seen(r, sign, s) for (r, s), sign in zip(keys, signs, strict=True) if sign != "-")
        newest |= {key: sign for key, sign in zip(keys, signs, strict=True) if sign != "-"}
        state, found = step(state, _observed(number, *given_rows))
        for t in found:
            key = (t.rule, t.entity)
            before, began = live.get(key, (None, number))
            assert t.from_state == before
            if t.state in ("pending", "firing"):
                assert newest[key] == "T", "what is not known to be true never fires"
                live[key] = (t.state, began)
                assert not (t.rule == "rounds" and before is None and t.state == "firing")
            else:
                assert newest[key] == ("x" if t.state == "gone" else "F")
                del live[key]
        assert {key: state for key, (state, _) in live.items()} == {k: a.alert.state for k, a in state.active.items()}
