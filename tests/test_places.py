from __future__ import annotations

from pathlib import Path

import pytest

from streaming import places
from streaming.alerts.rules.rules import load_rules
from streaming.config import load_settings
from streaming.places import cache_folder, own_file, shipped


@pytest.fixture(autouse=True)
def _somewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("EVENKEEL_CONFIG", "EVENKEEL_CLUSTER", "EVENKEEL_CACHE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(places, "_SYSTEM", tmp_path / "etc" / "evenkeel")


def test_settings_and_rules_are_looked_for_in_the_order_that_is_documented_and_the_first_counts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    # From the last place to the first: each new file takes precedence over the one before.
    for place in ("etc/evenkeel", "xdg/evenkeel", "work", "work/conf"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "evenkeel.toml").write_text(f'[[clusters]]\nname = "{place}"\n')
        rule = f"{{name: of_{place.split('/')[-1]}, view: lag_current, when: 'true', severity: info, message: m}}"
        (tmp_path / place / "alerts.yaml").write_text(f"rules: [{rule}]\n")
        assert load_settings().cluster == place
        assert [one.name for one in load_rules()] == [f"of_{place.split('/')[-1]}"]
    (tmp_path / "named.toml").write_text('[[clusters]]\nname = "named"\n')
    monkeypatch.setenv("EVENKEEL_CONFIG", str(tmp_path / "named.toml"))
    assert load_settings().cluster == "named"


def test_without_a_file_of_the_users_the_defaults_and_the_shipped_rules_hold() -> None:
    assert own_file("evenkeel.toml") is None
    assert load_settings().cluster == "default"
    assert {one.name for one in load_rules()} >= {"drift", "silence"}


def test_a_variable_of_xdg_that_is_no_absolute_path_is_passed_over_and_home_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    for folder in (tmp_path / "work" / "relative" / "evenkeel", tmp_path / "home" / ".config" / "evenkeel"):
        folder.mkdir(parents=True)
        (folder / "evenkeel.toml").touch()
    assert own_file("evenkeel.toml") == tmp_path / "home" / ".config" / "evenkeel" / "evenkeel.toml"


def test_a_checkout_keeps_its_downloads_to_itself_and_a_wheel_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).resolve().parents[1]
    assert shipped("jars.toml") == root / "conf" / "jars.toml"
    assert cache_folder() == root / ".cache" / "evenkeel"
    monkeypatch.setattr(places, "_PACKAGED", tmp_path)
    assert shipped("jars.toml") == tmp_path / "jars.toml"
    assert cache_folder() == tmp_path / "home" / ".cache" / "evenkeel"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache" / "evenkeel"
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
