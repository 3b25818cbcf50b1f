"""Our own metrics pushed by OTLP over HTTP, with the names, labels and values of `/metrics`.

The points are made of the same families as a scrape, at each push, by OpenTelemetry's own types and exporter. Its
observable instruments would keep every series for ever that was ever observed, also of groups that are long gone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import islice, repeat
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    Gauge,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from starlette.exceptions import HTTPException

from streaming.config import ServeSettings
from streaming.lifecycle import room_log
from streaming.serve.metrics.exposition import Family
from streaming.serve.metrics.scrapes import Scrapes

_LOG = room_log(__name__)

_MOST_POINTS: Final = 10_000
"""Points of one request, one or two MB: receivers refuse bodies beyond some limit, 20 MiB in the collector."""

_TIMEOUT_S: Final = 10.0
"""For one request with its repetitions, as OpenTelemetry has it."""


class Push(threading.Thread):
    """Pushes at each interval, from a thread that ends with the process: a slow receiver delays nothing else."""

    def __init__(self, scrapes: Scrapes, settings: ServeSettings, exporter: MetricExporter | None = None) -> None:
        """Prepare.

        Args:
            scrapes: What is pushed.
            settings: Where to, how often, and labels of all metrics.
            exporter: What sends; None for OTLP over HTTP.
        """
        super().__init__(name="otlp", daemon=True)
        # It logs each failure of each request.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._scrapes, self._settings = scrapes, settings
        self._exporter = exporter or OTLPMetricExporter(settings.otlp_endpoint, timeout=_TIMEOUT_S)
        self._resource = Resource.create({"service.name": "evenkeel", "service.version": version("evenkeel")})
        self._scope = InstrumentationScope("evenkeel", version("evenkeel"))
        self._fails = False
        self._end = threading.Event()

    def stop(self) -> None:
        """Push no more; one that goes on is given up with the process."""
        self._end.set()

    def run(self) -> None:
        """Push until `stop`, the first time after one interval."""
        while not self._end.wait(self._settings.otlp_interval_ms / 1000):
            try:
                self.push()
            except Exception:  # noqa: BLE001 - the thread must not die: the metrics would end without a word
                _LOG.exception("the metrics could not be pushed")

    def push(self) -> bool:
        """Push the present once; False where there is none yet, or it did not arrive. An outage is logged once."""
        try:
            families = self._scrapes.families()
        except HTTPException:
            return False
        requests = _requests(families, self._settings.labels)
        arrived = all(self._arrives(metrics) for metrics in requests)  # the first that does not arrive ends it
        if arrived == self._fails:
            if arrived:
                _LOG.warning("%s takes metrics again", self._settings.otlp_endpoint)
            else:
                _LOG.warning("%s takes no metrics: trying again at each interval", self._settings.otlp_endpoint)
        self._fails = not arrived
        return arrived

    def _arrives(self, metrics: Sequence[Metric]) -> bool:
        data = MetricsData([ResourceMetrics(self._resource, [ScopeMetrics(self._scope, metrics, "")], "")])
        return self._exporter.export(data, timeout_millis=1000 * _TIMEOUT_S) is MetricExportResult.SUCCESS


def _requests(families: Sequence[Family], static: Mapping[str, str]) -> Iterator[list[Metric]]:
    """The metrics of each request: a large family is in several, and small ones share one."""
    now_ns = time.time_ns()
    metrics: list[Metric] = []
    room = _MOST_POINTS
    for family in families:
        points = _points(family, static, now_ns)
        while some := list(islice(points, room)):
            metrics.append(Metric(family.name, family.help, "", Gauge(some)))
            room -= len(some)
            if not room:
                yield metrics
                metrics, room = [], _MOST_POINTS
    if metrics:
        yield metrics


def _points(family: Family, static: Mapping[str, str], now_ns: int) -> Iterator[NumberDataPoint]:
    """The samples of a family."""
    if not family.series:
        return
    names = list(family.labels.values)
    columns = [column.to_pylist() for column in family.labels.values.values()]
    rows = zip(*columns, strict=True) if columns else repeat((), len(family.values))
    for value, row in zip(family.values.to_pylist(), rows, strict=True):
        if value is not None:
            yield NumberDataPoint({**static, **dict(zip(names, row, strict=True))}, 0, now_ns, float(value))
