"""Settings from file, environment and arguments: which one wins, and one sentence for whatever is wrong there."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.net.sasl import get_sasl_mechanism

from streaming.config import (
    BusFolder,
    Filters,
    FleetFile,
    JobSettings,
    KafkaSettings,
    RocketMQSettings,
    Settings,
    checkpoint_of,
    environment_of,
    load_settings,
    secret_variable,
)
from streaming.config import kafka as kafka_settings
from streaming.exceptions import SetupError
from streaming.up import JOB, PROBE, SERVER, probe_of
from tests.examples import examples


def test_the_environment_wins_over_the_file_and_arguments_over_both(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'lake = "file-lake"\n[[clusters]]\n[clusters.kafka]\nbootstrap_servers = "file:1"\nsasl_username = "file"\n'
    )
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    monkeypatch.setenv("EVENKEEL_CLUSTER", "environment")
    monkeypatch.setenv("EVENKEEL_KAFKA__SASL_USERNAME", "environment")
    loaded = load_settings(lake="argument")
    assert (loaded.cluster, loaded.lake) == ("environment", "argument")
    assert (loaded.kafka.bootstrap_servers, loaded.kafka.sasl_username) == ("file:1", "environment")


def test_a_process_for_a_cluster_that_the_file_no_longer_has_does_not_take_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "evenkeel.toml").write_text('[[clusters]]\nname = "orders"\n')
    monkeypatch.setenv("EVENKEEL_CLUSTER", "payments")
    with pytest.raises(SetupError, match=r"^evenkeel\.toml has no cluster named payments: it has orders\.$"):
        load_settings()


@pytest.mark.parametrize(
    "content",
    [
        '[[clusters]]\nname = "a"\n[clusters.kafka]\nbootstrap_servers = "h:1"\nclient = { client_id = "c" }\n',
        '[[clusters]]\nname = "a"\nkafka.bootstrap_servers = "h:1"\n[clusters.kafka.client]\nclient_id = "c"\n',
        '[[clusters]]\nname = "a"\nkafka = { bootstrap_servers = "h:1", client = { client_id = "c" } }\n',
        'clusters = [{ name = "a", kafka = { bootstrap_servers = "h:1", client.client_id = "c" } }]\n',
    ],
)
def test_the_files_one_cluster_is_the_cluster(tmp_path: Path, content: str) -> None:
    (tmp_path / "evenkeel.toml").write_text(content)
    loaded = load_settings()
    assert loaded.cluster == "a"
    assert loaded.kafka == KafkaSettings(bootstrap_servers="h:1", client={"client_id": "c"})


@pytest.mark.parametrize("content", ["clusters = []\n", "[[clusters]]\n", "[[clusters]]\n[clusters.kafka]\n"])
def test_a_file_that_says_nothing_of_its_cluster_leaves_the_defaults(tmp_path: Path, content: str) -> None:
    (tmp_path / "evenkeel.toml").write_text(content)
    assert load_settings() == Settings()


_RIGHT_FORM = (
    "begin the cluster's settings with [[clusters]], give its name as name, and its connection in [clusters.kafka]."
)


WRONG = {
    'cluster = "a"': f"evenkeel.toml has cluster at its top level: {_RIGHT_FORM}",
    '[kafka]\nbootstrap_servers = "h:1"': f"evenkeel.toml has kafka at its top level: {_RIGHT_FORM}",
    '[clusters]\nname = "a"': (
        "clusters in evenkeel.toml is not a list of tables: begin each cluster's settings with [[clusters]]."
    ),
    "clusters = [1]": "clusters in evenkeel.toml is not a list of tables",
    '[[clusters]]\nbootstrap_servers = "h:1"': "The setting clusters.bootstrap_servers is wrong: ",
    "[[clusters]]\nname = 5": "The setting cluster is wrong: ",
    "[[clusters]]\nkafka = 5": "The setting kafka is wrong: ",
    '[[clusters]]\n[clusters.rocketmq]\nname_servers = ""': "The setting rocketmq.name_servers is wrong: ",
    '[[clusters]]\nrocketmq = { name_servers = "a:1", strategies = [{ groups = "/(/" }] }': (
        "The setting rocketmq.strategies.0.groups is wrong: "
    ),
    "[probe]\nintervall_ms = 5": "The setting probe.intervall_ms is wrong: ",
    '[filters]\ngroups = ["/(/"]': "The setting filters.groups.0 is wrong: ",
    '[[strategies]]\ngroups = "/[/"\nstrategy = "range"': "The setting strategies.0.groups is wrong: ",
    '[[strategies]]\ngroups = "a"\nstrategy = ""': "The setting strategies.0.strategy is wrong: ",
    '[[strategies]]\ngroups = "a"': "The setting strategies.0 is wrong: ",
    '[[strategies]]\ngroups = "a"\nclients = ["jawa"]': "The setting strategies.0.clients.0 is wrong: ",
    '[[clusters]]\nclients = ["java:new"]': "The setting clients.0 is wrong: ",
    '[[owners]]\nteam = "a"\ngroups = ["/(/"]': "The setting owners.0.groups.0 is wrong: ",
    '[[owners]]\nteam = "a"\ngroups = []': "The setting owners.0.groups is wrong: ",
    '[[owners]]\nteam = ""\ngroups = ["a"]': "The setting owners.0.team is wrong: ",
    '[[owners]]\nteam = "a"': "The setting owners.0.groups is wrong: ",
    '[[owners]]\nteam = "a"\ngroups = ["a"]\ngroup = 1': "The setting owners.0.group is wrong: ",
}


@pytest.mark.parametrize("content", WRONG)
def test_a_file_that_is_wrong_is_refused_in_one_sentence_that_says_where(tmp_path: Path, content: str) -> None:
    (tmp_path / "evenkeel.toml").write_text(content)
    told = _refusal()
    assert told.startswith(WRONG[content])
    assert "\n" not in told


def test_a_file_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_CONFIG", "/nowhere/evenkeel.toml")
    with pytest.raises(SetupError, match=r"EVENKEEL_CONFIG names /nowhere/evenkeel\.toml, which is not a file"):
        load_settings()


def test_a_settings_file_that_is_a_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "evenkeel.toml").mkdir()
    with pytest.raises(SetupError, match=r"The settings file evenkeel\.toml cannot be read \(Is a directory\)"):
        load_settings()


def test_a_settings_file_that_this_user_may_not_read_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evenkeel.toml").touch()

    def refuse(path: Path) -> bytes:  # root may read everything
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(SetupError, match=r"The settings file evenkeel\.toml cannot be read \(Permission denied\)"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EVENKEEL_ALERTS__TARGETS", "jsons://me:hunter2@hooks"),
        ("EVENKEEL_ALERTS", "{'targets': 'hunter2'}"),
        ("EVENKEEL_KAFKA__CLIENT", '{"client_id": "hunter2"'),
        ("EVENKEEL_FILTERS__GROUPS", "hunter2"),
        ("EVENKEEL_SERVE__HOSTS", "hunter2,b"),
        ("EVENKEEL_CUSTOM_STRATEGIES", "hunter2"),
        ("evenkeel_strategies", "hunter2"),
    ],
)
def test_a_variable_that_is_no_json_is_named_and_not_shown(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_CLUSTER", value)  # whatever its value
    monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match=r"^A variable of the environment cannot be read as JSON: ") as error:
        load_settings()
    assert name.split("_", 1)[1].partition("__")[0].lower() in str(error.value)
    assert "hunter2" not in str(error.value)
    assert "\n" not in str(error.value)


_WRONG_ENVIRONMENT = st.dictionaries(
    st.sampled_from(["KAFKA", "ALERTS", "FILTERS", "SERVE", "STRATEGIES", "LAKE", "PROBE__INTERVAL_MS", "KAFKA__CLIENT",
                     "ALERTS__TARGETS", "ALERTS__TARGETS__OPS", "ALERTS__RULES", "FILTERS__GROUPS", "SERVE__PAST_HOURS",
                     "CUSTOM_STRATEGIES", "KAFKA__CLIENT__PROXY_URL", "KAFKA__SASL_PASSWORD__X", "CLUSTER__X"]),
    st.one_of(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
        st.sampled_from(["null", "[]", "{}", "5", '"x"', '{"jsons://hunter2": 1}', '[{"groups": 1}]', "[[[[", "1e999",
                         '{"targets": {"\\u0000": 2}}', "[" * 99_999, '{"client": {"a hunter2": 1}}', "\udcff", "NaN"]),
    ),
)  # fmt: skip


def _refusal() -> str:
    """The error of the settings; empty when there is none."""
    try:
        load_settings()
    except SetupError as error:
        return str(error)
    return ""


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_WRONG_ENVIRONMENT)
def test_no_environment_is_more_than_a_sentence(monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]) -> None:
    with monkeypatch.context() as patch:
        for name, value in wrong.items():
            patch.setenv(f"EVENKEEL_{name}", value)
        told = _refusal()
    assert told.isprintable()
    assert "hunter2" not in told


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([
            b"kafka = 5", b"[kafka]\nclient = 3", b"strategies = {}", b"lake = 1979-05-27", b"[[kafka]]\nx = 1", b"= 1",
            b"\xef\xbb\xbflake = 'a'", b"\xff", b"a = " + b"[" * 5_000, b"serve.past_hours = inf",
            b"'a hunter2\\u001b[31m' = 1", b"[[clusters]]\n'a hunter2\\u001b[31m' = 1",
            b"[[clusters]]\nkafka = 'hunter2'",
        ]),
    )
)  # fmt: skip
def test_no_settings_file_is_more_than_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "evenkeel.toml").write_bytes(content)
    told = _refusal()
    assert told.isprintable()
    assert "hunter2" not in told


# The programs that a process starts get its settings, and only the secrets that they need.


def test_the_programs_get_the_very_same_settings_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_settings(
        cluster='it\'s "quoted"',
        kafka=KafkaSettings(
            bootstrap_servers="a:1,b:2",
            security_protocol="SASL_SSL",
            sasl_mechanism="PLAIN",
            sasl_username="u",
            sasl_password="p=x y",
            client={"client_dns_lookup": "use_all_dns_ips"},
        ),
        filters=Filters(ignore_groups=("/^x,y/", "z")),
        bus=KafkaSettings(
            bootstrap_servers="c:3", sasl_mechanism="PLAIN", sasl_password="q=x y", client={"client_id": "b"}
        ),
        owners=({"team": 'it\'s "ours"', "groups": ("/^a,b/", "c")}, {"team": "others", "groups": ("/./",)}),
        alerts={
            "targets": {"ops": "json://a:1", "am": "alertmanager://b:2"},
            "routes": [{"targets": ["ops"], "labels": {"a": "/b/"}}],
        },
    )
    for name, value in environment_of(loaded).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == loaded


def test_strategies_and_clients_are_left_to_the_file_which_the_probe_reads_again_and_again() -> None:
    settings = load_settings(strategies=({"groups": "/^a/", "strategy": "range"},), clients=("java",))
    assert not {"EVENKEEL_STRATEGIES", "EVENKEEL_CLIENTS"} & set(environment_of(settings))


_OF_CONNECTIONS = {
    secret_variable(name, section) for section in ("kafka", "bus") for name in kafka_settings.KAFKA_SECRETS
}
_OF_THE_SERVER = {
    "EVENKEEL_ALERTS__TARGETS",
    "EVENKEEL_SERVE__TOKEN",
    "EVENKEEL_SERVE__PASSWORD",
    "EVENKEEL_SERVE__MARKS_TOKEN",
}


def test_secrets_of_connections_go_to_probe_and_job_alone_and_those_of_people_to_the_server() -> None:
    of_people = {"serve": {"token": "t", "password": "p", "marks_token": "m"}, "alerts": {"targets": {"o": "json://a"}}}
    assert set(environment_of(load_settings(**of_people))) >= _OF_THE_SERVER
    assert len(_OF_CONNECTIONS) == 4
    for program in (PROBE, JOB):
        assert set(program.without) & (_OF_CONNECTIONS | _OF_THE_SERVER) == _OF_THE_SERVER
    assert set(SERVER.without) & (_OF_CONNECTIONS | _OF_THE_SERVER) == _OF_CONNECTIONS


def test_secrets_of_a_store_go_to_a_probe_only_where_its_bus_is_there() -> None:
    secret = "AWS_SECRET_ACCESS_KEY"

    def without(**given: Any) -> tuple[str, ...]:
        return probe_of("c", FleetFile([Settings(cluster="c", **given)])).without

    mq = RocketMQSettings(name_servers="h:1")
    assert secret in without(lake="s3://b/lake")
    assert secret in without(lake="s3://b/lake", bus=KafkaSettings(bootstrap_servers="h:1"), rocketmq=mq)
    assert secret in without(lake="lake", rocketmq=mq)
    assert secret not in without(lake="s3://b/lake", rocketmq=mq)
    assert secret not in without(lake="lake", bus=BusFolder(folder="s3://b/bus"))


# Where the job's state is: beside tables in a folder, else where a setting says.


@pytest.mark.parametrize("lake", ["/data/lake/", "hdfs://host/lake"])
def test_beside_tables_that_are_not_on_an_object_store_it_is_in_the_lake(lake: str) -> None:
    assert checkpoint_of(Settings(lake=lake, cluster="c")) == f"{lake.rstrip('/')}/_checkpoints/c"


@pytest.mark.parametrize("lake", ["s3://b/lake", "S3A://b/lake", "gs://b/lake", "abfss://c@a.dfs.core.windows.net/l"])
def test_a_lake_on_an_object_store_needs_a_place_for_it(lake: str) -> None:
    with pytest.raises(SetupError, match=r"^The lake \S+ is on an object store, .* job\.checkpoint"):
        checkpoint_of(Settings(lake=lake))
    for place in ("/data/c", "s3://b/checkpoint"):
        assert checkpoint_of(Settings(lake=lake, job=JobSettings(checkpoint=place))) == place
        assert checkpoint_of(Settings(lake=lake), place) == place


def test_the_place_of_a_start_wins_over_the_settings() -> None:
    assert checkpoint_of(Settings(job=JobSettings(checkpoint="/a")), "/b") == "/b"


# Amazon MSK's login by IAM: our settings reach the mechanism of kafka-python that signs it.


class Session:
    """What kafka-python asks of botocore's session."""

    def get_credentials(self) -> SimpleNamespace:
        keys = SimpleNamespace(access_key="AKIDEXAMPLE", secret_key="hunter2", token=None)
        return SimpleNamespace(get_frozen_credentials=lambda: keys)

    def get_config_variable(self, name: str) -> str:
        return {"region": "eu-north-1"}[name]


@pytest.fixture
def _botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ModuleType("botocore.session")
    session.Session = Session  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "botocore", ModuleType("botocore"))
    monkeypatch.setitem(sys.modules, "botocore.session", session)


@pytest.mark.usefixtures("_botocore")
@pytest.mark.parametrize("client", [KafkaAdminClient, KafkaConsumer, KafkaProducer])
def test_each_client_signs_a_login_for_its_broker_by_our_settings(client: type) -> None:
    settings = KafkaSettings(
        bootstrap_servers="b-1.example:9098", security_protocol="SASL_SSL", sasl_mechanism="AWS_MSK_IAM"
    )
    config = client.DEFAULT_CONFIG | settings.client_config()  # type: ignore[attr-defined]
    mechanism = get_sasl_mechanism(config["sasl_mechanism"])(host="b-1.example", **config)
    login = json.loads(mechanism.auth_bytes())
    assert (login["host"], login["action"]) == ("b-1.example", "kafka-cluster:Connect")
    assert login["x-amz-credential"].startswith("AKIDEXAMPLE/")
    assert "/eu-north-1/kafka-cluster/" in login["x-amz-credential"]
    assert len(login["x-amz-signature"]) == 64
