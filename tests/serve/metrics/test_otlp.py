"""Metrics pushed by OTLP: a real receiver decodes the protobuf, and gets what a scrape of the same snapshot has."""

from __future__ import annotations

import gzip
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from prometheus_client.parser import text_string_to_metric_families

from streaming.config import load_settings
from streaming.exceptions import SetupError
from streaming.serve.metrics import Scrapes
from streaming.serve.metrics import otlp as pushing
from streaming.serve.metrics.otlp import Push
from tests.dashboards.made_lake import HOSTILE, MadeGroup, MadeLake
from tests.serve.conftest import Served

LABELS = {"environment": "prod", "region": 'e"u'}

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]

# They go on between a push and a scrape.
AGES = {"evenkeel_round_age_seconds", "evenkeel_batch_age_seconds"}


class Receiver:
    """An OTLP receiver on a port of its own.

    Attributes:
        series: What it got, of all requests.
        requests: Points of each request.
        status: What it answers.
    """

    def __init__(self) -> None:
        self.series: Series = {}
        self.requests: list[int] = []
        self.status = 200
        receiver = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if receiver.status == 200:
                    receiver.add_points(ExportMetricsServiceRequest.FromString(body))
                self.send_response(receiver.status)
                self.end_headers()
                self.wfile.write(ExportMetricsServiceResponse().SerializeToString())

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Answers)
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}/v1/metrics"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

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
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def labelled(tmp_path: Path, serve_over: Callable[..., Served]) -> Served:
    groups = [MadeGroup("g"), MadeGroup("empty", members=()), *(MadeGroup(name) for name in HOSTILE)]
    found = serve_over(tmp_path, MadeLake(tmp_path, groups), partition_series=True, labels=LABELS)
    found.poll()
    return found


def scraped(served: Served) -> Series:
    families = text_string_to_metric_families(served.get("/metrics").text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def push(served: Served, endpoint: str) -> Push:
    settings: dict[str, Any] = {"otlp_endpoint": endpoint, "labels": LABELS}
    return Push(served.scrapes, load_settings(serve=settings).serve)


def without_ages(series: Series) -> Series:
    return {key: value for key, value in series.items() if key[0] not in AGES}


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


@pytest.mark.parametrize("name", ["cluster", "group_id", "phase"])
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
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1/metrics"
        monkeypatch.setattr(pushing, "_TIMEOUT_S", 1.0)  # the exporter tries again and again for so long
        pushes = Push(labelled.scrapes, load_settings(serve={"otlp_endpoint": endpoint}).serve)
        assert pushes.push() is False


def test_before_the_tables_were_read_nothing_is_pushed(
    tmp_path: Path, serve_over: Callable[..., Served], receiver: Receiver
) -> None:
    assert push(serve_over(tmp_path, MadeLake(tmp_path, [])), receiver.endpoint).push() is False
    assert receiver.requests == []
