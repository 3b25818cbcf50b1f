"""What the settings mean: filters, expected strategies, owners, several clusters; and the shipped file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streaming.config import (
    ROCKETMQ_SECRETS,
    Filters,
    FleetFile,
    Owner,
    RocketMQSettings,
    Settings,
    environment_of,
    load_fleet,
    load_settings,
    owner_of,
    strategy_of,
)
from streaming.config import kafka as kafka_settings
from streaming.config.rocketmq import RocketMQStrategy
from streaming.exceptions import SetupError


def test_ignore_wins_over_watch() -> None:
    filters = Filters(groups=("a", "/^pay/"), ignore_groups=("/test$/",))
    assert [g for g in ("a", "b", "payments", "payments-test", "ab") if filters.watches_group(g)] == ["a", "payments"]


def test_nothing_configured_watches_everything() -> None:
    assert Filters().watches_group("any\nname")
    assert Filters().watches_topic("")


def test_strategy_and_clients_come_from_the_first_rules_that_name_them() -> None:
    loaded = load_settings(
        strategies=(
            {"groups": "/^pay/", "strategy": "sticky"},
            {"groups": "/^pay/", "clients": ["java:3.7.1", "sarama"]},
            {"groups": "/./", "strategy": "range", "clients": ["librdkafka"]},
        ),
        clients=("java",),
    )
    assert loaded.group_rules.of("payments") == ("sticky", ("java:3.7.1", "sarama"))
    assert loaded.group_rules.of("orders") == ("range", ("librdkafka",))
    assert loaded.group_rules.of("") == (None, ("java",))
    assert load_settings().group_rules.of("orders") is None


def test_a_group_belongs_to_the_team_of_the_first_entry_with_a_pattern_that_matches() -> None:
    owners = (
        Owner(team="payments", groups=("checkout", "/^pay/")),
        Owner(team="search", groups=("/index/", "payments-search")),
        Owner(team="rest", groups=("/^x/",)),
    )
    groups = ("checkout", "checkout2", "payments-search", "reindex", "x", "")
    assert [owner_of(g, owners) for g in groups] == ["payments", None, "payments", "search", "rest", None]
    assert owner_of("checkout", ()) is None


def test_the_shipped_file_reads_as_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Path(__file__).parents[2] / "conf" / "evenkeel.toml"
    monkeypatch.setenv("EVENKEEL_CONFIG", str(shipped))
    from_file = load_settings()
    monkeypatch.delenv("EVENKEEL_CONFIG")
    assert from_file == load_settings()


def test_every_setting_is_explained_in_the_shipped_file() -> None:
    text = (Path(__file__).parents[2] / "conf" / "evenkeel.toml").read_text()
    defaults = Settings()
    for section in ("kafka", "filters", "probe", "job", "alerts", "serve", "maintenance"):
        # Secrets themselves must not be in a shipped file.
        names = set(type(getattr(defaults, section)).model_fields) - {
            *kafka_settings.KAFKA_SECRETS,
            "client",
            "token",
            "marks_token",
            "password",
            "targets",
        }
        tables = {"routes"}
        assert [n for n in sorted(names - tables) if f"# {n} =" not in text] == []
    of_rocketmq = {*RocketMQSettings.model_fields, *RocketMQStrategy.model_fields} - {*ROCKETMQ_SECRETS}
    assert [n for n in sorted(of_rocketmq) if f"# {n} =" not in text] == []
    assert [n for n in sorted(tables) if f"# [[alerts.{n}]]" not in text] == []
    assert [line for line in text.splitlines() if len(line) > 120] == []


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
    assert (mq.cluster, mq.rocketmq.name_servers, mq.bus.bootstrap_servers) == ("mq-eu", "mq:9876", "bus:9092")
    assert (mq.probe.interval_ms, mq.filters.groups) == (20_000, ())
    assert orders.lake == mq.lake == "fleet"


@pytest.mark.usefixtures("file")
def test_a_cluster_has_variables_of_its_own_which_go_before_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_CLUSTERS__ORDERS__KAFKA__SASL_PASSWORD", "hunter2")
    monkeypatch.setenv("EVENKEEL_CLUSTERS__MQ_EU__PROBE__INTERVAL_MS", "7000")
    monkeypatch.setenv("EVENKEEL_PROBE__INTERVAL_MS", "9000")
    orders, mq = load_fleet()
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


_SECTION = """
[[clusters]]
name = "orders"
[clusters.rocketmq]
name_servers = "10.0.0.1;[::1]:9877"
access_key = "id"
secret_key = "hidden"
[[clusters.rocketmq.strategies]]
groups = "/^pay/"
virtual_node_cnt = 20
"""


def test_a_text_is_the_name_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evenkeel.toml").write_text('[[clusters]]\nrocketmq = "a:1; b ;a:1"\n')
    found = load_settings().rocketmq
    assert found.addresses == ("a:1", "b")


def test_a_section_travels_to_the_programs_with_its_secret_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evenkeel.toml").write_text(_SECTION)
    settings = load_settings()
    found = settings.rocketmq
    assert "hidden" not in f"{settings!r}"
    assert (found.addresses, found.login()) == (("10.0.0.1", "[::1]:9877"), ("id", "hidden"))
    assert [strategy_of(found.strategies, group) for group in ("payments", "x")] == [found.strategies[0], None]
    (tmp_path / "evenkeel.toml").unlink()
    for name, value in environment_of(settings).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == settings


@pytest.mark.parametrize("given", [{"access_key": "me"}, {"secret_key": "hunter2"}])
def test_one_key_without_the_other_is_a_sentence_where_the_client_is_made(given: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match="belong together") as error:
        RocketMQSettings(name_servers="a:1", **given).login()
    assert "hunter2" not in str(error.value)
