"""`evenkeel init`: the file that it writes, what it says about it, and what it leaves alone."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streaming import places
from streaming.cli import app
from streaming.config import load_settings
from streaming.demo.ports import free_port
from streaming.exceptions import SetupError


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENKEEL_CONFIG", "to be restored")
    monkeypatch.delenv("EVENKEEL_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(places, "_SYSTEM", tmp_path / "etc")


def init(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["init", *arguments])


def nobody() -> str:
    """An address where nobody listens."""
    return f"127.0.0.1:{free_port()}"


@pytest.mark.kafka
def test_with_a_cluster_that_answers_everything_is_well_and_up_is_next(bootstrap: str) -> None:
    done = init("--bootstrap", bootstrap, "--cluster", "orders")
    lines = done.output.splitlines()
    assert done.exit_code == 0, done.output
    assert lines[0] == "evenkeel.toml is written."
    assert f"ok     kafka: connection: {bootstrap} answers with PLAINTEXT" in lines
    assert lines[-1] == "Next: evenkeel up"
    settings = load_settings()
    assert (settings.cluster, settings.kafka.bootstrap_servers) == ("orders", bootstrap)


def test_with_a_cluster_that_does_not_answer_the_file_stays_and_the_doctor_is_next() -> None:
    address = nobody()
    done = init("--bootstrap", address)
    assert done.exit_code == 2
    assert f"wrong  kafka: connection: The Kafka cluster at {address} cannot be reached" in done.output
    last = "Next: correct what is wrong as its line says, and try again: evenkeel doctor"
    assert done.output.splitlines()[-1] == last
    assert load_settings().kafka.bootstrap_servers == address


def test_a_file_that_is_there_is_left_as_it_was() -> None:
    Path("evenkeel.toml").write_text("mine", encoding="utf-8")
    done = init("--bootstrap", nobody())
    assert isinstance(done.exception, SetupError)
    assert str(done.exception).startswith("evenkeel.toml is there already: name another file with --output")
    assert Path("evenkeel.toml").read_text("utf-8") == "mine"


@pytest.mark.parametrize("arguments", [(), ("--bootstrap", "a:1", "--rocketmq", "b:2")])
def test_without_one_cluster_nothing_is_written(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert str(init(*arguments).exception).startswith("Name one cluster: ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_would_not_be_found_is_named_in_the_next_command() -> None:
    Path("conf").mkdir()
    Path("conf", "evenkeel.toml").write_text("", encoding="utf-8")  # goes before the one beside the folder
    for output in ("other.toml", "evenkeel.toml"):
        done = init("--bootstrap", nobody(), "--output", output)
        assert done.output.splitlines()[-1].endswith(f" EVENKEEL_CONFIG={output} evenkeel doctor")


def test_name_servers_of_rocketmq_are_written_and_asked() -> None:
    address = nobody()
    done = init("--rocketmq", address)
    assert done.exit_code == 2
    assert f"No name server of the RocketMQ cluster answers ({address}: connection refused)" in done.output
    [entry] = tomllib.loads(Path("evenkeel.toml").read_text("utf-8"))["clusters"]
    assert entry == {"name": "default", "rocketmq": {"name_servers": address}}


def named(text: str) -> set[tuple[str, str]]:
    """The sections and names of all settings in a file, also of those that are left out."""
    found, section = set(), ""
    for line in text.splitlines():
        if header := re.fullmatch(r"(?:# )?\[+([\w.]+)\]+", line):
            section = header[1]
        elif setting := re.match(r"(?:# )?(\w+) = ", line):
            found.add((section, setting[1]))
    return found


@pytest.mark.parametrize("kind", ["--bootstrap", "--rocketmq"])
def test_each_of_its_settings_is_explained_in_the_long_file(kind: str) -> None:
    init(kind, nobody())
    written = named(Path("evenkeel.toml").read_text("utf-8"))
    assert len(written) > 5
    assert written - named(places.shipped("evenkeel.toml").read_text("utf-8")) == set()
