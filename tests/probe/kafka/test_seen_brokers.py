"""Brokers from round to round, as values: who is up, who has gone, and why coordinators moved."""

from __future__ import annotations

import pytest

from streaming.probe.kafka.brokers import (
    GONE_MS,
    MOVES_MS,
    OUTDATED_ROUNDS,
    RETURNS_MS,
    STOPS_MS,
    Host,
    brokers_after,
    is_outdated,
)
from streaming.records import Broker, Brokers, CoordinatorMove

START = 1_767_225_600_000
ROUND_MS = 10_000

HOSTS = {1: Host("kafka-1", "a"), 2: Host("kafka-2", "b"), 3: Host("kafka-3", None)}


class Seen:
    """Rounds every ten seconds, numbered from 0 in steps of 2."""

    def __init__(self) -> None:
        self.now: Brokers | None = None
        self.number = -2
        self.time = self.last = START

    def round(
        self, up: str, *coordinators: tuple[int, int], after_ms: int = ROUND_MS, outdated: int = 0, ahead_ms: int = 0
    ) -> Brokers:
        """A round that sees these brokers, and these leaders with their epochs, by a clock that may be ahead."""
        self.number += 2
        self.time += after_ms
        hosts = {int(node): HOSTS[int(node)] for node in up}
        time = self.time + ahead_ms
        self.now = brokers_after(self.now, hosts, coordinators, self.number, time, self.last, outdated)
        self.last = time
        return self.now


def test_brokers_of_the_first_round_have_no_beginning() -> None:
    found = Seen().round("12", (1, 4), (2, 7))
    assert found == Brokers((Broker(1, "kafka-1", "a"), Broker(2, "kafka-2", "b")), (), ((1, 4), (2, 7)))


def test_a_broker_is_gone_since_the_first_round_without_it_and_up_since_the_first_with_it_again() -> None:
    seen = Seen()
    seen.round("123")
    missed = seen.round("13")
    assert missed.gone == (Broker(2, "kafka-2", "b", since=START + 2 * ROUND_MS),)
    assert seen.round("13").gone == missed.gone
    back = seen.round("123")
    assert back.gone == ()
    assert back.up[1] == Broker(2, "kafka-2", "b", since=START + 4 * ROUND_MS)


def test_a_broker_that_was_taken_out_is_forgotten_after_a_day() -> None:
    seen = Seen()
    seen.round("12")
    seen.round("1")
    assert [broker.node for broker in seen.round("1", after_ms=GONE_MS - 1).gone] == [2]
    assert [broker.node for broker in seen.round("1", after_ms=1).gone] == [2]
    assert seen.round("1").gone == ()


@pytest.mark.parametrize("ahead_ms", [GONE_MS, -GONE_MS])
def test_a_clock_that_is_wrong_for_one_round_lets_nobody_forget_a_broker_that_is_gone_or_a_move(ahead_ms: int) -> None:
    seen = Seen()
    seen.round("123", (3, 7))
    known = seen.round("12", (1, 8))
    assert [broker.node for broker in known.gone] == [3]
    for wrong in (ahead_ms, 0, 0):
        assert seen.round("12", (1, 8), ahead_ms=wrong) == known


def test_a_broker_that_went_while_the_clock_was_ahead_is_gone_since_it_was_right_at_the_latest() -> None:
    seen = Seen()
    seen.round("123", (3, 7))
    ahead = seen.round("12", (1, 8), ahead_ms=60_000)
    assert [broker.node for broker in seen.round("12", (1, 8)).gone] == [3]
    right = seen.round("12", (1, 8))
    assert [(broker.node, broker.since) for broker in right.gone] == [(3, seen.time)]
    assert seen.round("12", (1, 8)).gone == right.gone
    assert [(move.epoch_after, move.gone_round) for move in right.moves] == [(8, 2)]
    assert right.moves[0].time < ahead.moves[0].time
    assert seen.round("12", (1, 8), after_ms=MOVES_MS).moves == right.moves
    assert seen.round("12", (1, 8)).moves == ()


LED, LOST = (2, 7), (1, 8)
FIRST = START + ROUND_MS

# Rounds: who is up, the leader of the partition with its epoch, and what is special about its time; then, of each move
# that the last round tells, the round that missed the broker and since when it was back.
Round = tuple[str, tuple[int, int], dict[str, int]]
MOVES: dict[str, tuple[list[Round], list[tuple[int | None, int | None]]]] = {
    **{
        f"a broker that goes after the clock was ahead explains no move of that time: {ahead}, {rounds}": (
            [("12", LED, {}), ("12", LOST, {"ahead_ms": ahead}), *((up, LOST, {}) for up in rounds)],
            [(None, None)],
        )
        for ahead in (60_000, GONE_MS)
        for rounds in (("12",), ("12", "12"), ("12", "12", "1"), ("12", "12", "1", "1"))
    },
    "a broker that goes while the clock is a day behind explains no earlier move": (
        [
            *(("12", LED, {}), ("12", LOST, {}), ("12", LOST, {"after_ms": STOPS_MS})),
            ("1", LOST, {"ahead_ms": -GONE_MS}),
        ],
        [(None, None)],
    ),
    "a coordinator that moved from a broker which the same answer misses went with it": (
        [("12", LED, {}), ("1", LOST, {})],
        [(2, None)],
    ),
    "nothing is said of a broker that is still there": ([("12", LED, {}), ("12", LOST, {})], [(None, None)]),
    "one that hands over before it stops is missed by a round soon after": (
        [("12", LED, {}), ("12", LOST, {}), ("1", LOST, {})],
        [(4, None)],
    ),
    "one that goes long after it lost a partition did not lose it by going": (
        [("12", LED, {}), ("12", LOST, {}), ("1", LOST, {"after_ms": STOPS_MS + 1})],
        [(None, None)],
    ),
    "a broker that is back gets its partition back": (
        [("12", LED, {}), ("1", LOST, {}), ("12", LOST, {}), ("12", (2, 9), {"after_ms": RETURNS_MS})],
        [(2, None), (None, FIRST + 2 * ROUND_MS)],
    ),
    "a partition that moves to a broker long after its return has another reason": (
        [("12", LOST, {}), ("1", LOST, {}), ("12", LOST, {}), ("12", (2, 9), {"after_ms": RETURNS_MS + 1})],
        [(None, None)],
    ),
    "a return explains no move from a broker that has just gone": (
        [("12", LED, {}), ("2", LED, {}), ("12", LED, {}), ("1", LOST, {})],
        [(6, None)],
    ),
    "a broker that goes after it gave a partition back did not lose it by going": (
        [("12", (1, 6), {}), ("1", (1, 6), {}), ("12", (1, 6), {}), ("12", LED, {}), ("2", LED, {})],
        [(None, FIRST + 2 * ROUND_MS)],
    ),
}


@pytest.mark.parametrize("case", MOVES)
def test_a_coordinator_moved_for_the_reason_that_rounds_show(case: str) -> None:
    rounds, expected = MOVES[case]
    seen = Seen()
    for up, leader, time in rounds:
        found = seen.round(up, leader, **time)
    assert [(move.gone_round, move.back_since) for move in found.moves] == expected


def test_a_move_tells_from_whom_to_whom_and_when() -> None:
    seen = Seen()
    seen.round("12", LED)
    assert seen.round("1", LOST).moves == (CoordinatorMove(2, 1, 7, 8, gone_round=2, partition=0, time=seen.time),)


def test_a_broker_that_restarts_between_two_rounds_gives_no_evidence() -> None:
    seen = Seen()
    seen.round("12", (2, 7))
    found = seen.round("12", (2, 9))
    assert (found.moves, found.gone, found.coordinators) == ((), (), ((2, 9),))


def test_an_answer_that_is_older_than_the_round_before_changes_nothing() -> None:
    seen = Seen()
    seen.round("12", (2, 7))
    known = seen.round("1", (1, 8))
    assert seen.round("12", (2, 7)) == known
    assert [broker.node for broker in seen.round("1", (1, 8)).gone] == [2]


def test_answers_that_stay_older_are_of_another_log() -> None:
    seen = Seen()
    known = seen.round("12", (2, 7))
    for outdated in range(OUTDATED_ROUNDS):
        assert is_outdated(seen.now, [(1, 0)])
        assert seen.round("1", (1, 0), outdated=outdated) == known
    anew = seen.round("1", (1, 0), outdated=OUTDATED_ROUNDS)
    assert anew == Brokers((Broker(1, "kafka-1", "a"),), (), ((1, 0),))
    assert not is_outdated(anew, [(1, 0)])


def test_the_newest_moves_of_a_partition_are_kept_for_an_hour() -> None:
    seen = Seen()
    seen.round("12", (1, 0), (1, 0))
    for epoch in range(1, 6):
        seen.round("12", (1 + epoch % 2, epoch), (1, 0))
    found = seen.round("12", (2, 5), (2, 1))
    assert [(move.partition, move.epoch_after) for move in found.moves] == [(0, 3), (0, 4), (0, 5), (1, 1)]
    seen.round("12", (2, 5), (2, 1), after_ms=MOVES_MS)
    assert seen.round("12", (2, 5), (2, 1)).moves == ()


def test_without_leader_epochs_brokers_are_told_and_no_moves() -> None:
    seen = Seen()
    seen.round("12")
    found = seen.round("1")
    assert ([broker.node for broker in found.gone], found.moves) == ([2], ())
    assert seen.round("12", (1, 3)).moves == ()


def test_a_hostile_broker_name_is_cut() -> None:
    (found,) = brokers_after(None, {1: Host("h" * 5_000, "r" * 5_000)}, (), 0, START, -1).up
    assert (len(found.host), len(found.rack or "")) == (255, 255)
