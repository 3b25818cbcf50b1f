"""A real Alertmanager (Debian's) as the target: grouping, silences, inhibition, ends by resolution and by silence."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streaming.alerts.delivery.alertmanager import WATCHDOG, AlertmanagerTarget
from streaming.demo.ports import free_port
from tests.alerts.build import BEHIND, DRIFT, SILENCE, Living, drifted
from tests.loopback import Asked, Loopback
from tests.patience import until
from tests.started import Started, get

pytestmark = pytest.mark.soak

# Alerts are sent again this often, and end by themselves after four times as long.
_RESEND_MS = 1_000

_CONFIG = """\
route:
  receiver: team
  group_by: [cluster, alertname]
  group_wait: 1s
  group_interval: 1s
  repeat_interval: 1h
  routes:
    - matchers: [alertname="Watchdog"]
      receiver: deadmansswitch
      repeat_interval: 1s
inhibit_rules:
  - source_matchers: [alertname="silence"]
    target_matchers: [alertname!="silence", alertname!="Watchdog"]
    equal: [cluster]
receivers:
  - name: team
    webhook_configs: [{{url: "http://127.0.0.1:{port}/team", send_resolved: true}}]
  - name: deadmansswitch
    webhook_configs: [{{url: "http://127.0.0.1:{port}/deadmansswitch", send_resolved: true}}]
"""


class Hooks(Loopback):
    """What Alertmanager sends to its receivers: path, and status and group of each alert."""

    def __init__(self) -> None:
        super().__init__()
        self.came = threading.Condition()
        self.told: list[tuple[str, str, list[tuple[str, str, str]]]] = []

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        body = json.loads(asked.body)
        alerts = sorted(
            (one["status"], one["labels"]["alertname"], one["labels"].get("group", "")) for one in body["alerts"]
        )
        with self.came:
            self.told.append((asked.path, body["status"], alerts))
            self.came.notify_all()
        return 200, b""

    def wait_for(self, done: Callable[[], bool]) -> None:
        with self.came:
            assert self.came.wait_for(done, 60), self.told

    def of(self, path: str) -> list[tuple[str, list[tuple[str, str, str]]]]:
        return [(status, alerts) for at, status, alerts in self.told if at == path]


class Manager:
    """A running Alertmanager."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v2/{path}", data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def active(self) -> set[tuple[str, str, str]]:
        """Alert, group and state of what it holds."""
        return {
            (one["labels"]["alertname"], one["labels"].get("group", ""), one["status"]["state"])
            for one in self.ask("alerts")
        }

    def await_active(self, done: Callable[[set[tuple[str, str, str]]], bool]) -> None:
        until(lambda: done(self.active()), pause_s=0.2, told=lambda: str(self.active()))


@pytest.fixture
def program() -> str:
    """The command of an installed Alertmanager."""
    found = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if found is None:
        pytest.skip("no Alertmanager on the PATH: python -m tests.programs alertmanager installs it, as root on Debian")
    return found


@pytest.fixture
def manager(program: str, tmp_path: Path) -> Iterator[tuple[Manager, Hooks]]:
    port = free_port()
    with Hooks() as hooks:
        (tmp_path / "alertmanager.yml").write_text(_CONFIG.format(port=hooks.port))
        command = [
            program,
            f"--config.file={tmp_path / 'alertmanager.yml'}",
            f"--storage.path={tmp_path / 'store'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ]
        with Started(command, tmp_path / "alertmanager.log", os.environ) as running:
            running.until(lambda: get(f"http://127.0.0.1:{port}/api/v2/status")[0] == 200)
            yield Manager(port), hooks
            running.end(signal.SIGTERM)


def _living(folder: Path, found: Manager) -> Living:
    living = Living(folder, DRIFT, BEHIND, SILENCE, public_url="https://keel.example.org")
    # The time of the rounds is next year's; an Alertmanager goes by its own clock.
    target = AlertmanagerTarget("am", f"alertmanager://127.0.0.1:{found.port}", 5_000, _RESEND_MS, "c")
    living.inboxes = {"am": target}  # type: ignore[dict-item]
    living.start()
    return living


def test_a_real_alertmanager_groups_silences_inhibits_and_ends_our_alerts(
    manager: tuple[Manager, Hooks], tmp_path: Path
) -> None:
    found, hooks = manager
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    found.ask(
        "silences",
        {
            "matchers": [{"name": "group", "value": "quiet", "isRegex": False, "isEqual": True}],
            "startsAt": datetime.now(UTC).isoformat(), "endsAt": ends, "createdBy": "a test", "comment": "a deploy",
        },
    )  # fmt: skip
    living = _living(tmp_path, found)
    row = {"group_id": "g", "topic": "t", "partition": 0, "lag": 500, "client_id": "w"}
    living.round(0, drift=drifted("a", "b", "quiet"), lag=[row, row | {"partition": 1}])

    # One message for the group of alerts of a rule, without what is silenced.
    hooks.wait_for(lambda: len(hooks.of("/team")) >= 2)
    told = sorted(alerts for _, alerts in hooks.of("/team"))
    assert told == [
        [("firing", "behind", "g"), ("firing", "behind", "g")],
        [("firing", "drift", "a"), ("firing", "drift", "b")],
    ]
    assert ("drift", "quiet", "suppressed") in found.active()
    assert (WATCHDOG, "", "active") in found.active()
    links = [one.get("generatorURL", "") for one in found.ask("alerts")]
    assert any(link.startswith("https://keel.example.org/groups/a?") for link in links)

    # Sent again and again, they outlive their first end.
    time.sleep(3 * 4 * _RESEND_MS / 1000)
    assert {("drift", "a", "active"), ("drift", "b", "active"), ("behind", "g", "active")} <= found.active()
    assert len(hooks.of("/team")) == 2

    # An end is an end at once.
    living.round(1, drift=drifted("b", verdict="identical"))
    hooks.wait_for(lambda: any(("resolved", "drift", "b") in alerts for _, alerts in hooks.of("/team")))
    assert ("drift", "b", "active") not in found.active()

    # Silence of the cluster inhibits what else fires there.
    for seconds in (10, 20, 31, 40):
        living.poll(living.wall_ms + seconds * 1_000)
    found.await_active(lambda held: ("silence", "", "active") in held and ("drift", "a", "suppressed") in held)

    # Nothing is judged any more: the watchdog ends, and what fires goes on, because nobody knows better.
    found.await_active(lambda held: (WATCHDOG, "", "active") not in held)
    assert ("drift", "a", "suppressed") in found.active()
    hooks.wait_for(lambda: ("resolved", [("resolved", WATCHDOG, "")]) in hooks.of("/deadmansswitch"))

    # The alerter dies: all of it ends by itself.
    living.stop()
    found.await_active(lambda held: not held)
