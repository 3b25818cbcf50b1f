"""The user's settings that the demo uses, and those that it ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.config import KafkaSettings, environment_of, load_settings
from streaming.demo.run import _settings


def test_the_programs_of_the_demo_write_nothing_to_the_user_s_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evenkeel.toml"
    file.write_text('[bus]\nbootstrap_servers = "bus:9092"\nsecurity_protocol = "SASL_SSL"\n', encoding="utf-8")
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    assert load_settings().bus is not None
    for name, value in environment_of(_settings("127.0.0.1:1", tmp_path / "lake", "json://127.0.0.1:2")).items():
        monkeypatch.setenv(name, value)
    assert load_settings().bus == load_settings().kafka == KafkaSettings(bootstrap_servers="127.0.0.1:1")
