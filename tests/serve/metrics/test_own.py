"""Our own metrics, scraped and pushed by OTLP, as Prometheus' own parsers and a real receiver read them."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from prometheus_client.parser import text_string_to_metric_families

from streaming.config import load_settings
from streaming.demo.ports import free_port
from streaming.exceptions import SetupError
from streaming.serve.metrics import otlp as pushing
from streaming.serve.metrics.otlp import Push
from streaming.serve.metrics.scrapes import Scrapes
from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeGroup, MadeLake
from tests.examples import by_day
from tests.loopback import Asked, Loopback
from tests.serve.client import Served, add_other_cluster

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]

# They go on between a push, or another scrape, and a scrape.
AGES = {"evenkeel_round_age_seconds", "evenkeel_batch_age_seconds"}


def series(text: str) -> Series:
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def scraped(served: Served) -> Series:
    return series(served.get("/metrics").text)


def without_ages(series: Series) -> Series:
    return {key: value for key, value in series.items() if key[0] not in AGES}


def test_lag_of_a_group_is_that_of_its_newest_row(served: Served) -> None:
    rows = served.model.lake.ask("groups", {"cluster": None, "group_id": None, "imbalance": 0.5})
    found = scraped(served).items()
    for row in rows:
        if row["group_id"] in HOSTILE:
            continue
        at = f'{{cluster="{CLUSTER}",group="{row["group_id"]}"}}'
        assert served.metric(f"evenkeel_group_lag_offsets{at}") == row["lag_total"]
        partitions = [s for (name, labels), s in found
                      if name == "evenkeel_partition_lag_offsets" and ("group", row["group_id"]) in labels]  # fmt: skip
        assert sum(partitions) == row["lag_total"]


def test_gzip_holds_the_same_and_is_much_smaller(served: Served) -> None:
    plain, zipped = (served.get("/metrics", headers={"accept-encoding": how}) for how in ("gzip;q=0", "deflate, gzip"))
    assert "content-encoding" not in plain.headers
    assert zipped.headers["content-encoding"] == "gzip"
    assert without_ages(series(gzip.decompress(zipped.body).decode())) == without_ages(series(plain.text))
    assert 5 * len(zipped.body) < len(plain.body)


def test_hostile_names_are_labels_and_nothing_else(served: Served) -> None:
    found = scraped(served)
    groups = {dict(labels)["group"] for name, labels in found if name == "evenkeel_group_members"}
    assert {name for name in HOSTILE if len(name) <= 256} <= groups
    long = [name for name in groups if name.startswith("javascript:")]
    assert [len(name) for name in long] == [256]


@pytest.mark.nightly
def test_two_long_names_with_one_beginning_stay_apart(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("g" * 400 + end) for end in "ab"])
    served = serve_over(tmp_path, lake)
    found = scraped(served)
    assert len([1 for name, _ in found if name == "evenkeel_group_members"]) == 2


def test_a_silent_cluster_serves_its_age_and_nothing_else(served: Served) -> None:
    served.quiet_s[CLUSTER] = 31.0
    try:
        found = {name for name, labels in scraped(served) if ("cluster", CLUSTER) in labels}
        assert found == AGES | {"evenkeel_cluster_silent"}
        assert served.metric(f'evenkeel_cluster_silent{{cluster="{CLUSTER}"}}') == 1
        served.quiet_s[CLUSTER] = 29.0
        assert served.metric(f'evenkeel_cluster_silent{{cluster="{CLUSTER}"}}') == 0
        assert "evenkeel_group_lag_offsets{" in served.get("/metrics").text
    finally:
        served.quiet_s.clear()


def test_a_snapshot_without_a_newer_one_grows_silent_with_time(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    served = serve_over(tmp_path, MadeLake(tmp_path, [MadeGroup("g")]))
    silent = f'evenkeel_cluster_silent{{cluster="{CLUSTER}"}}'
    served.steady_s += 29.0
    assert served.metric(silent) == 0
    served.steady_s += 2.0
    assert served.metric(silent) == 1


@pytest.mark.nightly
def test_a_cluster_that_is_gone_for_good_is_forgotten_after_days_while_another_lives(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("g")])
    add_other_cluster(lake, "gone")
    served = serve_over(tmp_path, lake, forget_days=7)

    def clusters() -> set[str]:
        found = scraped(served)
        return {dict(labels)["cluster"] for name, labels in found if name == "evenkeel_cluster_silent"}

    week = 7 * 86_400.0
    served.quiet_s["gone"] = week - 1
    assert clusters() == {CLUSTER, "gone"}
    assert served.metric('evenkeel_cluster_silent{cluster="gone"}') == 1
    assert served.get("/metrics/kminion").status == 400
    served.quiet_s["gone"] = week + 1
    assert clusters() == {CLUSTER}
    assert served.get("/metrics?cluster=gone").status == 404
    # The modes without a label for the cluster need no choice any more.
    assert 'group_id="g"' in served.get("/metrics/kminion").text
    # Where none lives, the job may have died: that is not forgotten.
    served.quiet_s[CLUSTER] = week + 1
    assert clusters() == {CLUSTER, "gone"}


def test_a_scrape_before_the_tables_were_read_is_refused(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    served = serve_over(tmp_path, MadeLake(tmp_path, [MadeGroup("g")]), polled=False)
    answer = served.get("/metrics")
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")


@pytest.mark.nightly
def test_whole_metrics_are_left_out_beyond_the_limit_and_named(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("g", topics={"t": 900})])
    served = serve_over(tmp_path, lake, partition_series=True, most_series=1_000)
    text = served.get("/metrics").text
    kept = [name for name in ("lag_offsets", "committed_offset") if f"\nevenkeel_partition_{name}{{" in text]
    assert kept == ["lag_offsets"]
    assert served.metric('evenkeel_series_left_out{metric="evenkeel_partition_committed_offset"}') == 900


def test_a_group_that_is_behind_gets_older_between_its_rows(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    lake = MadeLake(tmp_path, [])
    now = int(datetime.now(UTC).timestamp() * 1000)
    health = {"cluster": CLUSTER, "event_date": now // 86_400_000, "round": 1,
              "round_time": now - 70_000,
              "ended": False, "findings": [],
              "time_behind_seconds_min": 5.0, "time_behind_seconds_max": 9.0}  # fmt: skip
    lake.add("group_health", health | {"group_id": "behind", "time_behind_topic": "t", "time_behind_partition": 0},
             health | {"group_id": "keeps-up"})  # fmt: skip
    lake.add("rounds", {"cluster": CLUSTER, "event_date": now // 86_400_000, "round": lake.last + 1,
                        "round_time": now, "interval_ms": 10_000})  # fmt: skip
    served = serve_over(tmp_path, lake)
    for group, low, high in (("behind", 75, 79), ("keeps-up", 5, 9)):
        at = f'{{cluster="{CLUSTER}",group="{group}"}}'
        assert served.metric(f"evenkeel_group_time_behind_min_seconds{at}") == pytest.approx(low)
        assert served.metric(f"evenkeel_group_time_behind_max_seconds{at}") == pytest.approx(high)


@pytest.mark.nightly
def test_moves_are_those_of_the_last_hour(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    lake = MadeLake(tmp_path, [], end=datetime.now(UTC))
    now = lake.end
    for ago, moved in ((timedelta(minutes=70), 100), (timedelta(minutes=50), 3), (timedelta(minutes=1), 4)):
        ms = int((now - ago).timestamp() * 1000)
        lake.add("rebalance_churn", {"cluster": CLUSTER, "group_id": "g", "decision": ms, "record_time": ms,
                                     "event_date": ms // 86_400_000, "revision": 1, "kind": "rebalance",
                                     "partitions_moved": moved})  # fmt: skip
    served = serve_over(tmp_path, lake)
    assert served.metric(f'evenkeel_group_rebalances_last_hour{{cluster="{CLUSTER}",group="g"}}') == 2
    assert served.metric(f'evenkeel_group_partitions_moved_last_hour{{cluster="{CLUSTER}",group="g"}}') == 7


def test_a_new_round_is_made_once_for_any_number_of_scrapes(
    tmp_path: Path, serve_over: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("g")])
    served = serve_over(tmp_path, lake)
    made = []
    make = served.scrapes._families
    monkeypatch.setattr(served.scrapes, "_families", lambda *given: (made.append(1), make(*given))[1])
    for _ in range(3):
        served.get("/metrics")
    assert len(made) == 1
    lake.next_round()
    served.poll()
    served.get("/metrics")
    assert len(made) == 2


def test_the_newest_batch_is_told_by_phase_with_what_it_left_behind(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("g")], rounds=6)
    served = serve_over(tmp_path, lake)
    at = f'{{cluster="{CLUSTER}"}}'
    assert served.metric(f"evenkeel_job_rounds_behind{at}") == 0
    assert served.metric(f"evenkeel_job_batch_duration_seconds{at}") == (400 + lake.last % 50) / 1000
    assert served.metric(f'evenkeel_job_batch_phase_seconds{{cluster="{CLUSTER}",phase="walCommit"}}') == 0.025
    assert served.metric(f"evenkeel_job_state_rows{at}") == 61


@pytest.mark.nightly
def test_deliveries_are_counted_by_their_newest_outcome(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("g")])
    now = int(lake.end.timestamp() * 1000)
    sent = {"cluster": CLUSTER, "target": "ops", "rule": "drift", "state": "firing", "event_date": now // 86_400_000}
    lake.add(
        "alert_deliveries",
        {**sent, "transition_id": "a", "outcome": "failed", "attempt": 1, "attempt_time": now - 2_000},
        {**sent, "transition_id": "a", "outcome": "delivered", "attempt": 2, "attempt_time": now - 1_000},
        {**sent, "transition_id": "b", "outcome": "failed", "attempt": 1, "attempt_time": now},
    )
    served = serve_over(tmp_path, lake)
    for outcome in ("delivered", "failed"):
        at = f'{{cluster="{CLUSTER}",target="ops",outcome="{outcome}"}}'
        assert served.metric(f"evenkeel_alert_deliveries{at}") == 1


LABELS = {"environment": "prod", "region": 'e"u'}


class Receiver(Loopback):
    """An OTLP receiver on a port of its own.

    Attributes:
        series: What it got, of all requests.
        requests: Points of each request.
        status: What it answers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.series: Series = {}
        self.requests: list[int] = []
        self.status = 200
        self.endpoint = f"http://127.0.0.1:{self.port}/v1/metrics"

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        body = gzip.decompress(asked.body) if asked.headers.get("Content-Encoding") == "gzip" else asked.body
        if self.status == 200:
            self.add_points(ExportMetricsServiceRequest.FromString(body))
        return self.status, ExportMetricsServiceResponse().SerializeToString()

    def add_points(self, request: ExportMetricsServiceRequest) -> None:
        count = 0
        for resource in request.resource_metrics:
            names = {one.key: one.value.string_value for one in resource.resource.attributes}
            assert names["service.name"] == "evenkeel"
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in metric.gauge.data_points:
                    labels = frozenset((one.key, one.value.string_value) for one in point.attributes)
                    assert (metric.name, labels) not in self.series
                    self.series[metric.name, labels] = point.as_double
                    count += 1
        self.requests.append(count)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory, serve_over: Callable[..., Served]) -> Served:
    root = tmp_path_factory.mktemp("labelled")
    groups = [MadeGroup("g"), MadeGroup("empty", members=()), *(MadeGroup(name) for name in HOSTILE)]
    return serve_over(root, MadeLake(root, groups), partition_series=True, labels=LABELS)


def push(served: Served, endpoint: str) -> Push:
    settings: dict[str, Any] = {"otlp_endpoint": endpoint, "labels": LABELS}
    return Push(served.scrapes, load_settings(serve=settings).serve)


def test_a_receiver_gets_the_series_and_values_of_a_scrape_in_several_requests(
    labelled: Served, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushing, "_MOST_POINTS", 100)
    assert push(labelled, receiver.endpoint).push()
    expected = scraped(labelled)
    assert receiver.series.keys() == expected.keys()
    assert without_ages(receiver.series) == without_ages(expected)
    *full, last = receiver.requests
    assert len(full) > 2
    assert set(full) == {100}
    assert 0 < last <= 100


def test_every_series_has_the_labels_of_the_settings_in_every_mode(labelled: Served) -> None:
    for mode in ("evenkeel", "kafka-lag-exporter", "kafka_exporter", "kminion"):
        families = list(text_string_to_metric_families(labelled.get(f"/metrics/{mode}").text))
        assert families
        assert all(sample.labels.items() >= LABELS.items() for family in families for sample in family.samples)


@pytest.mark.parametrize("name", by_day(["cluster", "group_id", "phase"], ["cluster"]))
def test_a_label_of_ours_is_refused_as_a_label_of_the_settings(labelled: Served, name: str) -> None:
    with pytest.raises(SetupError, match=f"serve.labels is wrong: a metric has a label '{name}' of its own"):
        Scrapes(labelled.model, load_settings(serve={"labels": {name: "x"}}).serve)


@pytest.mark.parametrize(("name", "value"), [("9lives", "x"), ("__name__", "x"), ("a-b", "x"), ("region", "")])
def test_what_is_no_label_is_one_sentence(name: str, value: str) -> None:
    with pytest.raises(SetupError, match=r"^The setting serve\.labels"):
        load_settings(serve={"labels": {name: value}})


@pytest.mark.nightly
def test_a_receiver_that_is_away_is_logged_once_and_so_is_its_return(
    labelled: Served, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    pushes = push(labelled, receiver.endpoint)
    with caplog.at_level(logging.WARNING):
        receiver.status = 400
        assert [pushes.push(), pushes.push()] == [False, False]
        receiver.status = 200
        assert [pushes.push(), receiver.series != {}] == [True, True]
    assert [record.getMessage() for record in caplog.records] == [
        f"{receiver.endpoint} takes no metrics: trying again at each interval",
        f"{receiver.endpoint} takes metrics again",
    ]


@pytest.mark.nightly
def test_an_address_without_a_receiver_fails_and_raises_nothing(
    labelled: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}/v1/metrics"
    monkeypatch.setattr(pushing, "_TIMEOUT_S", 1.0)  # the exporter tries again and again for so long
    pushes = Push(labelled.scrapes, load_settings(serve={"otlp_endpoint": endpoint}).serve)
    assert pushes.push() is False


def test_before_the_tables_were_read_nothing_is_pushed(
    tmp_path: Path, serve_over: Callable[..., Served], receiver: Receiver
) -> None:
    assert push(serve_over(tmp_path, MadeLake(tmp_path, []), polled=False), receiver.endpoint).push() is False
    assert receiver.requests == []
