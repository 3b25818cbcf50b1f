"""Alerters of several clusters over one lake, and several of one cluster: one works, and none disturbs another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streaming.alerts import Alerter, AlerterFleet, fleet
from streaming.alerts.delivery.messages import PEOPLE, AttemptOutcome, Message
from streaming.alerts.judging.judge import Judge
from streaming.catalog import WatchedCluster, record_fleet
from streaming.config import load_fleet
from streaming.process import LeaseLostError
from streaming.process.lease import TTL_S
from tests.alerts.build import DRIFT, UNEVEN, Living, Writer, drifted, lease_elsewhere, time_of, until_idle
from tests.patience import until

_PATIENCE_S = 60


class Mailbox:
    """A target for every cluster; messages about some clusters are never taken.

    Attributes:
        told: Cluster, state and group of each message, in order.
    """

    reads, name = PEOPLE, "ops"

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str | None]] = []
        self.stuck: set[str] = set()
        self.open = threading.Event()

    def send(self, message: Message) -> AttemptOutcome:
        decided = message.decided
        if decided.cluster in self.stuck:
            self.open.wait(_PATIENCE_S)
        self.told.append((decided.cluster, decided.state, decided.group_id))
        return AttemptOutcome(None, 1)


class Deployment:
    """A settings file with clusters, their lake and alerters; a test calls `poll` in the place of the thread."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *clusters: str) -> None:
        self.folder, self.mail = folder, Mailbox()
        self.lake = str(folder / "lake")
        (folder / "alerts.yaml").write_text(f"rules:\n{DRIFT}")
        monkeypatch.setenv("EVENKEEL_CONFIG", str(folder / "evenkeel.toml"))
        monkeypatch.setattr(fleet, "open_targets", lambda _: {"ops": self.mail})
        monkeypatch.setattr(fleet, "_POLL_S", 3_600.0)
        monkeypatch.setattr(fleet, "_AGAIN_S", 0.05)
        self._writers: dict[str, Writer] = {}
        self._next: dict[str, int] = {}
        for name in clusters:
            self.begin(name)
        self.write_file(*clusters)
        self.record(*clusters)
        self.start()

    def start(self) -> None:
        self.alerters = AlerterFleet(load_fleet())
        self.alerters.start()

    def begin(self, cluster: str) -> None:
        """Write the first round of a cluster."""
        self._writers[cluster], self._next[cluster] = Writer(self.folder, cluster), 0
        self.round(cluster)

    def write_file(self, *clusters: str, more: str = "", of_alerts: str = "") -> None:
        entries = "".join(f'[[clusters]]\nname = "{name}"\n' for name in clusters)
        (self.folder / "evenkeel.toml").write_text(
            f'lake = "{self.lake}"\n{more}[alerts]\nrules = "{self.folder / "alerts.yaml"}"\npoll_ms = 100\n'
            f"start_grace_ms = 0\nlate_after_ms = 999999999999\n{of_alerts}{entries}"
        )

    def record(self, *clusters: str) -> None:
        record_fleet(self.lake, [WatchedCluster(name) for name in clusters], clusters)

    def round(self, cluster: str, *groups: str) -> None:
        """Write a round in which these groups drift."""
        rows: list[dict[str, Any]] = [row for group in groups for row in drifted(group)]
        self._writers[cluster].write(self._next[cluster], {"drift": rows} if rows else {})
        self._next[cluster] += 1

    def tells(self, cluster: str, group: str = "orders") -> None:
        """A group of the cluster drifts, and it is sent."""
        self.round(cluster, group)
        self.hears(cluster, "firing", group)

    def hears(self, *message: str | None) -> None:
        until(lambda: message in self.mail.told, told=f"{message} is sent, beside {self.mail.told}")

    def states(self, cluster: str) -> list[tuple[str, str]]:
        """State and group of a cluster's transitions."""
        rows = Writer(self.folder).transitions()
        return [(row["state"], row["group_id"]) for row in rows if row["cluster"] == cluster]


@pytest.fixture
def deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Deployment]]:
    made: list[Deployment] = []

    def deployment(*clusters: str) -> Deployment:
        made.append(Deployment(tmp_path, monkeypatch, *clusters))
        return made[-1]

    yield deployment
    for one in made:
        one.mail.open.set()
        one.alerters.stop(_PATIENCE_S)


def test_each_cluster_is_judged_by_its_own_alerter(deploy: Callable[..., Deployment]) -> None:
    deployed = deploy("a", "b")
    deployed.tells("a")
    deployed.tells("b")
    assert deployed.states("a") == deployed.states("b") == [("firing", "orders")]


def test_a_cluster_that_cannot_be_judged_delays_no_alert_of_another(
    deploy: Callable[..., Deployment], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, asked, over = Judge.judge_new_rounds, threading.Event(), threading.Event()

    def hangs(self: Judge) -> Any:
        if self._cluster == "a":
            asked.set()
            over.wait(_PATIENCE_S)
        return judge(self)

    monkeypatch.setattr(Judge, "judge_new_rounds", hangs)
    deployed = deploy("a", "b")
    assert asked.wait(_PATIENCE_S)
    deployed.tells("b")
    over.set()


def test_a_cluster_that_floods_a_target_delays_no_alert_of_another(deploy: Callable[..., Deployment]) -> None:
    deployed = deploy("a", "b")
    deployed.mail.stuck = {"a"}
    deployed.round("a", *(f"g{number}" for number in range(300)))
    until(lambda: len(deployed.states("a")) == 300, told="the flood is decided")
    deployed.tells("b")
    assert deployed.mail.told == [("b", "firing", "orders")], "nothing of the flood has got through yet"


def test_a_cluster_that_is_added_is_judged_and_the_alerters_of_others_go_on(deploy: Callable[..., Deployment]) -> None:
    deployed = deploy("a")
    before = deployed.alerters._works["a"]
    deployed.begin("b")
    deployed.write_file("a", "b")
    deployed.alerters.poll()
    assert deployed.alerters.clusters == {"a", "b"}
    assert deployed.alerters._works["a"] is before
    deployed.tells("b")


def test_what_fires_of_a_cluster_that_is_removed_is_gone_and_nothing_of_it_fires_any_more(
    deploy: Callable[..., Deployment],
) -> None:
    deployed = deploy("a", "b")
    deployed.tells("a")
    deployed.tells("b")
    deployed.write_file("a")
    deployed.alerters.poll()
    deployed.hears("b", "gone", "orders")
    until(lambda: not deployed.alerters._closed["b"].is_alive(), told="the work for it ends")
    deployed.round("b", "payments")
    deployed.tells("a", "payments")
    assert deployed.states("b") == [("firing", "orders"), ("gone", "orders")]
    assert deployed.states("a") == [("firing", "orders"), ("firing", "payments")]


@pytest.mark.nightly
def test_a_server_that_starts_after_a_cluster_was_closed_ends_what_still_fired(
    deploy: Callable[..., Deployment],
) -> None:
    deployed = deploy("a", "b")
    deployed.tells("b")
    deployed.alerters.stop(_PATIENCE_S)
    deployed.write_file("a")
    deployed.record("a")
    deployed.start()
    deployed.alerters.poll()
    deployed.hears("b", "gone", "orders")


@pytest.mark.nightly
def test_an_alerter_for_one_cluster_leaves_those_alone_that_it_does_not_know(
    deploy: Callable[..., Deployment], monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed = deploy("a", "b")
    deployed.tells("b")
    deployed.alerters.stop(_PATIENCE_S)
    monkeypatch.setenv("EVENKEEL_CLUSTER", "a")
    deployed.start()
    deployed.alerters.poll()
    deployed.tells("a")
    assert deployed.states("b") == [("firing", "orders")]


def test_a_wrong_file_or_rule_changes_nothing(
    deploy: Callable[..., Deployment], caplog: pytest.LogCaptureFixture
) -> None:
    deployed = deploy("a")
    before = deployed.alerters._works["a"]
    deployed.write_file("a", "b", more="nonsense = 1\n")
    deployed.alerters.poll()
    assert "what it had before holds on: The setting nonsense is wrong" in caplog.text
    (deployed.folder / "alerts.yaml").write_text("rules:\n  - name: x\n")
    deployed.write_file("a", "b")
    deployed.alerters.poll()
    assert "rule x" in caplog.text
    assert deployed.alerters._works == {"a": before}
    deployed.tells("a")


@pytest.mark.nightly
def test_a_cluster_that_comes_back_is_judged_again(deploy: Callable[..., Deployment]) -> None:
    deployed = deploy("a", "b")
    deployed.write_file("a")
    deployed.record("a")
    deployed.alerters.poll()
    deployed.write_file("a", "b")
    deployed.record("a", "b")
    deployed.alerters.poll()
    deployed.tells("b")


@pytest.mark.nightly
def test_a_route_by_cluster_parts_the_alerts_of_two(deploy: Callable[..., Deployment]) -> None:
    deployed = deploy("a")
    deployed.alerters.stop(_PATIENCE_S)
    route = 'routes = [{ clusters = ["b"], targets = [] }]\n'
    deployed.write_file("a", "b", of_alerts=route)
    deployed.begin("b")
    deployed.start()
    deployed.round("b", "orders")
    until(lambda: deployed.states("b") == [("firing", "orders")], told="it is decided")
    deployed.tells("a")
    assert deployed.mail.told == [("a", "firing", "orders")]


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


@pytest.fixture
def second(first: Living) -> Iterator[Other]:
    """Stands by since the first round."""
    first.round(0)
    second = Other(first, "two")
    second.poll()
    yield second
    second.stop()


def _transitions(writer: Writer) -> list[tuple[str, str | None, str, int, str]]:
    rows = writer.transitions()
    return sorted((r["rule"], r["group_id"], r["state"], r["round"], r["transition_id"]) for r in rows)


_STORY = [drifted("a"), drifted("b"), drifted("a", verdict="identical"), [], drifted("c")]


@pytest.mark.turn(3)
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
    assert first.titles() == alone.titles() != []
    assert _transitions(first.writer) == _transitions(alone.writer)
    assert first.deliveries("ops", "transition_id", "outcome") == alone.deliveries("ops", "transition_id", "outcome")


@pytest.mark.turn(3)
def test_after_a_clean_end_the_second_goes_on_at_once(first: Living) -> None:
    first.round(0, drift=drifted("a"))
    second = Other(first, "two")
    second.poll()
    first.stop()
    first.writer.write(1, {"drift": drifted("a", verdict="identical")})
    first.wall_ms = time_of(1) + 1_000
    second.poll()
    second.stop()
    assert first.titles() == ["[firing] drift: a (critical)", "[resolved] drift: a (critical)"]


@pytest.mark.turn(3)
def test_an_end_that_cannot_write_its_last_deliveries_releases_the_lease_all_the_same(
    first: Living, second: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Alerter) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Alerter, "_write_results", fails)
        first.stop()
    first.writer.write(1, {"drift": drifted("a")})
    first.wall_ms = time_of(1) + 1_000
    second.poll()
    assert first.titles() == ["[firing] drift: a (critical)"]


@pytest.mark.turn(3)
def test_one_that_dies_is_succeeded_after_its_lease_was_watched_in_vain_and_what_it_owed_is_sent(first: Living) -> None:
    first.round(0)
    second = Other(first, "two")
    first.inboxes["ops"].fails = ["the target answered HTTP 500"]
    first.writer.write(1, {"drift": drifted("a")})
    first.wall_ms = time_of(1) + 1_000
    first.alerter.poll()
    for queue in first.alerter._queues:
        queue.stop()
        queue.join(10)
    first.alerter = None  # killed between its decision and its delivery
    second.poll()
    assert first.titles() == []
    first.wall_ms += (TTL_S - 5) * 1_000
    second.poll()
    assert first.titles() == []
    first.writer.write(2, {})
    first.wall_ms += 10_000
    second.poll()
    assert first.titles() == ["[firing] drift: a (critical)"]
    second.stop()


@pytest.mark.turn(3)
def test_one_that_stood_still_finds_that_it_was_succeeded_and_ends(first: Living, second: Other) -> None:
    first.wall_ms += (TTL_S + 1) * 1_000
    first.writer.write(1, {"drift": drifted("a")})
    second.poll()
    assert first.titles() == ["[firing] drift: a (critical)"]
    with pytest.raises(LeaseLostError, match="The lease was taken over"):
        first.alerter.poll()
    first.stop()
    assert first.titles() == ["[firing] drift: a (critical)"]
    assert [row["state"] for row in first.writer.transitions()] == ["firing"]


@pytest.mark.turn(3)
@pytest.mark.nightly
def test_a_decision_that_the_predecessor_still_made_is_delivered_by_its_successor(first: Living, second: Other) -> None:
    first.wall_ms += (TTL_S + 1) * 1_000
    second.poll()
    # The predecessor wakes in the middle of its poll: it decides once more.
    late = Alerter(first.settings, first.rules, {}, lambda: first.wall_ms / 1000, lambda: first.wall_ms / 1000)
    first.writer.write(1, {"drift": drifted("a")})
    late.poll()
    second.poll()
    assert first.titles() == ["[firing] drift: a (critical)"]
    assert [row["state"] for row in first.writer.transitions()] == ["firing"]
