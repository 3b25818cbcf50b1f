"""Two alerters on one cluster, as on two machines that share a lake: one works, and each alert is sent once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.alerts import Alerter
from streaming.process import LeaseLostError
from streaming.process.lease import TTL_S
from tests.alerts.build import DRIFT, UNEVEN, Writer, time_of
from tests.alerts.living import Living, drifted, lease_elsewhere, until_idle

pytestmark = pytest.mark.turn(3)


class Other:
    """A second alerter on the lake of a `Living`, with the same targets and the same clock."""

    def __init__(self, living: Living, machine: str) -> None:
        self._living = living
        steady = lambda: living.wall_ms / 1000  # noqa: E731
        turn = lease_elsewhere(living.writer.root, "c", machine, steady)
        self.alerter = Alerter(living.settings, living.rules, living.inboxes, steady, steady, turn)
        self.alerter.__enter__()

    def poll(self) -> None:
        for _ in range(3):
            self.alerter.poll()
            until_idle(self.alerter)

    def stop(self) -> None:
        self.alerter.__exit__(None, None, None)


@pytest.fixture
def first(tmp_path: Path) -> Iterator[Living]:
    living = Living(tmp_path, DRIFT, UNEVEN, machine="one")
    yield living
    living.stop()


def _told(living: Living) -> list[str]:
    return [title for _, title in living.inboxes["ops"].told]


def _transitions(writer: Writer) -> list[tuple[str, str | None, str, int, str]]:
    rows = writer.transitions()
    return sorted((r["rule"], r["group_id"], r["state"], r["round"], r["transition_id"]) for r in rows)


_STORY = [drifted("a"), drifted("b"), drifted("a", verdict="identical"), [], drifted("c")]


def test_the_second_stands_by_and_rows_and_messages_are_those_of_one_alone(first: Living, tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    alone = Living(tmp_path / "alone", DRIFT, UNEVEN)
    second: Other | None = None
    for number, verdicts in enumerate(_STORY):
        for living in (alone, first):
            living.round(number, drift=verdicts)
        second = second or Other(first, "two")
        second.poll()
    second.stop()
    alone.stop()
    assert _told(first) == _told(alone) != []
    assert _transitions(first.writer) == _transitions(alone.writer)
    assert first.deliveries("ops", "transition_id", "outcome") == alone.deliveries("ops", "transition_id", "outcome")


def test_after_a_clean_end_the_second_goes_on_at_once(first: Living) -> None:
    first.round(0, drift=drifted("a"))
    second = Other(first, "two")
    second.poll()
    first.stop()
    first.writer.write(1, {"drift": drifted("a", verdict="identical")})
    first.wall_ms = time_of(1) + 1_000
    second.poll()
    second.stop()
    assert _told(first) == ["[firing] drift: a (critical)", "[resolved] drift: a (critical)"]


def test_an_end_that_cannot_write_its_last_deliveries_releases_the_lease_all_the_same(
    first: Living, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.round(0)
    second = Other(first, "two")
    second.poll()

    def fails(_: Alerter) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Alerter, "_write_results", fails)
        first.stop()
    first.writer.write(1, {"drift": drifted("a")})
    first.wall_ms = time_of(1) + 1_000
    second.poll()
    second.stop()
    assert _told(first) == ["[firing] drift: a (critical)"]


def test_one_that_dies_is_succeeded_after_its_lease_was_watched_in_vain_and_what_it_owed_is_sent(first: Living) -> None:
    first.round(0)
    second = Other(first, "two")
    first.inboxes["ops"].fails = ["the target answered HTTP 500"]
    first.writer.write(1, {"drift": drifted("a")})
    first.wall_ms = time_of(1) + 1_000
    first.alerter.poll()
    for queue in first.alerter._outgoing.queues:
        queue.stop()
        queue.join(10)
    first.alerter = None  # killed between its decision and its delivery
    second.poll()
    assert _told(first) == []
    first.wall_ms += (TTL_S - 5) * 1_000
    second.poll()
    assert _told(first) == []
    first.writer.write(2, {})
    first.wall_ms += 10_000
    second.poll()
    assert _told(first) == ["[firing] drift: a (critical)"]
    second.stop()


def test_one_that_stood_still_finds_that_it_was_succeeded_and_ends(first: Living) -> None:
    first.round(0)
    second = Other(first, "two")
    second.poll()
    first.wall_ms += (TTL_S + 1) * 1_000
    first.writer.write(1, {"drift": drifted("a")})
    second.poll()
    assert _told(first) == ["[firing] drift: a (critical)"]
    with pytest.raises(LeaseLostError, match="The lease was taken over"):
        first.alerter.poll()
    first.stop()
    assert _told(first) == ["[firing] drift: a (critical)"]
    second.stop()
    assert [row["state"] for row in first.writer.transitions()] == ["firing"]


@pytest.mark.nightly
def test_a_decision_that_the_predecessor_still_made_is_delivered_by_its_successor(first: Living) -> None:
    first.round(0)
    second = Other(first, "two")
    second.poll()
    first.wall_ms += (TTL_S + 1) * 1_000
    second.poll()
    # The predecessor wakes in the middle of its poll: it decides once more.
    late = Alerter(first.settings, first.rules, {}, lambda: first.wall_ms / 1000, lambda: first.wall_ms / 1000)
    first.writer.write(1, {"drift": drifted("a")})
    late.poll()
    second.poll()
    second.stop()
    assert _told(first) == ["[firing] drift: a (critical)"]
    assert [row["state"] for row in first.writer.transitions()] == ["firing"]
