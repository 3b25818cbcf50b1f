"""Several clusters in one file: what each takes, what is refused, and the file read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.config import FleetFile, load_fleet, load_settings
from streaming.exceptions import SetupError

_TWO = """
lake = "fleet"
[probe]
interval_ms = 20_000
events_partitions = 2
[filters]
ignore_groups = ["/^console-/"]
[[clusters]]
name = "orders"
[clusters.kafka]
bootstrap_servers = "orders:9092"
[clusters.probe]
interval_ms = 5_000
[clusters.filters]
groups = ["/^order-/"]
[[clusters]]
name = "mq-eu"
rocketmq = "mq:9876"
[clusters.bus]
bootstrap_servers = "bus:9092"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "evenkeel.toml"
    path.write_text(_TWO)
    monkeypatch.setenv("EVENKEEL_CONFIG", str(path))
    return path


@pytest.mark.usefixtures("file")
def test_each_cluster_has_its_own_connection_filters_interval_and_bus_and_shares_the_rest() -> None:
    orders, mq = load_fleet()
    assert (orders.cluster, orders.kafka.bootstrap_servers, orders.bus) == ("orders", "orders:9092", None)
    assert (orders.probe.interval_ms, orders.probe.events_partitions) == (5_000, 2)
    assert (orders.filters.groups, orders.filters.ignore_groups) == (("/^order-/",), ("/^console-/",))
    assert mq.rocketmq is not None
    assert mq.bus is not None
    assert (mq.cluster, mq.rocketmq.name_servers, mq.bus.bootstrap_servers) == ("mq-eu", "mq:9876", "bus:9092")
    assert (mq.probe.interval_ms, mq.filters.groups) == (20_000, ())
    assert orders.lake == mq.lake == "fleet"


@pytest.mark.usefixtures("file")
def test_a_cluster_has_variables_of_its_own_which_go_before_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_CLUSTERS__ORDERS__KAFKA__SASL_PASSWORD", "hunter2")
    monkeypatch.setenv("EVENKEEL_CLUSTERS__MQ_EU__PROBE__INTERVAL_MS", "7000")
    monkeypatch.setenv("EVENKEEL_PROBE__INTERVAL_MS", "9000")
    orders, mq = load_fleet()
    assert orders.kafka.sasl_password is not None
    assert orders.kafka.sasl_password.get_secret_value() == "hunter2"
    assert mq.kafka.sasl_password is None
    assert (orders.probe.interval_ms, mq.probe.interval_ms) == (9_000, 7_000)


@pytest.mark.usefixtures("file")
def test_a_chosen_cluster_is_alone_and_a_command_for_one_cluster_asks_which(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        SetupError, match=r"has 2 clusters: choose one with --cluster or EVENKEEL_CLUSTER, of orders, mq-eu"
    ):
        load_settings()
    assert [one.cluster for one in load_fleet(cluster="mq-eu")] == ["mq-eu"]
    monkeypatch.setenv("EVENKEEL_CLUSTER", "orders")
    monkeypatch.setenv("EVENKEEL_KAFKA__BOOTSTRAP_SERVERS", "elsewhere:1")
    assert [one.kafka.bootstrap_servers for one in load_fleet()] == ["elsewhere:1"]


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize("name", ["EVENKEEL_KAFKA__BOOTSTRAP_SERVERS", "EVENKEEL_BUS__SASL_PASSWORD"])
def test_a_variable_of_one_connection_is_refused_for_several(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "hunter2")
    with pytest.raises(SetupError, match=rf"^{name} would hold for each of the 2 clusters") as error:
        load_fleet()
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('[[clusters]]\nname = "a"\n[[clusters]]\n', "one without a name"),
        ('[[clusters]]\nname = "a"\n[[clusters]]\nname = "a"\n', "Variables of the clusters a and a of"),
        ('[[clusters]]\nname = "a-b"\n[[clusters]]\nname = "a_b"\n', "Variables of the clusters a-b and a_b of"),
        (
            '[job]\ncheckpoint = "c"\n[[clusters]]\nname = "a"\n[[clusters]]\nname = "b"\n',
            "one job.checkpoint for several",
        ),
        ('[[clusters]]\nname = "a"\nlake = "x"\n[[clusters]]\nname = "b"\n', "The setting clusters.lake is wrong"),
    ],
)
def test_clusters_that_cannot_be_told_apart_are_refused(content: str, told: str, file: Path) -> None:
    file.write_text(content)
    with pytest.raises(SetupError, match=told):
        load_fleet()


def test_the_file_read_again_adds_changes_and_removes_clusters(file: Path) -> None:
    fleet = FleetFile(load_fleet())
    assert not fleet.poll()
    _replace(file, _TWO.replace("orders:9092", "orders:9093") + '[[clusters]]\nname = "third"\n')
    assert fleet.poll()
    assert list(fleet.clusters) == ["orders", "mq-eu", "third"]
    assert fleet.clusters["orders"].kafka.bootstrap_servers == "orders:9093"
    _replace(file, '[[clusters]]\nname = "third"\n')
    assert fleet.poll()
    assert list(fleet.clusters) == ["third"]
    assert not fleet.poll()


@pytest.mark.parametrize("content", ["", "[[clusters", "[probe]\n", '[[clusters]]\nname = "a"\nlake = "x"\n'])
def test_a_file_that_is_wrong_or_empty_now_changes_nothing_and_is_told_once(content: str, file: Path) -> None:
    fleet = FleetFile(load_fleet())
    before = dict(fleet.clusters)
    _replace(file, content)
    with pytest.raises(SetupError):
        fleet.poll()
    assert not fleet.poll()
    file.unlink()
    assert not fleet.poll()
    assert fleet.clusters == before


def _replace(file: Path, content: str) -> None:
    """As editors and mounted volumes do: another file under the same name."""
    new = file.with_suffix(".new")
    new.write_text(content)
    new.replace(file)
