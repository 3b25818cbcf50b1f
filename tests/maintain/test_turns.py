"""Whose turn it is: nobody waits for ever, and history waits for the tables, but not for ever."""

from __future__ import annotations

import itertools

from streaming.maintain.turns import LONGEST_S, WorkQueue


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def rounds(turns: WorkQueue, busy: dict[str, int], clock: Clock, seconds: float = 1.0, most: int = 100) -> list[str]:
    """The turns that were taken, while each name has so many pieces of work left."""
    taken: list[str] = []
    while turns and len(taken) < most:
        name = turns.next()
        taken.append(name)
        clock.now += seconds
        if busy.get(name, 0) > 0:
            busy[name] -= 1
            turns.again(name)
    return taken


def begun(clock: Clock) -> WorkQueue:
    turns = WorkQueue(["a", "b"], "history", clock)
    turns.begin()
    return turns


def test_tables_take_turns_and_history_comes_once_they_have_nothing_to_do() -> None:
    clock = Clock()
    assert rounds(begun(clock), {"a": 3, "b": 1, "history": 1}, clock) == [*"ababaa", "history", "history"]


def test_history_has_a_turn_after_ten_minutes_however_much_a_table_has_to_do() -> None:
    clock = Clock()
    taken = rounds(begun(clock), {"a": 1_000}, clock, seconds=100)
    assert taken.index("history") <= LONGEST_S // 100 + 2


def test_a_table_that_had_nothing_to_do_is_asked_again_while_another_goes_on() -> None:
    clock = Clock()
    taken = rounds(begun(clock), {"a": 1_000}, clock, seconds=100)
    turns_of_b = [at for at, name in enumerate(taken) if name == "b"]
    assert max(later - earlier for earlier, later in itertools.pairwise(turns_of_b)) <= LONGEST_S // 100 + 3


def test_a_turn_that_has_not_begun_is_the_next_one() -> None:
    turns = begun(Clock())
    turns.put_back(turns.next())
    assert turns.next() == "a"


def test_who_has_left_can_come_back_before_history() -> None:
    clock = Clock()
    turns = begun(clock)
    assert rounds(turns, {}, clock) == ["a", "b", "history"]
    turns.also(["b"])
    assert rounds(turns, {}, clock) == ["b", "history"]
