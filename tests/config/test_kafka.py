"""Connections to the watched cluster and the bus: what reaches a client, and that no secret is shown on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer
from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import get_sasl_mechanism

from streaming.config import KafkaSettings, Settings, environment_of, load_settings
from streaming.config import kafka as kafka_settings
from streaming.exceptions import SetupError
from streaming.job.source.settings import SourceSettings


def test_secrets_print_as_stars_and_are_in_no_option() -> None:
    kafka = KafkaSettings(sasl_mechanism="PLAIN", sasl_username="me", sasl_password="hunter2", ssl_password="hunter3")
    assert "hunter" not in repr(kafka) + str(kafka) + json.dumps(kafka.public()) + kafka.model_dump_json()
    assert kafka.client_config()["sasl_plain_password"] == "hunter2"


def test_a_task_finds_the_secrets_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = KafkaSettings(sasl_mechanism="PLAIN", sasl_username="me", sasl_password="hunter2")
    monkeypatch.setenv(
        "EVENKEEL_CLUSTERS__A_B__KAFKA__SASL_PASSWORD", "placeholder"
    )  # so that the export is undone after the test
    kafka.export_secrets("kafka", "a-b")
    assert KafkaSettings.from_public(kafka.public(), "kafka", "a-b").client_config() == kafka.client_config()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_in_a_file_is_read_again_at_each_login_of_the_client(tmp_path: Path, mechanism: str) -> None:
    secret = tmp_path / "password"
    secret.write_text("hunter2\n")
    kafka = KafkaSettings(sasl_mechanism=mechanism, sasl_username="me", sasl_password_file=secret)
    config = KafkaSettings.from_public(kafka.public(), "kafka", "a-b").client_config()
    assert _password_of_a_login(config) == "hunter2"
    secret.write_text("hunter3\n")
    assert _password_of_a_login(config) == "hunter3"
    secret.unlink()
    with pytest.raises(SaslAuthenticationFailedError, match="password with a secret cannot be read"):
        _password_of_a_login(config)


def _password_of_a_login(config: dict[str, Any]) -> str:
    """The password with which kafka-python begins a login."""
    login = get_sasl_mechanism(config["sasl_mechanism"])(**config)
    return str(login.password if config["sasl_mechanism"] == "PLAIN" else login._scram_client.password.decode())


def test_the_password_of_a_key_in_a_file_is_read_again_at_each_connection(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hunter2\n")
    password = KafkaSettings(security_protocol="SSL", ssl_password_file=secret).client_config()["ssl_password"]
    assert password() == "hunter2"
    secret.write_text("hunter3\n")
    assert password() == "hunter3"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "give either sasl_oauth_token_file or sasl_oauth_token_url"),
        ({"token_file": "/token", "token_url": "https://idp/token"}, "give either"),
        ({"token_url": "https://idp/token"}, "the client's id as sasl_username"),
        ({"token_url": "https://me:hunter2@idp/token"}, "https://HOST/PATH, without a login"),
        ({"token_url": "https://idp/token?secret=hunter2"}, "https://HOST/PATH, without a login"),
        ({"token_url": "file:///hunter2"}, "https://HOST/PATH"),
    ],
)
def test_how_to_come_to_a_token_is_said_once_and_without_a_secret(
    given: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_KAFKA__SASL_MECHANISM", "OAUTHBEARER")
    for name, value in given.items():
        monkeypatch.setenv(f"EVENKEEL_KAFKA__SASL_OAUTH_{name.upper()}", value)
    with pytest.raises(SetupError, match=told) as error:
        load_settings().kafka.client_config()
    assert "hunter2" not in str(error.value)


def test_a_secrets_file_that_is_no_text_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes(b"\xff\xfehunter2")
    kafka = KafkaSettings(sasl_mechanism="PLAIN", sasl_username="me", sasl_password_file=tmp_path / "password")
    with pytest.raises(SetupError, match=r"password with a secret is not text: it must be UTF-8"):
        kafka.client_config()


@pytest.mark.parametrize(
    ("client", "told"),
    [
        ({"sasl_plain_password": "hunter2"}, "sasl_plain_password is not allowed here"),
        ({"sasl_jaas_config": 'required password="hunter2";'}, "sasl_jaas_config is not allowed here"),
        ({"sasl_mechansim": "hunter2"}, "sasl_mechansim is not allowed here"),
        (
            {"proxy_url": "http://me:hunter2@proxy:3128"},
            "proxy_url would show a login in plans",
        ),
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
        monkeypatch.setenv(f"EVENKEEL_CLUSTERS__DEFAULT__{section}__SASL_PASSWORD", "placeholder")

    def login(address: str, password: str) -> KafkaSettings:
        return KafkaSettings(
            bootstrap_servers=address, sasl_mechanism="PLAIN", sasl_username="me", sasl_password=password
        )

    loaded = Settings(kafka=login("h:1", "hunter2"), bus=login("bus:1", "hunter3"))
    source = SourceSettings.of(loaded)
    assert "hunter" not in source.option() + repr(loaded)
    for section, kafka in loaded.connections().items():
        kafka.export_secrets(section, loaded.cluster)
    found = [client.client_config() for client in (source.client(), source.bus_client()) if client is not None]
    assert found == [kafka.client_config() for kafka in loaded.connections().values()]
    assert [config["sasl_plain_password"] for config in found] == ["hunter2", "hunter3"]
