"""The section of a RocketMQ cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streaming.config import ROCKETMQ_SECRETS, RocketMQSettings, environment_of, load_settings, strategy_of
from streaming.config.rocketmq import RocketMQStrategy
from streaming.exceptions import SetupError

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
    assert found is not None
    assert found.addresses == ("a:1", "b")


def test_a_section_travels_to_the_programs_with_its_secret_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evenkeel.toml").write_text(_SECTION)
    settings = load_settings()
    found = settings.rocketmq
    assert found is not None
    assert "hidden" not in f"{settings!r}"
    assert (found.addresses, found.login()) == (("10.0.0.1", "[::1]:9877"), ("id", "hidden"))
    assert [strategy_of(found.strategies, group) for group in ("payments", "x")] == [found.strategies[0], None]
    (tmp_path / "evenkeel.toml").unlink()
    for name, value in environment_of(settings).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == settings


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ('name_servers = ""', "name_servers"),
        ('name_servers = "a:1"\nstrategies = [{groups = "/(/"}]', "does not compile"),
    ],
)
def test_a_wrong_section_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evenkeel.toml").write_text(f"[[clusters]]\n[clusters.rocketmq]\n{settings}\n")
    with pytest.raises(SetupError, match=r"^The setting rocketmq") as error:
        load_settings()
    assert reason in str(error.value)


def test_every_setting_is_explained_in_the_shipped_file() -> None:
    text = (Path(__file__).parents[2] / "conf" / "evenkeel.toml").read_text(encoding="utf-8")
    names = {*RocketMQSettings.model_fields, *RocketMQStrategy.model_fields} - {*ROCKETMQ_SECRETS}
    assert [name for name in sorted(names) if f"# {name} =" not in text] == []


@pytest.mark.parametrize("given", [{"access_key": "me"}, {"secret_key": "hunter2"}])
def test_one_key_without_the_other_is_a_sentence_where_the_client_is_made(given: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match="belong together") as error:
        RocketMQSettings(name_servers="a:1", **given).login()
    assert "hunter2" not in str(error.value)
