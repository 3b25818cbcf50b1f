"""Fixtures for the whole suite."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from streaming.config import JobSettings
from streaming.demo.broker import EmbeddedBroker
from streaming.job.session import start_session

_skipped: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what was skipped."""
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of continuous integration in which a test was skipped, for want of a browser for instance."""
    if os.environ.get("CI") and _skipped:
        print(f"\nnothing may be skipped in continuous integration, and this was: {', '.join(_skipped)}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """One real Kafka broker for the whole run: tests keep apart by the names of their topics and groups (`unique`).

    Never stop or restart this one; a test that needs that starts its own `EmbeddedBroker` in its `tmp_path`.
    """
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(broker: EmbeddedBroker) -> str:
    """Where the session's broker listens: `127.0.0.1:PORT`."""
    return broker.bootstrap


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """A prefix for topics and groups that no other test has, and that tells the test in the broker's log."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    return f"{name[:60]}-{uuid.uuid4().hex[:6]}"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The job's own Spark session, one for the whole run: its start costs some ten seconds."""
    session = start_session(JobSettings(), "evenkeel tests")
    yield session
    session.stop()
