"""Fixtures for the whole suite, and its distribution to several processes (`pytest -n 4`, pytest-xdist).

Imports here slow down each run of a single test, so no Spark, no Kafka, no Delta.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import logging
import os
import re
import sys
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest
from _pytest.nodeid import NodeId

from tests.short_lived import SHORT_LIVED, UNVERIFIED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.demo.broker import EmbeddedBroker
    from tests.object_store import ObjectStore
    from tests.pair_of_brokers import Pair
    from tests.rocketmq.servers import EmbeddedRocketMQ

_skipped: list[str] = []
_group_stack = ExitStack()


Tell = Callable[..., None]
"""Takes lines, or what has a line as its text."""

_LAST_TURN = 9

_EXPENSIVE = ("broker", "served", "boards")
"""Fixtures of whole runs whose tests share a group by day. The broker's start takes five seconds of processor time, and
its rest a seventieth of a core; the others are two seconds each. Not at night: one process would take hours."""


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Let each of several processes compile a share of the modules, and then find those of the others compiled.

    Each of them imports all modules. To rewrite the assertions of a fresh checkout takes two thirds of that.
    """
    worker = getattr(collector.config, "workerinput", None)
    if worker is None or not isinstance(collector, pytest.Session):
        return
    root = collector.config.rootpath
    modules = sorted(path for folder in collector.config.args for path in (root / folder).rglob("test_*.py"))
    for path in modules[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))


@pytest.hookimpl(trylast=True)  # after pytest-random-order has shuffled them
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes share the tests (`--dist loadgroup`): keep groups whole, and let the longest begin first.

    A group is a module, or what the mark `xdist_group` names, so that what is expensive to set up is set up once; or,
    by day, all tests of an expensive fixture. Its turn is the earliest `turn` of its tests: 0 for the long tests of
    `make soak`, 1 for the recorded run and for that of the installed wheel, which begin with two minutes of set-up, 2
    to 5 for others of half a minute or more, 6 for those above ten seconds, 10 for what runs last in its group.
    """
    if not hasattr(config, "workerinput"):
        return
    turns: dict[str, int] = {}
    for item in items:
        turns[_group_of(item)] = min(_turn(item), turns.get(_group_of(item), _LAST_TURN))
    begins = {group: place for place, group in enumerate(sorted(turns, key=turns.__getitem__))}
    items.sort(key=lambda item: (begins[_group_of(item)], _turn(item)))
    for item in items:
        # xdist 3.8.0 passes a test's group to the scheduler in its name, in a field that pytest 9.2.0 no longer reads
        # (pytest-xdist issue 1386).
        item._id = NodeId.parse(f"{item.nodeid.partition('@')[0]}@{_group_of(item)}")


def _group_of(item: pytest.Item) -> str:
    if mark := item.get_closest_marker("xdist_group"):
        return str(mark.args[0])
    if not any(item.get_closest_marker(name) for name in ("nightly", "soak")):
        for fixture in _EXPENSIVE:
            if fixture in getattr(item, "fixturenames", ()):
                return fixture
    return item.location[0]


def _turn(item: pytest.Item) -> int:
    mark = item.get_closest_marker("turn")
    return int(mark.args[0]) if mark else _LAST_TURN


def pytest_configure(config: pytest.Config) -> None:
    """Shorten the collection of tests and the start of Spark and brokers, also in the processes that tests start."""
    # Modules and tests are a million objects that all stay; Python's collector would look at them again and again.
    gc.disable()
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(SHORT_LIVED))
    if getattr(config.option, "numprocesses", None):
        from streaming.exceptions import SetupError  # noqa: PLC0415
        from streaming.job.class_archive import begin_to_write  # noqa: PLC0415
        from streaming.spark import use_prepared_home  # noqa: PLC0415
        from tests import prepared_brokers  # noqa: PLC0415

        prepared_brokers.prepare()
        with suppress(SetupError):  # no Java: the tests that need a session say so
            use_prepared_home()
        begin_to_write()


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what stays for the whole run, and shorten the start of brokers' JVMs."""
    gc.freeze()
    gc.enable()
    if "streaming.demo.broker" in sys.modules:  # else no test starts one
        from tests.prepared_brokers import use_what_is_prepared  # noqa: PLC0415

        use_what_is_prepared()
    if "tests.rocketmq.servers" in sys.modules:
        from tests.rocketmq.servers import Server  # noqa: PLC0415

        # An archive of classes would save some seven seconds of a run beyond that, and to write it takes five.
        Server.jvm = UNVERIFIED


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Let tests start `python -m tests.something` whatever ran before them in this process.

    A Spark session sets the variable for its workers, which have it from then on; in the children of later tests it
    would hide the checkout.
    """
    os.environ.pop("PYTHONSAFEPATH", None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Stop the servers that only one group of tests needs as soon as it ends, where several processes share the tests.

    A RocketMQ cluster that nobody asks anything takes a tenth of a core.
    """
    yield
    grouped = hasattr(item.config, "workerinput")
    if grouped and nextitem is not None and _group_of(item) != _group_of(nextitem):
        _group_stack.close()


def pytest_unconfigure() -> None:
    """Let the interpreter's end collect everything: libraries report what is left of them then.

    Not yet: pytest itself collects after this, twice, and looks for what tests have left.
    """
    atexit.register(gc.unfreeze)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember skipped tests."""
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a CI run in which a test was skipped, for instance because there is no browser."""
    # All reports of workers reach the process that started them.
    if os.environ.get("CI") and _skipped and not hasattr(session.config, "workerinput"):
        print(f"\nnothing may be skipped in continuous integration, and this was: {', '.join(_skipped)}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have told, passed or not."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call" and (lines := dict(report.user_properties).get("told")):
                terminalreporter.write_line(f"{report.nodeid}:\n{lines}")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """One real Kafka broker for the whole run of this process; tests use names of their own (`unique`).

    Never stop or restart it; a test that needs to starts its own `EmbeddedBroker` in its `tmp_path`.
    """
    from streaming.demo.broker import EmbeddedBroker  # noqa: PLC0415

    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(broker: EmbeddedBroker) -> str:
    """Address of this process's broker: `127.0.0.1:PORT`."""
    return broker.bootstrap


@pytest.fixture(scope="session")
def _second_broker(tmp_path_factory: pytest.TempPathFactory, until_its_group_ends: ExitStack) -> EmbeddedBroker:
    from streaming.demo.broker import EmbeddedBroker  # noqa: PLC0415

    overrides = {"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "100"}
    folder = tmp_path_factory.mktemp("second")
    return until_its_group_ends.enter_context(EmbeddedBroker(folder, heap="384m", overrides=overrides))


@pytest.fixture
def second_broker(_second_broker: EmbeddedBroker) -> EmbeddedBroker:
    """Another Kafka cluster, which runs, compacts at once, and which a test may kill.

    Tests use names of their own (`unique`). All its tests belong to the group "broker".
    """
    _second_broker.start()
    return _second_broker


@pytest.fixture(scope="session")
def until_its_group_ends() -> Iterator[ExitStack]:
    """What is entered here is left when the group of the test ends, or with the run of this process."""
    yield _group_stack
    _group_stack.close()


@pytest.fixture(scope="session")
def rocketmq(tmp_path_factory: pytest.TempPathFactory, until_its_group_ends: ExitStack) -> EmbeddedRocketMQ:
    """Two real brokers of RocketMQ and two name servers, of which the second does not know broker-b.

    Tests that want a sound cluster use the first name server alone, and groups and topics of their own (`unique`). A
    test that kills a server starts it again. All its tests share a group.
    """
    from tests.rocketmq.servers import EmbeddedRocketMQ  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("rocketmq")
    return until_its_group_ends.enter_context(EmbeddedRocketMQ(folder, name_servers=2, registers={"broker-b": [0]}))


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory, until_its_group_ends: ExitStack) -> Pair:
    """Two real brokers of one cluster, with eight partitions of the offsets log.

    Tests use names of their own (`unique`). A test that kills the second one starts it again. All its tests share a
    group.
    """
    from tests.pair_of_brokers import pair_of_brokers  # noqa: PLC0415

    shared = {
        "offsets.topic.num.partitions": "8",
        "default.replication.factor": "2",
        "group.initial.rebalance.delay.ms": "0",
    }
    return until_its_group_ends.enter_context(pair_of_brokers(tmp_path_factory, shared))


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """A unique prefix for topics and groups, which shows the test's name in the broker's log."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    return f"{name[:60]}-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """`tell(*lines)`: what a long test has found, for people; printed at the end of the run."""
    return lambda *lines: record_property("told", "\n".join(map(str, lines)))


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What a test logs, without what Kafka clients log in threads of their own.

    A client that belongs to the whole run, or that another test forgot to close, may lose its broker at any time.
    """
    caplog.handler.addFilter(_is_of_no_client_thread)
    yield caplog
    caplog.handler.removeFilter(_is_of_no_client_thread)


def _is_of_no_client_thread(record: logging.LogRecord) -> bool:
    return not (record.threadName or "").startswith("kafka-io-")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark session with our source and Delta, one for the whole run of this process; it starts in ten seconds."""
    from pyspark import SparkContext  # noqa: PLC0415

    from streaming.job.data_source import EvenkeelSource  # noqa: PLC0415
    from streaming.job.session import SHARED  # noqa: PLC0415
    from streaming.spark import start_spark  # noqa: PLC0415

    if (gateway := SparkContext._gateway) is not None:
        # The JVM of an earlier session would start Python processes without the server that forks them.
        gateway.shutdown()
        gateway.proc.stdin.close()
        SparkContext._gateway = SparkContext._jvm = None

    settings = {
        "spark.sql.shuffle.partitions": 2,
        # As of `maintain --engine spark`: VACUUM lists folders with 10,000 tasks otherwise, for two minutes.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": 2,
    }
    session = start_spark("evenkeel tests", settings, with_delta=True, shared=SHARED)
    session.dataSource.register(EvenkeelSource)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """One real S3 server for the whole run of this process; tests use buckets of their own, and never stop it."""
    from tests.object_store import ObjectStore, versitygw  # noqa: PLC0415

    # With CI=true a skipped test fails, see below: only a contributor without Go and without PyPI gets by without it.
    if versitygw() is None:
        pytest.skip("no versitygw: `python -m tests.programs store` builds it (make test does), with Go or without")
    with ObjectStore(tmp_path_factory.mktemp("object-store")) as running:
        yield running


@pytest.fixture
def s3(object_store: ObjectStore, unique: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """URI of a bucket of one test; this process, and what it starts, can reach it."""
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    return object_store.bucket(unique[-40:].lstrip("-"))
