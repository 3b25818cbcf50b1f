"""The programs that a process starts get its settings, and only the secrets that they need."""

from __future__ import annotations

import pytest

from streaming.config import Filters, KafkaSettings, environment_of, load_settings, secret_variable
from streaming.config import kafka as kafka_settings
from streaming.up import JOB, PROBE, SERVER


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
            "heartbeat_url": "https://hc.example.org/s3cret",
            "targets": {"ops": "json://a:1", "am": "alertmanager://b:2"},
            "routes": [{"targets": ["ops"], "labels": {"a": "/b/"}, "continue": True}],
        },
    )
    for name, value in environment_of(loaded).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == loaded


def test_strategies_and_clients_are_left_to_the_file_which_the_probe_reads_again_and_again() -> None:
    settings = load_settings(strategies=({"groups": "/^a/", "strategy": "range"},), clients=("java",))
    assert not {"EVENKEEL_STRATEGIES", "EVENKEEL_CLIENTS"} & set(environment_of(settings))


def test_secrets_of_connections_go_to_probe_and_job_alone() -> None:
    secrets = {secret_variable(name, section) for section in ("kafka", "bus") for name in kafka_settings.KAFKA_SECRETS}
    assert len(secrets) == 6
    assert secrets <= set(SERVER.without)
    assert not any(secrets & set(program.without) for program in (PROBE, JOB))


def test_the_login_of_the_server_goes_to_the_server_alone() -> None:
    login = {"EVENKEEL_SERVE__TOKEN", "EVENKEEL_SERVE__PASSWORD", "EVENKEEL_SERVE__MARKS_TOKEN"}
    assert login <= set(environment_of(load_settings(serve={"token": "t", "password": "p", "marks_token": "m"})))
    assert all(login <= set(program.without) for program in (PROBE, JOB))
    assert not login & set(SERVER.without)


def test_targets_and_the_heartbeat_url_go_to_the_server_alone() -> None:
    secrets = {"EVENKEEL_ALERTS__TARGETS", "EVENKEEL_ALERTS__HEARTBEAT_URL"}
    assert all(secrets <= set(program.without) for program in (PROBE, JOB))
    assert not secrets & set(SERVER.without)
