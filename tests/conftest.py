"""Fixtures for the whole suite, and how it is dealt to several processes (`pytest -n 4`, pytest-xdist).

Whatever is imported here is imported by each run of a single test: no Spark, no Kafka, no Delta.
"""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.by_turns import ByTurns, in_turn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.scheduler import LoadScopeScheduling

    from streaming.demo.broker import EmbeddedBroker

_skipped: list[str] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let what lasts longest begin first, where several processes share the tests."""
    if hasattr(config, "workerinput"):
        in_turn(items)


# A JVM's start is what most tests with one cost, and a fifth of it is the proof that bytecode is sound: of jars whose
# SHA-256 was compared. (And brokers of tests live for seconds: the second compiler would only take the other core, as
# conf/spark-defaults.conf tells of Spark.)
_SOUND = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)


def pytest_configure() -> None:
    """Let the JVMs of Spark start in less time, also in the processes that tests start."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(_SOUND))


def pytest_collection_finish() -> None:
    """The same for brokers."""
    if "streaming.demo.broker" in sys.modules:  # (or no test starts one)
        from streaming.demo.broker import EmbeddedBroker  # noqa: PLC0415

        EmbeddedBroker.jvm = (*_SHORT_LIVED, *_SOUND)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    """Deal groups of tests to the processes."""
    return ByTurns(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what was skipped."""
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of continuous integration in which a test was skipped, for want of a browser for instance."""
    # (A worker's reports all come to the process that started it.)
    if os.environ.get("CI") and _skipped and not hasattr(session.config, "workerinput"):
        print(f"\nnothing may be skipped in continuous integration, and this was: {', '.join(_skipped)}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """One real Kafka broker for the whole run of this process: tests keep apart by the names of their topics and groups
    (`unique`).

    Never stop or restart this one; a test that needs that starts its own `EmbeddedBroker` in its `tmp_path`.
    """
    from streaming.demo.broker import EmbeddedBroker  # noqa: PLC0415

    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(broker: EmbeddedBroker) -> str:
    """Where this process's broker listens: `127.0.0.1:PORT`."""
    return broker.bootstrap


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """A prefix for topics and groups that no other test has, and that tells the test in the broker's log."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    return f"{name[:60]}-{uuid.uuid4().hex[:6]}"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The job's own Spark session, one for the whole run of this process: its start costs some ten seconds."""
    from streaming.config import JobSettings  # noqa: PLC0415
    from streaming.job.session import start_session  # noqa: PLC0415

    session = start_session(JobSettings(), "evenkeel tests")
    yield session
    session.stop()
