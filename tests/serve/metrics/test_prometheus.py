"""A real Prometheus scrapes every mode, and answers queries as boards and rules have them (two minutes)."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.ports import free_port
from tests.serve.test_process import running

pytestmark = pytest.mark.soak

MODES = ("evenkeel", "kafka-lag-exporter", "kafka_exporter", "kminion")

# One query a panel or rule, and how many series it must give for two groups with one topic of three partitions.
QUERIES = (
    # As the panels of kafka-lag-exporter's own board ask (grafana/Kafka_Lag_Exporter_Dashboard.json), without the
    # namespace of Kubernetes.
    (f'kafka_consumergroup_group_max_lag{{cluster_name="{CLUSTER}",group=~".+"}}', 2),
    (f'topk(25, kafka_consumergroup_group_lag{{cluster_name="{CLUSTER}",group=~".+",group!=""}})', 6),
    (f'sum(kafka_consumergroup_group_offset{{cluster_name="{CLUSTER}",group=~".+"}}) by (group, topic)', 2),
    (f'sum by (topic) (kafka_partition_latest_offset{{cluster_name="{CLUSTER}"}})', 2),
    (f'max by (group, topic) (kafka_consumergroup_group_lag{{cluster_name="{CLUSTER}"}}) < Inf > 1', 2),
    # Rates and sums as boards over kafka_exporter show them, and a usual rule.
    ('sum(rate(kafka_topic_partition_current_offset{topic=~".+"}[1m])) by (topic)', 2),
    ('sum(kafka_consumergroup_lag{topic=~".+"}) by (consumergroup, topic)', 2),
    ("sum(rate(kafka_consumergroup_current_offset[1m])) by (consumergroup, topic)", 2),
    ("sum(kafka_consumergroup_lag) by (consumergroup) > 5", 2),
    # The same over kminion's names.
    ('kminion_kafka_consumer_group_info{group_id=~".+"}', 2),
    ("sum(kminion_kafka_consumer_group_topic_lag) by (group_id)", 2),
    ("sum(rate(kminion_kafka_consumer_group_topic_offset_sum[1m])) by (group_id)", 2),
    ("avg by (group_id, topic_name) (kminion_kafka_consumer_group_topic_lag) > 5", 2),
    # Ours.
    ('evenkeel_group_verdict{verdict="identical"} == 1', 2),
    ("evenkeel_round_age_seconds < 3600", 4),
)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Scrapes each mode every second, from a server over a lake that gets a round every second; yields its address."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no prometheus on the PATH: python3 conf/setup.py prometheus installs it, as root on Debian")
    folder = tmp_path_factory.mktemp("prometheus")
    groups = [MadeGroup(name, topics={f"{name}-t": 3}, lag=lambda _, partition: 7 + partition) for name in ("a", "b")]
    lake = MadeLake(folder / "lake", groups)
    with running(folder / "lake", folder / "serve.log") as (address, _):
        target = address.removeprefix("http://")
        jobs = [
            {
                "job_name": mode,
                "metrics_path": f"/metrics/{mode}",
                "scrape_interval": "1s",
                "static_configs": [{"targets": [target]}],
            }
            for mode in MODES
        ]
        # (JSON is YAML.)
        (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": jobs}))
        port = free_port()
        command = [
            program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]  # fmt: skip
        with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                there = f"http://127.0.0.1:{port}"
                # Rates need some rounds.
                until = time.monotonic() + 45
                while time.monotonic() < until:
                    lake.next_round()
                    time.sleep(1)
                yield there
            finally:
                process.terminate()
                process.wait(60)


def query(there: str, text: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{there}/api/v1/query?query={urllib.parse.quote(text)}", timeout=30) as answer:
        found = json.load(answer)
    assert found["status"] == "success", found
    result: list[dict[str, Any]] = found["data"]["result"]
    return result


def test_every_mode_is_scraped_without_an_error(prometheus: str) -> None:
    with urllib.request.urlopen(f"{prometheus}/api/v1/targets", timeout=30) as answer:
        targets = json.load(answer)["data"]["activeTargets"]
    assert {(t["scrapePool"], t["health"], t["lastError"]) for t in targets} == {(mode, "up", "") for mode in MODES}


@pytest.mark.parametrize(("text", "series"), QUERIES)
def test_queries_of_public_boards_and_rules_give_what_they_should(prometheus: str, text: str, series: int) -> None:
    found = query(prometheus, text)
    assert len(found) == series
    if "rate(" in text:
        assert all(float(one["value"][1]) > 0 for one in found)
