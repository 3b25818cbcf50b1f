"""Settings from file, environment and arguments: which one wins, and one sentence for whatever is wrong there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming.config import load_settings
from streaming.exceptions import SetupError


def test_the_environment_wins_over_the_file_and_arguments_over_both(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'lake = "file-lake"\ncluster = "file"\n[kafka]\nbootstrap_servers = "file:1"\nsasl_username = "file"\n'
    )
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    monkeypatch.setenv("EVENKEEL_CLUSTER", "environment")
    monkeypatch.setenv("EVENKEEL_KAFKA__SASL_USERNAME", "environment")
    loaded = load_settings(lake="argument")
    assert (loaded.cluster, loaded.lake) == ("environment", "argument")
    assert (loaded.kafka.bootstrap_servers, loaded.kafka.sasl_username) == ("file:1", "environment")


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EVENKEEL_ALERTS__TARGETS", "jsons://me:hunter2@hooks"),
        ("EVENKEEL_ALERTS", "{'targets': 'hunter2'}"),
        ("EVENKEEL_KAFKA__CLIENT", '{"client_id": "hunter2"'),
        ("EVENKEEL_KAFKA", "[" * 100_000 + "hunter2"),
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
    with pytest.raises(SetupError, match=rf"^The environment variable {name} is not JSON") as error:
        load_settings()
    assert "hunter2" not in str(error.value)
    assert "\n" not in str(error.value)


_WRONG_ENVIRONMENT = st.dictionaries(
    st.sampled_from(["KAFKA", "ALERTS", "FILTERS", "SERVE", "STRATEGIES", "LAKE", "PROBE__INTERVAL_MS", "KAFKA__CLIENT",
                     "ALERTS__TARGETS", "ALERTS__TARGETS__OPS", "ALERTS__RULES", "FILTERS__GROUPS", "SERVE__PAST_HOURS",
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
            b"\xef\xbb\xbflake = 'a'", b"\xff", b"a = " + b"[" * 5_000, b"serve.past_hours = inf",
            b"'a hunter2\\u001b[31m' = 1", b"[kafka]\n'a hunter2\\u001b[31m' = 1", b"kafka = 'hunter2'",
        ]),
    )
)  # fmt: skip
def test_no_settings_file_is_more_than_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "evenkeel.toml").write_bytes(content)
    told = _refusal()
    assert told.isprintable()
    assert "hunter2" not in told
