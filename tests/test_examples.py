"""The example in each command's help works: it runs over a made lake, or for a server is parsed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from streaming.cli import app
from streaming.examples import EXAMPLES
from streaming.notes import KnownNames, mute
from tests.dashboards.made_lake import MadeGroup, MadeLake

COMMANDS: Any = typer.main.get_command(app)

# They need a cluster, or run until they are stopped; tests/doctor, tests/up, tests/serve and others start them.
SERVERS = frozenset({"init", "up", "demo", "run", "submit", "probe", "serve"})

# There is no cluster here, which it says.
WRONG = {"doctor": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("examples")
    MadeLake(root / "lake", [MadeGroup("billing")], rounds=125)
    mute(str(root / "lake"), "demo", "billing", "2h", "to be ended", KnownNames((), ()))
    return root


def test_every_command_has_an_example_in_its_help() -> None:
    assert set(COMMANDS.commands) == set(EXAMPLES)
    for name, command in COMMANDS.commands.items():
        assert command.epilog == f"Example: {EXAMPLES[name]}"
        assert f"evenkeel {name}" in EXAMPLES[name]


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_the_example_of_a_server_is_one_that_the_program_knows(name: str) -> None:
    arguments = shlex.split(EXAMPLES[name])[2:]
    COMMANDS.commands[name].make_context(name, arguments)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - SERVERS))
def test_the_example_works(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    given, bar, line = EXAMPLES[name].rpartition(" | ")
    stdin = shlex.split(given)[1] + "\n" if bar else ""
    done = CliRunner().invoke(app, shlex.split(line)[1:], input=stdin)
    assert done.exit_code == WRONG.get(name, 0), done.output
    assert done.output.strip()
    if bar:
        assert "error" not in json.loads(done.output)
