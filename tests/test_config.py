from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from streaming.config import Filters, KafkaSettings, Settings, load_settings
from streaming.exceptions import SetupError
from streaming.up.run import environment_of


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
    file.write_text('cluster = "file"\nlake = "file-lake"\n[kafka]\nbootstrap_servers = "file:1"\n')
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    monkeypatch.setenv("EVENKEEL_CLUSTER", "environment")
    settings = load_settings(lake="argument")
    assert (settings.cluster, settings.lake, settings.kafka.bootstrap_servers) == ("environment", "argument", "file:1")


def test_a_misspelt_setting_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[probe]\nintervall_ms = 5\n")
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    with pytest.raises(SetupError, match=r"probe\.intervall_ms"):
        load_settings()


def test_a_file_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_CONFIG", "/nowhere/evenkeel.toml")
    with pytest.raises(SetupError, match=r"EVENKEEL_CONFIG names /nowhere/evenkeel\.toml, which is no file"):
        load_settings()


def test_the_shipped_file_reads_as_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Path(__file__).parents[1] / "conf" / "evenkeel.toml"
    monkeypatch.setenv("EVENKEEL_CONFIG", str(shipped))
    from_file = load_settings()
    monkeypatch.delenv("EVENKEEL_CONFIG")
    assert from_file == load_settings()


def test_every_setting_is_explained_in_the_shipped_file() -> None:
    text = (Path(__file__).parents[1] / "conf" / "evenkeel.toml").read_text()
    settings = Settings()
    for section in ("kafka", "filters", "probe", "job"):
        # Secrets themselves are not to stand in a file that is shipped.
        names = set(type(getattr(settings, section)).model_fields) - {"sasl_password", "ssl_password", "client"}
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
    settings = load_settings(
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
        strategies=({"groups": "/^a/", "strategy": "range"},),
    )
    for name, value in environment_of(settings).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == settings


def test_the_first_rule_that_fits_names_the_expected_strategy() -> None:
    settings = load_settings(
        strategies=({"groups": "/^pay/", "strategy": "sticky"}, {"groups": "/./", "strategy": "range"})
    )
    assert [settings.expected_strategy(g) for g in ("payments", "orders", "")] == ["sticky", "range", None]


def test_a_secret_among_the_further_client_settings_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_KAFKA__CLIENT", '{"sasl_plain_password": "hunter2"}')
    with pytest.raises(SetupError, match="sasl_plain_password would show in plans") as error:
        load_settings()
    assert "hunter2" not in str(error.value)
