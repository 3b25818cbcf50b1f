"""Restarts anywhere, with any number of rounds decided before: the same transitions as without a stop."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.alerts.judging.feed import Chunk
from streaming.alerts.judging.firing import Active, AlertKey, FeedRound, FiringState, Observed, RuleRow, step
from streaming.alerts.judging.judge import Judge, Remembered
from streaming.alerts.rules.rules import Rule
from streaming.alerts.transitions import Transition
from tests.alerts.build import INTERVAL, UNEVEN, rules, time_of

_ENTITIES = [f'{{"group_id":"{name}"}}' for name in "gh"]

_Signs = tuple[str, ...]


def _round(number: int) -> FeedRound:
    return FeedRound(number, time_of(number), INTERVAL, number * INTERVAL)


class _Rows:
    """Rounds in memory instead of feed and judge: a sign per key and round, as in test_firing."""

    def __init__(self, keys: Sequence[AlertKey], rounds: Sequence[_Signs]) -> None:
        self._keys = keys
        self._rounds = rounds
        self.closed = 0
        """Number of rounds closed so far."""

    def seen(self, number: int) -> dict[AlertKey, RuleRow]:
        found = {}
        for (rule, entity), sign in zip(self._keys, self._rounds[number], strict=True):
            truth = {"T": True, "F": False}.get(sign)
            if sign != "-":
                text = f"{rule} {entity} {number}"
                found[rule, entity] = RuleRow(rule, entity, truth, sign == "x", float(number), text)
        return found

    def begin(self, since: int | None, _look_back_ms: int) -> Iterator[Chunk]:
        first = since or 0
        if self.closed:
            yield replace(self._chunk([first]), rows={**self._chunk([first]).rows, "current": pa.table({})})
            for start in range(first + 1, self.closed, 3):
                yield self._chunk(range(start, min(start + 3, self.closed)))

    def poll(self, newest: int | None) -> Chunk | None:
        new = [n for n in range(self.closed) if newest is None or n > newest]
        return self._chunk(new) if new else None

    def rounds(self, chunk: Chunk, active: Collection[AlertKey]) -> list[Observed]:
        """The judge's results: for keys that are active, or true somewhere in the chunk."""
        first = chunk.rounds[0].number
        by_round = {r.number: self.seen(r.number) for r in chunk.rounds}
        if "current" in chunk.rows:
            by_round[first] = {key: row for n in range(first + 1) for key, row in self.seen(n).items()}
        wanted = {*active, *(key for seen in by_round.values() for key, row in seen.items() if row.condition)}
        return [Observed(r, tuple(s for k, s in by_round[r.number].items() if k in wanted)) for r in chunk.rounds]

    def _chunk(self, numbers: Sequence[int]) -> Chunk:
        rows = {"rounds": pa.table({"round": list(numbers)})}
        return Chunk(tuple(map(_round, numbers)), rows)


class _NoEvents:
    """No rows without a round."""

    def begin(self, seen: object, written_after: int) -> None:
        assert (seen, written_after) == ({}, 0)


def _stored(active: dict[AlertKey, Active], transitions: Sequence[Transition]) -> dict[AlertKey, Active]:
    """The table's knowledge after transitions: only the last row of each alert."""
    active = dict(active)
    for t in transitions:
        if t.ended:
            del active[t.rule, t.entity]
        else:
            active[t.rule, t.entity] = Active(t)
    return active


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rule, ...]:
    folder: Path = tmp_path_factory.mktemp("rules")
    found = []
    for name, hold in {"at_once": "0 rounds", "rounds": "2 rounds", "long": "45s"}.items():
        (rule,) = rules(folder, UNEVEN, hold=hold)
        found.append(replace(rule, name=name))
    return tuple(found)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_an_alerter_that_restarts_anywhere_tells_what_one_tells_that_never_stopped(
    made: tuple[Rule, ...], data: st.DataObject
) -> None:
    keys = [(rule.name, entity) for rule in made for entity in _ENTITIES]
    signs = st.tuples(*[st.sampled_from("TTFF?x---") for _ in keys])
    rounds = data.draw(st.lists(signs, min_size=1, max_size=14))
    rows = _Rows(keys, rounds)

    straight: list[Transition] = []
    state = FiringState("c", {rule.name: rule for rule in made})
    for number in range(len(rounds)):
        state, found = step(state, Observed(_round(number), tuple(rows.seen(number).values())))
        straight += found

    told: list[Transition] = []
    active: dict[AlertKey, Active] = {}
    decided: int | None = None
    judge = None
    while rows.closed < len(rounds):
        rows.closed = min(len(rounds), rows.closed + data.draw(st.integers(1, 4)))
        if judge is None or data.draw(st.booleans()):
            judge = Judge("c", made, rows, rows, _NoEvents(), 0)  # type: ignore[arg-type]
            judge.begin(Remembered(decided, active), 0)
        transitions = judge.judge_new_rounds()
        # The progress is stored with each transition, and otherwise now and then.
        if transitions or data.draw(st.booleans()):
            told += transitions
            active, decided = _stored(active, transitions), judge.round

    def shown(found: list[Transition]) -> list[tuple[Any, ...]]:
        return sorted(
            (t.round, t.rule, t.group_id, t.state, t.from_state, t.transition_id, t.since, t.message) for t in found
        )

    assert shown(told) == shown(straight)
