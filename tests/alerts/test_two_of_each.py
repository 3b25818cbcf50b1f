"""Two of each side by side, as in a rolling update, on a real broker and with real groups.

No row and no alert differs from an undisturbed run: the same topics are read again by one job into a lake of its own,
and one alerter judges that. Two probes leave the rounds of one in the topic, and two servers make the same pages.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from dashboards.boards import BOARDS
from streaming.alerts import Alerter, load_rules
from streaming.config import AlertSettings, KafkaSettings, ServeSettings, Settings, environment_of
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.demo.ports import free_port
from streaming.records import RoundClosed, RoundOpened
from streaming.tables import LakeReader
from tests.alerts.services import Receiver
from tests.e2e.lakes import contents, differences
from tests.patience import until
from tests.probe.witness import rounds_of
from tests.started import Started, get, unconfigured

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1_200)]

_RULES = """\
rules:
  - name: alive
    view: group_health_current
    when: members > 0 AND group_id = 'orders'
    severity: warning
    message: "{group_id} has members"
"""


class Programs(ExitStack):
    """Processes of ours, with the same settings. A context manager that ends them."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        super().__init__()
        self._folder, self._environment = folder, unconfigured() | environment_of(settings)

    def start(self, name: str, *arguments: str, **more: str) -> Started:
        command = [sys.executable, "-m", *arguments]
        return self.enter_context(Started(command, self._folder / f"{name}.log", self._environment | more))


@contextmanager
def _members(bootstrap: str) -> Iterator[None]:
    members = [
        KafkaConsumer("orders", bootstrap_servers=bootstrap, group_id="orders", auto_offset_reset="earliest")
        for _ in range(2)
    ]
    for _ in range(20):
        for member in members:
            member.poll(500)
    yield
    for member in members:
        member.close()


def _settings(bootstrap: str, lake: Path, rules: Path, **targets: str) -> Settings:
    return Settings.model_validate(
        {
            "cluster": "c",
            "lake": str(lake),
            "kafka": KafkaSettings(bootstrap_servers=bootstrap),
            "probe": {"interval_ms": 2_000},
            "job": {"trigger_ms": 2_000},
            "alerts": AlertSettings.model_validate({"rules": str(rules), "poll_ms": 500, "targets": targets}),
            "serve": ServeSettings(alerts=False),
            "maintenance": {"in_job": False},
        }
    )


def test_no_row_no_alert_and_no_page_differs_from_an_undisturbed_run(tmp_path: Path) -> None:
    (tmp_path / "alerts.yaml").write_text(_RULES)
    ports = free_port(), free_port()
    with EmbeddedBroker(tmp_path / "broker", overrides=DEMO_OVERRIDES) as broker, Receiver() as receiver:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics([NewTopic("orders", 4, 1)])
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
        for number in range(100):
            producer.send("orders", str(number).encode(), partition=number % 4)
        producer.flush()
        lake = tmp_path / "lake"
        settings = _settings(broker.bootstrap, lake, tmp_path / "alerts.yaml", hook=receiver.url)
        with Programs(tmp_path, settings) as programs:
            probe = programs.start("probe", "streaming.probe")
            job = programs.start("job", "streaming.job")
            first = programs.start("first", "tests.alerts.elsewhere", "a", "60")
            servers = [
                programs.start(f"server-{port}", "streaming.serve", EVENKEEL_SERVE__LISTEN=f"127.0.0.1:{port}")
                for port in ports
            ]
            with _members(broker.bootstrap):
                first.until(lambda: len(receiver.messages) == 1, job, probe)
                # The update: a second of each for a while.
                second_probe = programs.start("second-probe", "streaming.probe")
                second_probe.until(lambda: "Standing by" in second_probe.said)
                second_job = programs.start("second-job", "streaming.job")
                second = programs.start("second", "tests.alerts.elsewhere", "b", "60")
                second.until(lambda: "Standing by" in second.said)
                assert second_job.wait() == 2, second_job.said
                assert "Another job for the cluster 'c'" in second_job.said
                answers = [_same_round(ports, "/api/v1/groups"), _same_round(ports, "/api/v1/alerts")]
                addresses = _addresses(lake)
                for address in addresses:
                    # What is read for this board comes at each server's own time: it is compared at rest, below.
                    if not address.startswith("/evenkeel"):
                        _same_page(ports, address)
                probe.stop()
                taken_over = _newest(lake)
                job.until(lambda: _newest(lake) > taken_over, second_probe)
                first.stop()
            second.until(lambda: len(receiver.messages) == 2, job, second_probe)
            assert all(one == other for one, other in answers)
            # All rounds are in the lake before the job ends: the last ones wait for others, in which nothing moves.
            second_probe.stop()
            assert "Took over the rounds" in second_probe.said
            seen: list[int] = []
            for _ in range(120):
                seen.append(_newest(lake))
                if len(set(seen[-15:])) == 1 and len(seen) >= 15:
                    break
                time.sleep(1)
            for address in addresses:
                _same_page(ports, address)
            for each in (*servers, second, job):
                each.stop()
        assert _makers(settings) == 2
        assert receiver.states_of_groups() == [("firing", "orders"), ("resolved", "orders")]

        alone = tmp_path / "alone"
        undisturbed = _settings(broker.bootstrap, alone, tmp_path / "alerts.yaml")
        with Programs(tmp_path, undisturbed) as again:
            job = again.start("alone", "streaming.job", "--available-now")
            assert job.wait() == 0, job.said
        assert differences(contents(lake), contents(alone)) == {}
        with Alerter(undisturbed, load_rules(tmp_path / "alerts.yaml"), {}) as alerter:
            alerter.poll()
        assert _transitions(lake) == _transitions(alone) != []


def _same_round(ports: tuple[int, int], path: str) -> tuple[Any, Any]:
    """The items that both servers give at one round."""
    found: list[tuple[Any, Any]] = []

    def same() -> bool:
        one, other = (json.loads(get(f"http://127.0.0.1:{port}{path}")[1] or "{}") for port in ports)
        if one.get("rounds") != other.get("rounds") or not one.get("rounds"):
            return False
        found.append((one["items"], other["items"]))
        return True

    until(same, seconds=240, pause_s=0.5, told=f"both servers show the same round at {path}")
    return found[0]


def _addresses(lake: Path) -> list[str]:
    """An address of each board, where it has charts with a fixed span: else these would end when each was drawn."""
    decision = LakeReader(lake).rows("SELECT min(decision) AS decision FROM rebalance_churn")[0]["decision"]
    shown = {"{group}": "orders", "{topic}": "orders", "{rule}": "alive", "{decision}": str(decision)}
    now = datetime.now(UTC)
    span = f"?from={now - timedelta(hours=1):%Y-%m-%dT%H:%MZ}&to={now + timedelta(hours=1):%Y-%m-%dT%H:%MZ}"
    return [
        "/" + "/".join(shown.get(part, part) for part in board.path) + (span if "range" in board.parameters else "")
        for board in BOARDS
    ]


def _same_page(ports: tuple[int, int], address: str) -> None:
    """Wait until both servers make the same page of a board, byte by byte: at one round, ages in the same words."""

    def page(port: int) -> str:
        status, shown = get(f"http://127.0.0.1:{port}{address}")
        assert status == 200, shown
        return shown

    def same() -> bool:
        with ThreadPoolExecutor(2) as asking:
            one, other = asking.map(page, ports)
        return one == other and "Older rows are being read" not in one

    try:
        until(same, seconds=240, pause_s=0.5, told=f"both servers make the same page at {address}")
    except AssertionError:
        for line in unified_diff(*(page(port).splitlines() for port in ports), n=0, lineterm=""):
            print(line)
        raise


def _makers(settings: Settings) -> int:
    """The number of probes that closed rounds, one after the other, none while another one had a round open."""
    records = [record for _, record in rounds_of(settings)]
    rounds = [record for record in records if isinstance(record, RoundClosed)]
    assert [record.round for record in rounds] == sorted(record.round for record in rounds)
    going_on: str | None = None
    for record in records:
        if isinstance(record, RoundClosed):
            assert record.probe == going_on
            going_on = None
        elif isinstance(record, RoundOpened) and not record.ends:
            assert going_on in {None, record.probe}
            going_on = record.probe
        elif isinstance(record, RoundOpened) and record.probe == going_on:
            going_on = None
    return sum(before != after for before, after in pairwise([None, *(record.probe for record in rounds)]))


def _newest(lake: Path) -> int:
    return int(LakeReader(lake).rows("SELECT coalesce(max(round), -1) AS round FROM rounds")[0]["round"])


def _transitions(lake: Path) -> list[tuple[Any, ...]]:
    rows = LakeReader(lake).rows("SELECT rule, group_id, state, round, transition_id FROM alerts ORDER BY round, state")
    return [tuple(row.values()) for row in rows]
