"""Brokers from round to round, as values: who is up, and who has gone."""

from __future__ import annotations

import pytest

from streaming.probe.kafka.brokers import (
    GONE_MS,
    OUTDATED_ROUNDS,
    Host,
    brokers_after,
    is_outdated,
)
from streaming.records import Broker, Brokers

START = 1_767_225_600_000
ROUND_MS = 10_000

HOSTS = {1: Host("kafka-1", "a"), 2: Host("kafka-2", "b"), 3: Host("kafka-3", None)}


class Seen:
    """Rounds every ten seconds."""

    def __init__(self) -> None:
        self.now: Brokers | None = None
        self.time = self.last = START

    def round(
        self, up: str, *coordinators: tuple[int, int], after_ms: int = ROUND_MS, outdated: int = 0, ahead_ms: int = 0
    ) -> Brokers:
        """A round that sees these brokers, and these leaders with their epochs, by a clock that may be ahead."""
        self.time += after_ms
        hosts = {int(node): HOSTS[int(node)] for node in up}
        time = self.time + ahead_ms
        self.now = brokers_after(self.now, hosts, coordinators, time, self.last, outdated)
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
    seen.round("12", (1, 8), ahead_ms=60_000)
    assert [broker.node for broker in seen.round("12", (1, 8)).gone] == [3]
    right = seen.round("12", (1, 8))
    assert [(broker.node, broker.since) for broker in right.gone] == [(3, seen.time)]
    assert seen.round("12", (1, 8)).gone == right.gone


def test_a_broker_that_restarts_between_two_rounds_gives_no_evidence() -> None:
    seen = Seen()
    seen.round("12", (2, 7))
    found = seen.round("12", (2, 9))
    assert (found.gone, found.coordinators) == ((), ((2, 9),))


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


def test_without_leader_epochs_brokers_are_told() -> None:
    seen = Seen()
    seen.round("12")
    found = seen.round("1")
    assert [broker.node for broker in found.gone] == [2]


def test_a_hostile_broker_name_is_cut() -> None:
    (found,) = brokers_after(None, {1: Host("h" * 5_000, "r" * 5_000)}, (), START, -1).up
    assert (len(found.host), len(found.rack or "")) == (255, 255)
