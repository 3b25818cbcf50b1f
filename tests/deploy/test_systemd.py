"""The units of systemd: systemd itself reads them, and says how much a process in them could do."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.up import JOB, PROBE, SERVER

_UNITS = Path(__file__).resolve().parents[2] / "conf" / "deploy" / "systemd"
_NAMES = ("evenkeel-up", "evenkeel-probe@orders", "evenkeel-job", "evenkeel-server")

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="no systemd-analyze: `python3 conf/setup.py systemd` installs it"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root folder with the units where systemd looks for them, and with a program where they expect it."""
    folder = tmp_path_factory.mktemp("root")
    shutil.copytree(_UNITS, folder / "etc" / "systemd" / "system")
    program = folder / "opt" / "evenkeel" / "bin" / "evenkeel"
    program.parent.mkdir(parents=True)
    shutil.copy(sys.executable, program)
    return folder


def analyze(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", "--no-pager", f"--root={root}", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", _NAMES)
def test_systemd_finds_no_mistake_in_a_unit(root: Path, name: str) -> None:
    done = analyze(root, "verify", "--man=no", "--recursive-errors=no", f"{name}.service")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", _NAMES)
def test_a_process_in_a_unit_can_do_little_by_systemd_s_own_measure(root: Path, name: str) -> None:
    # (From 0 to 10; below 2 it says OK. A unit without any protection has 9.6.)
    done = analyze(root, "security", "--offline=yes", "--threshold=20", f"{name}.service")
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_programs_of_up_may_end_one_after_the_other_before_systemd_kills_them() -> None:
    shared = (_UNITS / "evenkeel-.service.d" / "shared.conf").read_text("utf-8")
    settings = dict(re.findall(r"^(\w+)=(.*)$", shared, re.MULTILINE))
    assert int(settings["TimeoutStopSec"]) > sum(program.grace_s for program in (PROBE, JOB, SERVER))
    # Otherwise SIGTERM would also reach the JVM, in the middle of a batch.
    assert settings["KillMode"] == "mixed"
