"""Set-up of a checkout (`conf/setup.py`): which Python is in the environment, and what an interruption leaves."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[1]
_RUN = subprocess.run


class Environment:
    """An environment whose packages pip takes from nowhere.

    Attributes:
        folder: Its folder.
        pip_fails: Whether pip ends with an error.
    """

    def __init__(self, setup: Any, folder: Path) -> None:
        self.folder = folder
        self.pip_fails = False
        self._setup = setup

    def run(self, command: list[str], **given: Any) -> subprocess.CompletedProcess[str]:
        """In place of `subprocess.run`: makes environments, but without pip."""
        if "venv" in command:
            return _RUN([*command, "--without-pip"], **given)
        return subprocess.CompletedProcess(command, int(self.pip_fails), "ERROR: no network")

    def set_up(self) -> int:
        """Exit code of `python3 conf/setup.py`."""
        with pytest.raises(SystemExit) as ended:
            self._setup.main()
        assert isinstance(ended.value.code, int)
        return ended.value.code

    def python(self) -> Path:
        """The program behind its link."""
        return (self.folder / "bin" / "python").resolve()


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment made with this Python, with a file that only its deletion takes away."""
    spec = spec_from_file_location("set_up", _ROOT / "conf" / "setup.py")
    setup = module_from_spec(spec)
    spec.loader.exec_module(setup)
    environment = Environment(setup, tmp_path / ".venv")
    monkeypatch.setattr(setup, "VENV", environment.folder)
    monkeypatch.setattr(setup, "STAMP", environment.folder / "set-up-for")
    monkeypatch.setattr(setup, "check_java", lambda: None)
    monkeypatch.setattr(subprocess, "run", environment.run)
    monkeypatch.setattr(subprocess, "call", lambda *_, **__: 0)
    assert environment.set_up() == 0
    (environment.folder / "package").touch()
    return environment


def _of_another_python(environment: Environment) -> None:
    """Make it an environment of another Python, as set-up with that one leaves it."""
    other = environment.folder.parent / "python3.other"
    other.touch()
    for link in (environment.folder / "bin").glob("python*"):
        link.unlink()
        link.symlink_to(other)
    (environment.folder / "set-up-for").write_text("another Python", encoding="utf-8")


def test_set_up_with_another_python_recreates_the_environment_with_it(environment: Environment) -> None:
    _of_another_python(environment)

    assert environment.set_up() == 0
    assert environment.python() == Path(sys.executable).resolve()
    assert not (environment.folder / "package").exists()


def test_an_environment_whose_python_is_gone_is_recreated(environment: Environment) -> None:
    _of_another_python(environment)
    (environment.folder.parent / "python3.other").unlink()

    assert environment.set_up() == 0
    assert environment.python() == Path(sys.executable).resolve()


def test_set_up_for_another_lock_keeps_what_the_environment_has(environment: Environment) -> None:
    (environment.folder / "set-up-for").write_text("another lock", encoding="utf-8")

    assert environment.set_up() == 0
    assert (environment.folder / "package").exists()


def test_an_interrupted_set_up_is_repaired_by_the_next_even_for_what_was_set_up_before(
    environment: Environment,
) -> None:
    before = (environment.folder / "set-up-for").read_text(encoding="utf-8")
    (environment.folder / "set-up-for").write_text("another lock", encoding="utf-8")
    environment.pip_fails = True
    assert environment.set_up() == 2
    assert not (environment.folder / "set-up-for").exists()

    environment.pip_fails = False
    assert environment.set_up() == 0
    assert (environment.folder / "set-up-for").read_text(encoding="utf-8") == before
    assert (environment.folder / "package").exists()
