from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka import KafkaConsumer

from streaming.config import Filters, KafkaSettings, Owner, Settings, load_settings, owner_of, secret_variable
from streaming.config import kafka as kafka_settings
from streaming.exceptions import SetupError
from streaming.job.source import SourceSettings
from streaming.up import ALERTER, JOB, PAGE, PROBE, environment_of


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("EVENKEEL_") and name != "EVENKEEL_CACHE":
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_ignore_wins_over_watch() -> None:
    filters = Filters(groups=("a", "/^pay/"), ignore_groups=("/test$/",))
    assert [g for g in ("a", "b", "payments", "payments-test", "ab") if filters.watches_group(g)] == ["a", "payments"]


def test_nothing_configured_watches_everything() -> None:
    assert Filters().watches_group("any\nname")
    assert Filters().watches_topic("")


def test_a_pattern_that_does_not_compile_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_FILTERS__GROUPS", '["/(/"]')
    with pytest.raises(SetupError, match=r"^The setting filters\.groups is wrong: .*regular expression /\(/") as error:
        load_settings()
    assert "\n" not in str(error.value)


def test_the_environment_wins_over_the_file_and_arguments_over_both(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'lake = "file-lake"\n[[clusters]]\nname = "file"\n[clusters.kafka]\nbootstrap_servers = "file:1"\n'
        'sasl_username = "file"\n'
    )
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    monkeypatch.setenv("EVENKEEL_CLUSTER", "environment")
    monkeypatch.setenv("EVENKEEL_KAFKA__SASL_USERNAME", "environment")
    loaded = load_settings(lake="argument")
    assert (loaded.cluster, loaded.lake) == ("environment", "argument")
    assert (loaded.kafka.bootstrap_servers, loaded.kafka.sasl_username) == ("file:1", "environment")


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

_ONE_EACH = "start one `evenkeel up` per cluster, each with a file of its own (EVENKEEL_CONFIG)."


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            '[[clusters]]\nname = "a"\n[[clusters]]\nname = "b"\n',
            f"evenkeel.toml has 2 entries of [[clusters]], and there is one cluster per process today: {_ONE_EACH}",
        ),
        (
            'cluster = "a"\n',
            f"evenkeel.toml has cluster at its top level: {_RIGHT_FORM}",
        ),
        (
            '[kafka]\nbootstrap_servers = "h:1"\n',
            f"evenkeel.toml has kafka at its top level: {_RIGHT_FORM}",
        ),
        (
            '[clusters]\nname = "a"\n',
            "clusters in evenkeel.toml is not a list of tables: begin the cluster's settings with [[clusters]].",
        ),
        ("clusters = [1]\n", "clusters in evenkeel.toml is not a list of tables"),
        ('[[clusters]]\nbootstrap_servers = "h:1"\n', "The setting clusters.bootstrap_servers is wrong: "),
        ("[[clusters]]\nname = 5\n", "The setting cluster is wrong: "),
        ("[[clusters]]\nkafka = 5\n", "The setting kafka is wrong: "),
    ],
)
def test_clusters_in_another_form_are_one_sentence_that_says_the_right_one(
    tmp_path: Path, content: str, told: str
) -> None:
    (tmp_path / "evenkeel.toml").write_text(content)
    with pytest.raises(SetupError) as error:
        load_settings()
    assert str(error.value).startswith(told)


@pytest.mark.parametrize("name", ["EVENKEEL_CLUSTERS", "EVENKEEL_CLUSTERS__0__NAME"])
def test_a_variable_named_after_the_files_clusters_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "hunter2")
    with pytest.raises(SetupError, match=f"^{name} is not a setting: .* by EVENKEEL_CLUSTER, and its") as error:
        load_settings()
    assert "hunter2" not in str(error.value)


def test_a_misspelt_setting_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[probe]\nintervall_ms = 5\n")
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    with pytest.raises(SetupError, match=r"probe\.intervall_ms"):
        load_settings()


def test_a_file_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_CONFIG", "/nowhere/evenkeel.toml")
    with pytest.raises(SetupError, match=r"EVENKEEL_CONFIG names /nowhere/evenkeel\.toml, which is not a file"):
        load_settings()


def test_the_shipped_file_reads_as_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Path(__file__).parents[2] / "conf" / "evenkeel.toml"
    monkeypatch.setenv("EVENKEEL_CONFIG", str(shipped))
    from_file = load_settings()
    monkeypatch.delenv("EVENKEEL_CONFIG")
    assert from_file == load_settings()


def test_every_setting_is_explained_in_the_shipped_file() -> None:
    text = (Path(__file__).parents[2] / "conf" / "evenkeel.toml").read_text()
    defaults = Settings()
    for section in ("kafka", "filters", "probe", "job"):
        # Secrets themselves must not be in a shipped file.
        names = set(type(getattr(defaults, section)).model_fields) - {*kafka_settings.KAFKA_SECRETS, "client"}
        assert [n for n in sorted(names) if f"# {n} =" not in text] == []


def test_secrets_print_as_stars_and_are_in_no_option() -> None:
    kafka = KafkaSettings(sasl_mechanism="PLAIN", sasl_username="me", sasl_password="hunter2", ssl_password="hunter3")
    assert "hunter" not in repr(kafka) + str(kafka) + json.dumps(kafka.public()) + kafka.model_dump_json()
    assert kafka.client_config()["sasl_plain_password"] == "hunter2"


def test_a_task_finds_the_secrets_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = KafkaSettings(sasl_mechanism="PLAIN", sasl_username="me", sasl_password="hunter2")
    monkeypatch.setenv("EVENKEEL_KAFKA__SASL_PASSWORD", "placeholder")  # so that the export is undone after the test
    kafka.export_secrets()
    assert KafkaSettings.from_public(kafka.public()).client_config() == kafka.client_config()


def test_a_secret_in_a_file_is_read_where_the_client_is_made(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hunter2\n")
    kafka = KafkaSettings(sasl_mechanism="PLAIN", sasl_username="me", sasl_password_file=secret)
    assert KafkaSettings.from_public(kafka.public()).client_config()["sasl_plain_password"] == "hunter2"


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
        strategies=({"groups": "/^a/", "strategy": "range"},),
    )
    for name, value in environment_of(loaded).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == loaded


def test_the_first_rule_that_fits_names_the_expected_strategy() -> None:
    loaded = load_settings(
        strategies=({"groups": "/^pay/", "strategy": "sticky"}, {"groups": "/./", "strategy": "range"})
    )
    assert [loaded.expected_strategy(g) for g in ("payments", "orders", "")] == ["sticky", "range", None]


def test_without_a_bus_the_watched_cluster_holds_the_two_topics(tmp_path: Path) -> None:
    (tmp_path / "evenkeel.toml").write_text('[[clusters]]\n[clusters.kafka]\nbootstrap_servers = "h:1"\n[bus]\n')
    loaded = load_settings()
    assert loaded.bus is None
    assert loaded.bus_kafka == loaded.kafka == KafkaSettings(bootstrap_servers="h:1")
    assert not any(name.startswith("EVENKEEL_BUS") for name in environment_of(loaded))


def test_a_bus_is_a_connection_of_its_own_from_file_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evenkeel.toml").write_text('[bus]\nbootstrap_servers = "bus:1"\nclient = { client_id = "c" }\n')
    monkeypatch.setenv("EVENKEEL_BUS__SASL_USERNAME", "me")
    monkeypatch.setenv("EVENKEEL_KAFKA__BOOTSTRAP_SERVERS", "h:1")
    loaded = load_settings()
    assert loaded.bus == KafkaSettings(bootstrap_servers="bus:1", sasl_username="me", client={"client_id": "c"})
    assert loaded.kafka == KafkaSettings(bootstrap_servers="h:1")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('sasl_username = "me"', r"^The setting bus is wrong: .*bus\.bootstrap_servers is missing: name the brokers"),
        ('bootstrap_servers = "h:1"\nuser = 5', r"^The setting bus\.user is wrong"),
        ('bootstrap_servers = "h:1"\nclient = { ssl_password = "hunter2" }', r"^The setting bus\.client is wrong"),
    ],
)
def test_a_bus_that_is_wrong_is_one_sentence(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "evenkeel.toml").write_text(f"[bus]\n{content}\n")
    with pytest.raises(SetupError, match=told) as error:
        load_settings()
    assert "hunter2" not in str(error.value)


def test_the_secrets_of_a_bus_are_none_of_the_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    for section in ("KAFKA", "BUS"):  # so that the export is undone after the test
        monkeypatch.setenv(f"EVENKEEL_{section}__SASL_PASSWORD", "placeholder")

    def login(address: str, password: str) -> KafkaSettings:
        return KafkaSettings(
            bootstrap_servers=address, sasl_mechanism="PLAIN", sasl_username="me", sasl_password=password
        )

    loaded = Settings(kafka=login("h:1", "hunter2"), bus=login("bus:1", "hunter3"))
    source = SourceSettings.of(loaded)
    assert "hunter" not in source.option() + repr(loaded)
    for section, kafka in loaded.connections().items():
        kafka.export_secrets(section)
    found = [client.client_config() for client in (source.client(), source.bus_client()) if client is not None]
    assert found == [kafka.client_config() for kafka in loaded.connections().values()]
    assert [config["sasl_plain_password"] for config in found] == ["hunter2", "hunter3"]


def test_secrets_of_connections_go_to_probe_and_job_alone() -> None:
    secrets = {secret_variable(name, section) for section in ("kafka", "bus") for name in kafka_settings.KAFKA_SECRETS}
    assert len(secrets) == 6
    assert all(secrets <= set(program.without) for program in (ALERTER, PAGE))
    assert not any(secrets & set(program.without) for program in (PROBE, JOB))


def test_a_group_belongs_to_the_team_of_the_first_entry_with_a_pattern_that_matches() -> None:
    owners = (
        Owner(team="payments", groups=("checkout", "/^pay/")),
        Owner(team="search", groups=("/index/", "payments-search")),
        Owner(team="rest", groups=("/^x/",)),
    )
    groups = ("checkout", "checkout2", "payments-search", "reindex", "x", "")
    assert [owner_of(g, owners) for g in groups] == ["payments", None, "payments", "search", "rest", None]
    assert owner_of("checkout", ()) is None


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('team = "a"\ngroups = ["/(/"]', r"owners\.0\.groups is wrong: .*regular expression /\(/"),
        ('team = "a"\ngroups = []', r"owners\.0\.groups is wrong"),
        ('team = ""\ngroups = ["a"]', r"owners\.0\.team is wrong"),
        ('team = "a"\ngroups = "a"', r"owners\.0\.groups is wrong"),
        ('team = "a"', r"owners\.0\.groups is wrong"),
        ('team = "a"\ngroups = ["a"]\ngroup = 1', r"owners\.0\.group is wrong"),
    ],
)
def test_an_owner_that_is_wrong_is_one_sentence(tmp_path: Path, content: str, place: str) -> None:
    (tmp_path / "evenkeel.toml").write_text(f"[[owners]]\n{content}\n")
    with pytest.raises(SetupError, match=rf"^The setting {place}"):
        load_settings()


@pytest.mark.parametrize(
    ("client", "told"),
    [
        ({"sasl_plain_password": "hunter2"}, "sasl_plain_password is not allowed here"),
        ({"sasl_jaas_config": 'required password="hunter2";'}, "sasl_jaas_config is not allowed here"),
        ({"sasl_mechansim": "hunter2"}, "sasl_mechansim is not allowed here"),
        ({"proxy_url": "http://me:hunter2@proxy:3128"}, "proxy_url would show a login in plans: use proxy_url_file"),
        ({"socks5_proxy": "me:hunter2@proxy:1080"}, "socks5_proxy would show a login"),
        ({"client_id": ["x", {"y": "jdbc://me:hunter2@db"}]}, "client_id would show a login"),
    ],
)
def test_a_secret_among_the_further_client_settings_is_refused_by_its_name_or_its_value(
    client: dict[str, object], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_KAFKA__CLIENT", json.dumps(client))
    with pytest.raises(SetupError, match=told) as error:
        load_settings()
    assert "hunter2" not in str(error.value)


def test_what_may_stand_among_the_further_client_settings_is_what_the_jobs_client_knows_and_no_secret() -> None:
    known = KafkaConsumer.DEFAULT_CONFIG
    assert known.keys() >= kafka_settings._CLIENT_SETTINGS
    # All others: secrets, objects and functions, and settings of group members.
    assert sorted(known.keys() - kafka_settings._CLIENT_SETTINGS) == [
        *("auto_commit_interval_ms", "auto_offset_reset", "consumer_timeout_ms", "default_offset_commit_callback"),
        *("enable_auto_commit", "exclude_internal_topics", "group_id", "group_instance_id", "heartbeat_interval_ms"),
        *("kafka_client", "key_deserializer", "max_poll_interval_ms", "metric_group_prefix", "metric_reporters"),
        *("partition_assignment_strategy", "sasl_oauth_token_provider", "sasl_plain_password", "selector"),
        *("session_timeout_ms", "ssl_context", "ssl_password", "value_deserializer"),
    ]


def test_a_proxys_login_reaches_the_client_and_no_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    url = "socks5://me:hunter2@proxy:1080"
    (tmp_path / "proxy").write_text(url + "\n")
    for kafka in (KafkaSettings(proxy_url=url), KafkaSettings(proxy_url_file=tmp_path / "proxy")):
        assert kafka.has_proxy
        assert "hunter2" not in repr(kafka) + json.dumps(kafka.public())
        monkeypatch.setenv("EVENKEEL_KAFKA__PROXY_URL", "socks5://placeholder:1")  # the export is undone after the test
        kafka.export_secrets()
        assert KafkaSettings.from_public(kafka.public()).client_config()["proxy_url"] == url


@pytest.mark.parametrize("url", ["me:hunter2@proxy:1080", "ftp://me:hunter2@proxy:1", "http://me:hunter2@[proxy:1"])
def test_a_proxy_that_the_client_would_quote_in_an_error_is_refused_unquoted(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "proxy").write_text(url)
    with pytest.raises(SetupError, match=r"proxy contains is not a proxy: it must read SCHEME://HOST:PORT") as in_file:
        KafkaSettings(proxy_url_file=tmp_path / "proxy").client_config()
    monkeypatch.setenv("EVENKEEL_KAFKA__PROXY_URL", url)
    with pytest.raises(SetupError, match=r"kafka\.proxy_url is wrong: .*it must read SCHEME://HOST:PORT") as given:
        load_settings()
    assert "hunter2" not in f"{in_file.value}{given.value}"


def test_a_secrets_file_that_is_no_text_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes(b"\xff\xfehunter2")
    kafka = KafkaSettings(sasl_mechanism="PLAIN", sasl_username="me", sasl_password_file=tmp_path / "password")
    with pytest.raises(SetupError, match=r"password with a secret is not text: it must be UTF-8"):
        kafka.client_config()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EVENKEEL_ALERTS__TARGETS", "jsons://me:hunter2@hooks"),
        ("EVENKEEL_ALERTS", "{'targets': 'hunter2'}"),
        ("EVENKEEL_KAFKA__CLIENT", '{"client_id": "hunter2"'),
        ("EVENKEEL_KAFKA", "[" * 100_000 + "hunter2"),
        ("EVENKEEL_FILTERS__GROUPS", "hunter2"),
        ("EVENKEEL_PAGE__HOSTS", "hunter2,b"),
        ("EVENKEEL_CUSTOM_STRATEGIES", "hunter2"),
        ("evenkeel_strategies", "hunter2"),
    ],
)
def test_a_variable_that_is_no_json_is_named_and_not_shown(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_CLUSTER", value)  # whatever its value
    monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match=rf"^The environment variable {name} is not JSON") as error:
        load_settings()
    assert "hunter2" not in str(error.value)
    assert "\n" not in str(error.value)


_WRONG_ENVIRONMENT = st.dictionaries(
    st.sampled_from(["KAFKA", "ALERTS", "FILTERS", "PAGE", "STRATEGIES", "LAKE", "PROBE__INTERVAL_MS", "KAFKA__CLIENT",
                     "ALERTS__TARGETS", "ALERTS__TARGETS__OPS", "ALERTS__RULES", "FILTERS__GROUPS", "PAGE__PORT",
                     "CUSTOM_STRATEGIES", "KAFKA__CLIENT__PROXY_URL", "KAFKA__SASL_PASSWORD__X", "CLUSTER__X"]),
    st.one_of(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
        st.sampled_from(["null", "[]", "{}", "5", '"x"', '{"jsons://hunter2": 1}', '[{"groups": 1}]', "[[[[", "1e999",
                         '{"targets": {"\\u0000": 2}}', '{"client": {"a hunter2": 1}}', "\udcff", "NaN"]),
    ),
)  # fmt: skip


def _refusal() -> str:
    """The error of the settings; empty when there is none."""
    try:
        load_settings()
    except SetupError as error:
        return str(error)
    return ""


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_WRONG_ENVIRONMENT)
def test_no_environment_is_more_than_a_sentence(monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]) -> None:
    with monkeypatch.context() as patch:
        for name, value in wrong.items():
            patch.setenv(f"EVENKEEL_{name}", value)
        told = _refusal()
    assert told.isprintable()
    assert "hunter2" not in told


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([
            b"kafka = 5", b"[kafka]\nclient = 3", b"strategies = {}", b"lake = 1979-05-27", b"[[kafka]]\nx = 1", b"= 1",
            b"\xef\xbb\xbflake = 'a'", b"\xff", b"a = " + b"[" * 5_000, b"page.port = inf",
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


def test_a_settings_file_that_is_a_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "evenkeel.toml").mkdir()
    with pytest.raises(SetupError, match=r"The settings file evenkeel\.toml cannot be read \(Is a directory\)"):
        load_settings()


def test_a_settings_file_that_this_user_may_not_read_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evenkeel.toml").touch()

    def refuse(path: Path) -> bytes:  # (root may read everything)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(SetupError, match=r"The settings file evenkeel\.toml cannot be read \(Permission denied\)"):
        load_settings()
