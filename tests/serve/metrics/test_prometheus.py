"""A real Prometheus scrapes every mode, and answers queries as boards and rules have them (two minutes)."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

from dashboards.export import export
from streaming.demo.ports import free_port
from streaming.tables import table_named
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.patience import until
from tests.serve.client import running
from tests.started import Started, get

pytestmark = pytest.mark.soak

Found = TypeVar("Found")

RULES = Path(__file__).parents[3] / "conf" / "deploy" / "prometheus" / "evenkeel-rules.yaml"

About = Literal["groups", "itself"]

MODES = ("evenkeel", "kafka-lag-exporter", "kafka_exporter", "kminion")

# Two groups that advance by an offset a round: one is sound, one has drifted, is stopped, and has an idle member.
GROUPS = [
    MadeGroup("a", topics={"a-t": 3}, lag=lambda _, partition: 7 + partition),
    MadeGroup(
        "b",
        topics={"b-t": 3},
        members=("b-1", "b-2"),
        lag=lambda _, partition: 7 + partition,
        verdict="drifted",
        moved=(("b-t", 0, 1),),
        status=lambda ago: "stopped",  # noqa: ARG005
        findings=(("idle_members", "1 of 2"),),
        decisions=(),
    ),
]

_KLE = f'namespace="kafka",cluster_name="{CLUSTER}",group=~".+",group!=""'
_KLE_CONFLUENT = f'cluster_name="{CLUSTER}",group=~".+"'
_STRIMZI = 'namespace=~"kafka",strimzi_io_cluster=~"my-cluster"'
_OBSERV = 'topic!="__consumer_offsets",consumergroup!="",kafka_cluster=~".*",topic=~".+",consumergroup=~".+"'

# Queries of public boards and rules, with values for their variables ([1m] for $__rate_interval), and how many series
# each must give for these groups; 0 for what we do not serve. docs/metrics.md tells what came out.
PUBLIC = (
    # kafka-lag-exporter's own board (grafana/Kafka_Lag_Exporter_Dashboard.json, 3fcb3c7). `namespace` comes from the
    # scrape.
    ("kle", f"topk(50, kafka_consumergroup_group_max_lag_seconds{{{_KLE}}})", 2),
    ("kle", f"topk(25, kafka_consumergroup_group_lag_seconds{{{_KLE}}})", 6),
    ("kle", f"topk(50, kafka_consumergroup_group_max_lag{{{_KLE}}})", 2),
    ("kle", f"topk(25, kafka_consumergroup_group_lag{{{_KLE}}})", 6),
    ("kle", f"max(kafka_consumergroup_group_lag_seconds{{{_KLE}}}) by (group)", 2),
    ("kle", f"sum(kafka_consumergroup_group_offset{{{_KLE}}})", 1),
    ("kle", (f"sum((kafka_consumergroup_group_offset{{{_KLE}}} * 0) + on(namespace,cluster_name,topic,partition) "
     f'group_left() kafka_partition_latest_offset{{namespace="kafka",cluster_name="{CLUSTER}"}})'), 1),
    ("kle", ('sum(rate(jvm_memory_bytes_used{app_kubernetes_io_instance="kafka-lag-exporter"}[5m])) '
     "by (kubernetes_pod_name)"), 0),
    # Its chart's rule (charts/kafka-lag-exporter/values.yaml), with a lower bound.
    ("kle rule", ("max by (cluster_name, group, topic) "
     f'(kafka_consumergroup_group_lag_seconds{{cluster_name=~"{CLUSTER}", group=~"a|b"}} ) < Inf > 3'), 2),
    # The board of confluentinc/jmx-monitoring-stacks (84aee3a), which has no namespace.
    ("confluent", f"topk(50, kafka_consumergroup_group_max_lag_seconds{{{_KLE_CONFLUENT}}})", 2),
    ("confluent", f"topk(25, kafka_consumergroup_group_lag{{{_KLE_CONFLUENT}}})", 6),
    ("confluent", (f"sum((kafka_consumergroup_group_offset{{{_KLE_CONFLUENT}}} * 0) + on(cluster_name,topic,partition) "
     f'group_left() kafka_partition_latest_offset{{cluster_name="{CLUSTER}"}})'), 1),
    ("confluent", "sum(rate(jvm_memory_used_bytes[5m]))", 0),
    # kafka_exporter's own board, 7589 on grafana.com (kafka_exporter_overview.json, 953e2f1); it asks for one instance.
    ("k_exp", 'sum(rate(kafka_topic_partition_current_offset{instance=~".+", topic=~".+"}[1m])) by (topic)', 2),
    ("k_exp", 'sum(kafka_consumergroup_lag{instance=~".+",topic=~".+"}) by (consumergroup, topic)', 2),
    ("k_exp", "sum(delta(kafka_topic_partition_current_offset{instance=~'.+', topic=~\".+\"}[5m])/5) by (topic)", 2),
    ("k_exp", ("sum(delta(kafka_consumergroup_current_offset{instance=~'.+',topic=~\".+\"}[5m])/5) "
     "by (consumergroup, topic)"), 2),
    ("k_exp", 'sum by(topic) (kafka_topic_partitions{instance=~".+",topic=~".+"})', 2),
    # Strimzi's boards (strimzi-kafka-exporter.json, 5aa6bf0; strimzi-kafka-consumer-groups-lag.json, 63bd2c2).
    ("strimzi", 'sum(rate(kafka_topic_partition_current_offset{topic=~".+"}[1m])) by (topic)', 2),
    ("strimzi", ('sum(delta(kafka_consumergroup_current_offset{consumergroup=~".+",topic=~".+"}[1m])/60) '
     "by (consumergroup, topic)"), 2),
    ("strimzi", 'sum(kafka_consumergroup_lag{consumergroup=~".+",topic=~".+"}) by (consumergroup, topic)', 2),
    ("strimzi", ('sum(kafka_consumergroup_current_offset{consumergroup=~".+",topic=~".+"}) '
     "by (consumergroup,partition,topic)"), 6),
    ("strimzi", 'sum(kafka_topic_partition_under_replicated_partition{topic=~".+"})', 0),
    ("strimzi", f"count(count(kafka_consumergroup_members {{{_STRIMZI}}}>0) by (consumergroup))", 1),
    ("strimzi", f"count(count((kafka_consumergroup_lag{{{_STRIMZI}}})>0) by (consumergroup))", 1),
    ("strimzi", (f"kafka_consumergroup_lag{{{_STRIMZI}}} and on (consumergroup) "
     f"kafka_consumergroup_members {{{_STRIMZI}}}>0"), 6),
    # Its rules (group kafkaExporter of prometheus-rules.yaml, b534c28), with a lower bound.
    ("strimzi rule", "kafka_consumergroup_lag > 6", 6),
    ("strimzi rule", 'changes(kafka_topic_partition_current_offset{topic!="__consumer_offsets"}[10m]) == 0', 0),
    ("strimzi rule", "kafka_topic_partition_under_replicated_partition > 0", 0),
    # The rules and the board of grafana/jsonnet-libs (kafka-observ-lib, 6da2b4b).
    ("observ rule", (f"sum by (kafka_cluster, topic, consumergroup) (delta(kafka_consumergroup_lag{{{_OBSERV}}}[5m])) "
     ">= 0"), 2),
    ("observ rule", (f"sum by (kafka_cluster, topic, consumergroup) (kafka_consumergroup_lag{{{_OBSERV}}} "
     f"or kafka_consumergroup_uncommitted_offsets{{{_OBSERV}}}) > 6"), 2),
    ("observ", ("avg by (kafka_cluster,consumergroup,topic) "
     f"(rate(kafka_consumergroup_current_offset{{{_OBSERV}}}[1m]))"), 2),
    ("observ", f"avg by (kafka_cluster,consumergroup,topic) (kafka_consumer_lag_millis{{{_OBSERV}}})", 0),
    # kminion's own boards, 14012 (cluster) and 14013 (topic) on grafana.com, as igorpetutin/eks_grafana (ff76476) has
    # them.
    ("kminion topic", ('avg by (topic_name) (kminion_kafka_topic_high_water_mark_sum{topic_name="a-t"} - '
     'kminion_kafka_topic_low_water_mark_sum{topic_name="a-t"})'), 1),
    ("kminion topic", 'avg by (topic_name) (rate(kminion_kafka_topic_high_water_mark_sum{topic_name="a-t"}[1m]))', 1),
    ("kminion topic", 'kminion_kafka_consumer_group_topic_lag{topic_name="a-t"}', 1),
    ("kminion topic", 'avg by (partition_id) (kminion_kafka_topic_partition_low_water_mark{topic_name="a-t"})', 3),
    ("kminion topic", 'avg by (partition_id) (kminion_kafka_topic_partition_high_water_mark{topic_name="a-t"})', 3),
    ("kminion topic", "count by (topic_name) (kminion_kafka_topic_low_water_mark_sum)", 2),
    ("kminion topic", 'kminion_kafka_topic_info{topic_name="a-t"}', 0),
    ("kminion topic", 'avg by (topic_name) (kminion_kafka_topic_log_dir_size_total_bytes{topic_name="a-t"})', 0),
    ("kminion cluster", "sum by (kubernetes_pod_name) (rate(kminion_kafka_topic_high_water_mark_sum[1m]))", 1),
    ("kminion cluster", ("topk(15, avg by (topic_name) "
     "(avg_over_time(kminion_kafka_topic_high_water_mark_sum[300s])))"), 2),
    ("kminion cluster", "kminion_kafka_cluster_info", 0),
    ("kminion cluster", "kminion_kafka_broker_info", 0),
    ("kminion cluster", "avg by (group_id) (rate(kminion_kafka_consumer_group_offset_commits_total[1m]))", 0),
    # A user's board and rules (vlab-research/fly, 1b89756: kafka-consumer-health.json, prometheusrule.yaml).
    ("fly", 'kminion_kafka_consumer_group_topic_lag{topic_name=~".*t.*"}', 2),
    ("fly", 'rate(kminion_kafka_consumer_group_topic_offset_sum{topic_name=~".*t.*"}[5m])', 2),
    ("fly", "kminion_kafka_consumer_group_members", 2),
    ("fly rule", ("kminion_kafka_consumer_group_topic_lag / "
     "clamp_min(rate(kminion_kafka_consumer_group_topic_offset_sum[5m]), 1)"), 2),
    ("fly rule", ('(rate(kminion_kafka_consumer_group_topic_offset_sum{group_id="a", topic_name="a-t"}[10m]) == 0) and '
     '(kminion_kafka_consumer_group_topic_lag{group_id="a", topic_name="a-t"} > 0)'), 0),
    ("fly rule", 'absent(kminion_kafka_consumer_group_topic_lag{group_id="a", topic_name="a-t"})', 0),
    ("fly rule", 'absent(kminion_kafka_consumer_group_topic_lag{group_id="gone", topic_name="a-t"})', 1),
)  # fmt: skip

# What each query of a panel of the exported board gives for the group b: labels' values and value of each series.
BOARD: dict[str, Any] = {
    "Cluster": [[[0]]],
    "Groups": [[[2]]],
    "Drifted": [[[1]]],
    "Lag is bad": [[[1]]],
    "Alerts": [[[1]]],
    "Who needs somebody": [[["b", "drifted", 1], ["b", "idle_members", 1], ["b", "stopped", 1]]],
    "Verdicts": [[["drifted", 1], ["identical", 1]]],
    "Lag": [[["a", 24], ["b", 24]]],
    "Time behind, at least": [[["a", 4], ["b", 4]]],
    "Verdict": [[["drifted", 1]]],
    "Lag status": [[["stopped", 1]]],
    "State": [[["Stable", 1]]],
    "Findings": [[["idle_members", 1]]],
    "Lag by topic": [[["b-t", 24]], []],
    "Time behind": [[["b", 4]], [["b", 9]]],
    "Members and partitions": [[["b", 2]], [["b", 0]], [["b", 3]], [["b", 3]], [["b", 1]]],
    "Imbalance": [[["b", pytest.approx(1 / 3)]], [["b", pytest.approx(1 / 3)]]],
    "Rebalances, by the hour": [[["a", 1], ["b", 1]]],
    "Partitions moved, by the hour": [[["a", 1], ["b", 1]]],
    # All four scrapes tell the ages.
    "$cluster": [[[CLUSTER, 4]]],
    "$group": [[["a", 1], ["b", 1]]],
}

# Panels whose values only grow, and how many series their queries have.
AGES = {"Age of the newest round": [1], "Newest decisions": [2]}

# Panels that show something while the cluster is silent.
SILENT = {"Cluster": [[[1]]], "$cluster": [[[CLUSTER, 4]]]}

# The same of the board on Evenkeel itself.
ITSELF: dict[str, Any] = {
    "Server": [[[1]]],
    "Silent clusters": [[[0]]],
    "Late alerters": [[[0]]],
    "Deliveries that fail": [[[0]]],
    "Rounds behind": [[[0]]],
    "Series left out": [[[0]]],
    "Rounds": [[[CLUSTER, 1]], [[CLUSTER, 0]]],
    "Rows of a batch": [[[CLUSTER, 6]], [[CLUSTER, 6]]],
    "Keys in the state": [[[CLUSTER, 62]]],
    "Memory of the state store": [[[CLUSTER, 1_048_576]]],
    "Groups": [[[CLUSTER, 2]]],
    "Deliveries of alerts": [[]],
    "What was not seen": [[[CLUSTER, 0]], [[CLUSTER, 0]], [[CLUSTER, 0]]],
}
ITS_AGES = {"Ages": [1, 1], "Duration of batches": [1, 1], "What takes the time of a batch": [6]}

# As a scrape in Kubernetes adds them, and the boards below expect them.
LABELS = {"namespace": "kafka", "strimzi_io_cluster": "my-cluster"}

PROGRESS_S = 45


class TimedLake(MadeLake):
    """A made lake that also says how old the oldest unread records are, and where the logs begin."""

    def _append(self, tables: dict[str, list[list[Any]]]) -> None:
        for row in tables.get("lag", ()):
            at = row[_place("lag", "round_time")]
            row[_place("lag", "oldest_unread_time_min")] = at - 9_000
            row[_place("lag", "oldest_unread_time_max")] = at - 4_000
            row[_place("lag", "log_start_offset")] = 0
        for row in tables.get("group_health", ()):
            row[_place("group_health", "time_behind_seconds_min")] = 4.0
            row[_place("group_health", "time_behind_seconds_max")] = 9.0
        super()._append(tables)


def _place(table: str, column: str) -> int:
    return [one.name for one in table_named(table).columns].index(column)


@dataclass
class Watched:
    """A Prometheus, and the switch of the rounds that it sees."""

    address: str
    rounds: threading.Event


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Scrapes each mode every second, from a server over a lake that gets a round every second."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no prometheus on the PATH: python -m tests.programs prometheus installs it, as root on Debian")
    folder = tmp_path_factory.mktemp("prometheus")
    lake = TimedLake(folder / "lake", GROUPS)
    alert = {"cluster": CLUSTER, "rule": "drift", "severity": "critical", "state": "firing", "ended": False,
             "group_id": "b", "entity": "1", "alert_id": "a", "decision": 1, "round": 1, "message": "it drifted",
             "round_time": lake._ms(0), "since": lake._ms(0), "event_date": lake._ms(0) // 86_400_000}  # fmt: skip
    lake.add("alerts", alert)
    more, rounds = threading.Event(), threading.Event()
    rounds.set()

    def grow() -> None:
        while not more.wait(1):
            if rounds.is_set():
                lake.next_round()

    with running(folder / "lake", folder / "serve.log") as (address, _):
        target = address.removeprefix("http://")
        jobs = [
            {
                "job_name": mode,
                "metrics_path": f"/metrics/{mode}",
                "scrape_interval": "1s",
                "static_configs": [{"targets": [target], "labels": LABELS}],
            }
            for mode in MODES
        ]
        # JSON is YAML.
        (folder / "prometheus.yml").write_text(
            json.dumps({"global": {"evaluation_interval": "1s"}, "rule_files": [str(RULES)], "scrape_configs": jobs})
        )
        port = free_port()
        command = [
            program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]  # fmt: skip
        growing = threading.Thread(target=grow)
        with Started(command, folder / "log", os.environ) as process:
            growing.start()
            try:
                there = Watched(f"http://127.0.0.1:{port}", rounds)
                # Rates need some rounds.
                process.until(
                    lambda: query(there, f"count_over_time(evenkeel_cluster_groups[5m]) > {PROGRESS_S}"), seconds=180
                )
                yield there
            finally:
                more.set()
                growing.join()


def query(there: Watched, text: str) -> list[dict[str, Any]]:
    status, body = get(f"{there.address}/api/v1/query?query={urllib.parse.quote(text)}")
    if not status:
        return []  # it still starts
    found = json.loads(body)
    assert found["status"] == "success", (text, found)
    return found["data"]["result"]


def test_every_mode_is_scraped_without_an_error(prometheus: Watched) -> None:
    targets = json.loads(get(f"{prometheus.address}/api/v1/targets")[1])["data"]["activeTargets"]
    assert {(t["scrapePool"], t["health"], t["lastError"]) for t in targets} == {(mode, "up", "") for mode in MODES}


def settled(look: Callable[[], Found], fits: Callable[[Found], bool]) -> Found:
    """What is seen once it fits, or at last: a scrape of more than a second is missed, and its series with it."""
    limit = time.monotonic() + 60
    while not fits(found := look()) and time.monotonic() < limit:
        time.sleep(1)
    return found


@pytest.mark.parametrize(("board", "text", "series"), [pytest.param(*one, id=f"{n}") for n, one in enumerate(PUBLIC)])
def test_queries_of_public_boards_and_rules_give_what_they_should(
    prometheus: Watched, board: str, text: str, series: int
) -> None:
    found = settled(lambda: query(prometheus, text), lambda found: len(found) == series)
    assert len(found) == series, (board, found)
    if "rate(" in text and "== 0" not in text:
        assert all(float(one["value"][1]) > 0 for one in found), (board, found)


def expressions(about: About) -> Iterator[tuple[str, str]]:
    """Panels and their queries of an exported board, as Grafana asks them for the group b."""
    board = json.loads(export("grafana", about=about))
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$cluster", CLUSTER).replace("$group", "b")
    for variable in board["templating"]["list"][1:]:
        series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
        yield f"${variable['name']}", f"count by ({label}) ({series.replace('$cluster', CLUSTER)})"


def results(there: Watched, about: About = "groups") -> dict[str, list[list[Any]]]:
    """By panel and query, each series as its labels' values and its value."""
    found: dict[str, list[list[Any]]] = {}
    for title, text in expressions(about):
        series = query(there, text)
        found.setdefault(title, []).append(
            sorted([*sorted(one["metric"].values()), float(one["value"][1])] for one in series)
        )
    return found


def without_ages(found: dict[str, list[list[Any]]]) -> dict[str, list[list[Any]]]:
    return {title: series for title, series in found.items() if title not in AGES | ITS_AGES}


def test_every_panel_of_the_exported_board_shows_what_it_should(prometheus: Watched) -> None:
    found = settled(lambda: results(prometheus), lambda found: without_ages(found) == BOARD)
    assert without_ages(found) == BOARD
    assert {title: [len(one) for one in found[title]] for title in AGES} == AGES
    assert all(0 <= series[-1] < 3600 for title in AGES for one in found[title] for series in one)


def test_every_panel_on_evenkeel_itself_shows_what_it_should(prometheus: Watched) -> None:
    found = settled(lambda: results(prometheus, "itself"), lambda found: without_ages(found) == ITSELF)
    assert without_ages(found) == ITSELF
    assert {title: [len(one) for one in found[title]] for title in ITS_AGES} == ITS_AGES


def test_the_shipped_rules_are_loaded_and_none_of_them_fires(prometheus: Watched) -> None:
    def rules() -> list[dict[str, Any]]:
        groups = json.loads(get(f"{prometheus.address}/api/v1/rules")[1])["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    found = settled(rules, lambda found: all(rule["health"] == "ok" for rule in found))
    assert len(found) == 9
    assert {(rule["health"], rule["state"]) for rule in found} == {("ok", "inactive")}


def test_no_panel_shows_what_is_old_while_the_cluster_is_silent_and_all_do_once_it_speaks(prometheus: Watched) -> None:
    prometheus.rounds.clear()
    try:
        silent = "evenkeel_cluster_silent == 1"
        until(lambda: len(query(prometheus, silent)) == len(MODES), seconds=180, pause_s=1)
        left = {title: SILENT.get(title, [[] for _ in asked]) for title, asked in BOARD.items()}
        found = settled(lambda: results(prometheus), lambda found: without_ages(found) == left)
    finally:
        prometheus.rounds.set()
    assert without_ages(found) == left
    assert found["Newest decisions"] == [[]]
    assert min(series[-1] for one in found["Age of the newest round"] for series in one) > 20
    again = settled(lambda: without_ages(results(prometheus)), lambda found: found == BOARD)
    assert again == BOARD
