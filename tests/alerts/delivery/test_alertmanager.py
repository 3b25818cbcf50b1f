"""Alertmanager as a target: what it is sent, how often, and how an alert ends there."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from streaming.alerts.delivery.alertmanager import AlertmanagerTarget
from streaming.exceptions import SetupError
from tests.alerts.build import BEHIND, DRIFT, Living, drifted, time_of
from tests.loopback import Asked, Loopback

pytestmark = pytest.mark.turn(3)


class Manager(Loopback):
    """An HTTP server that keeps what is posted to it.

    Attributes:
        posts: Path, header `Authorization` and alerts of each request.
        codes: Codes of the next answers; then 200.
    """

    def __init__(self) -> None:
        super().__init__()
        self.posts: list[tuple[str, str | None, list[dict[str, Any]]]] = []
        self.codes: list[int] = []
        self.came = threading.Condition()

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        with self.came:
            self.posts.append((asked.path, asked.headers.get("Authorization"), json.loads(asked.body)))
            self.came.notify_all()
            return self.codes.pop(0) if self.codes else 200, b""

    def wait_for(self, done: Callable[[], bool]) -> None:
        """Wait for requests until something is so."""
        with self.came:
            assert self.came.wait_for(done, 60)

    def alerts(self, name: str) -> list[dict[str, Any]]:
        return [alert for _, _, alerts in self.posts for alert in alerts if alert["labels"]["alertname"] == name]


def _living(folder: Path, kept: Manager, resend_ms: int = 60_000, **more: Any) -> Living:
    living = Living(folder, DRIFT, BEHIND, public_url="https://keel.example.org", **more)
    url = f"alertmanager://me:s3cret@127.0.0.1:{kept.port}/am"
    target = AlertmanagerTarget("ops", url, 5_000, resend_ms, "c", lambda: living.wall_ms / 1000)
    living.inboxes = {"ops": target}  # type: ignore[dict-item]
    living.start()
    return living


def _s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_an_alert_is_its_labels_and_ends_with_the_same(tmp_path: Path) -> None:
    with Manager() as kept:
        living = _living(tmp_path, kept)
        row = {"group_id": "g", "topic": "t", "partition": 3, "lag": 500, "client_id": "worker"}
        living.round(0, drift=drifted("a"), lag=[row])
        living.round(1, drift=drifted("a", verdict="identical"))
        living.stop()
    began, ended = kept.alerts("drift")
    assert began["labels"] == ended["labels"] == {
        "alertname": "drift", "severity": "critical", "cluster": "c", "group": "a",
    }  # fmt: skip
    assert _s(began["startsAt"]) == time_of(0) / 1000
    assert _s(began["endsAt"]) == time_of(0) / 1000 + 1 + 240
    assert _s(ended["endsAt"]) == time_of(1) / 1000 + 1
    assert began["annotations"]["description"] == "a drifted"
    assert began["generatorURL"].startswith("https://keel.example.org/groups/a?cluster=c")
    (partition,) = kept.alerts("behind")
    assert partition["labels"] == {
        "alertname": "behind", "severity": "critical", "cluster": "c", "group": "g", "topic": "t", "partition": "3",
        "team": "worker",
    }  # fmt: skip
    assert {path for path, _, _ in kept.posts} == {"/am/api/v2/alerts"}
    assert {login for _, login, _ in kept.posts} == {"Basic bWU6czNjcmV0"}


def test_what_fires_is_sent_again_with_a_later_end_and_a_watchdog_while_rounds_are_judged(tmp_path: Path) -> None:
    with Manager() as kept:
        living = _living(tmp_path, kept, resend_ms=300)
        living.round(0, drift=drifted("a", "b"))
        kept.wait_for(lambda: len(kept.alerts("drift")) >= 4)
        living.round(1, drift=drifted("b", verdict="identical"))
        seen = len(kept.alerts("drift"))
        kept.wait_for(lambda: len(kept.alerts("drift")) >= seen + 2)
        living.stop()
    again = kept.alerts("drift")[seen:]
    assert {alert["labels"]["group"] for alert in again} == {"a"}
    assert all(_s(alert["endsAt"]) > _s(alert["startsAt"]) for alert in again)
    assert len({alert["startsAt"] for alert in kept.alerts("drift") if alert["labels"]["group"] == "a"}) == 1
    watchdog = kept.alerts("Watchdog")
    assert watchdog[0]["labels"] == {
        "alertname": "Watchdog", "severity": "none", "cluster": "c", "source": "evenkeel",
    }  # fmt: skip
    # Nothing was judged for longer than two of its intervals before the end.
    assert len(kept.posts[-1][2]) <= 2


def test_the_watchdog_ends_when_nothing_is_judged_but_what_fires_goes_on(tmp_path: Path) -> None:
    with Manager() as kept:
        living = _living(tmp_path, kept, resend_ms=200)
        living.round(0, drift=drifted("a"))
        kept.wait_for(lambda: kept.alerts("Watchdog") != [])
        kept.wait_for(lambda: [a["labels"]["alertname"] for a in kept.posts[-1][2]] == ["drift"])
        living.stop()


def test_nothing_is_sent_where_nothing_fires_and_nothing_was_judged() -> None:
    with Manager() as kept:
        target = AlertmanagerTarget("ops", f"alertmanager://127.0.0.1:{kept.port}", 5_000, 60_000, "c")
        assert target.resend([], judged=False).unsent
        assert kept.posts == []


def test_after_a_restart_what_an_earlier_run_sent_is_sent_again_at_once(tmp_path: Path) -> None:
    with Manager() as kept:
        living = _living(tmp_path, kept)
        living.round(0, drift=drifted("a"))
        living.start()
        seen = len(kept.posts)
        living.round(1)
        kept.wait_for(
            lambda: any(a["labels"].get("group") == "a" for _, _, alerts in kept.posts[seen:] for a in alerts)
        )
        living.stop()


def test_an_alertmanager_that_takes_nothing_is_a_row_that_counts_and_then_takes_what_it_missed(tmp_path: Path) -> None:
    with Manager() as kept:
        kept.codes = [503] * 8
        living = _living(tmp_path, kept, resend_ms=200, longest_retry_ms=1_000)
        living.round(0, drift=drifted("a"))
        kept.wait_for(lambda: not kept.codes and len(kept.posts) > 8 and bool(kept.posts[-1][2]))
        living.poll()
        living.stop()
    rows = living.deliveries("ops", "rule", "outcome", "reason")
    assert ("drift", "delivered", None) in rows
    failed = [row for row in rows if row[1] == "failed"]
    assert all("answered HTTP 503" in str(reason) for _, _, reason in failed)
    assert {rule for rule, _, _ in failed} <= {"drift", "resend"}


@pytest.mark.parametrize(
    "url",
    [
        "alertmanager:///s3cret",
        "alertmanager://s3cret",
        "alertmanager://s3cret:port",
        "alertmanager://s3cret@host:9093",
        "alertmanager://host:9093/?token=s3cret",
    ],
)
def test_a_url_that_names_no_alertmanager_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SetupError, match=r"^The URL of the alert target am names no Alertmanager: ") as error:
        AlertmanagerTarget("am", url, 1_000, 60_000, "c")
    assert "s3cret" not in str(error.value)


def test_all_members_of_a_cluster_are_sent_everything_and_one_that_lives_is_enough(tmp_path: Path) -> None:
    with Manager() as first, Manager() as second:
        living = Living(tmp_path, DRIFT)
        url = f"alertmanager://127.0.0.1:{first.port},127.0.0.1:{second.port},127.0.0.1:1"
        living.inboxes = {"ops": AlertmanagerTarget("ops", url, 5_000, 60_000, "c")}  # type: ignore[dict-item]
        living.start()
        living.round(0, drift=drifted("a"))
        living.stop()
    assert len(first.alerts("drift")) >= 1
    assert first.alerts("drift")[0]["labels"] == second.alerts("drift")[0]["labels"]
    assert ("delivered",) in living.deliveries("ops", "outcome")
