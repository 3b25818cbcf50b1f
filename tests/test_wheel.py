"""The wheel, from an environment with nothing else of ours. (`up` from it: tests/up/test_up.py.)"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.installed import Installed

pytest_plugins = ("tests.installed",)

_ROOT = Path(__file__).resolve().parent.parent

pytestmark = [pytest.mark.xdist_group("installed"), pytest.mark.turn(1)]


def test_it_holds_every_file_that_the_code_reads_and_no_package_of_an_everyday_name(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as archive:
        held = set(archive.namelist())
    assert {name.split("/")[0] for name in held} == {"assignors", "dashboards", "streaming", "evenkeel-0.6.0.dist-info"}
    listed = subprocess.run(["git", "ls-files"], cwd=_ROOT, capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in listed if name.split("/")[0] in ("assignors", "dashboards", "streaming")}
    # Including files that are not committed yet.
    ours |= {
        path.relative_to(_ROOT).as_posix()
        for top in ("assignors", "dashboards", "streaming")
        for path in (_ROOT / top).rglob("*.py")
    }
    assert ours - held == set()
    vendor = {name.removeprefix("dashboards/static/vendor/") for name in held if "/static/vendor/" in name}
    assert vendor == {"htmx.min.js", "htmx.LICENSE", "uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE"}
    assert {name.removeprefix("streaming/conf/") for name in held if name.startswith("streaming/conf/")} == {
        *("alerts.yaml", "evenkeel.toml", "jars.toml", "log4j2.properties", "scripts.toml", "spark-defaults.conf"),
    }


def test_without_npm_and_the_page_s_libraries_there_is_no_wheel_and_one_sentence(
    installed: Installed, tmp_path: Path
) -> None:
    left_out = shutil.ignore_patterns("vendor", "build", "*.egg-info")
    shutil.copytree(installed.wheel.parent / "sources", tmp_path / "sources", ignore=left_out)
    (tmp_path / "nothing").mkdir()
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build", "-b", str(tmp_path / "build")],
        cwd=tmp_path / "sources",
        env=os.environ | {"PATH": str(tmp_path / "nothing")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    said = r"The wheel cannot be built: htmx\.org@[\d.]+ could not be fetched \(npm was not found\): put npm on"
    assert re.match(said, done.stderr.splitlines()[-1])
    assert not (tmp_path / "build").exists()


def test_nothing_of_the_checkout_is_in_the_environment(installed: Installed, elsewhere: Path) -> None:
    code = (
        "import importlib.util as u, sys, streaming, streaming.places as p; "
        "print(streaming.__file__, p.shipped_folder(), p.cache_folder(), u.find_spec('conf'), sep='\\n'); "
        "print(*sys.path, sep='\\n')"
    )
    done = installed.run("python", "-P", "-c", code, cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    package, conf, cache, spec, *path = done.stdout.splitlines()
    assert package.startswith(str(installed.bin.parent / "lib"))
    assert conf == str(Path(package).with_name("conf"))
    assert cache == str(Path(installed.environment["HOME"]) / ".cache" / "evenkeel")
    assert spec == "None"
    assert str(_ROOT) not in path


@pytest.mark.nightly
def test_the_commands_that_need_no_cluster_run(installed: Installed, elsewhere: Path) -> None:
    told = installed.run("evenkeel", "--help", cwd=elsewhere)
    assert told.returncode == 0
    assert {"up", "run", "assign", "alert"} <= set(told.stdout.split())
    told = installed.run("evenkeel", "--version", cwd=elsewhere)
    assert (told.returncode, told.stdout) == (0, "evenkeel 0.6.0\n")
    completed = installed.run(
        "evenkeel", cwd=elsewhere, _EVENKEEL_COMPLETE="complete_bash", COMP_WORDS="evenkeel al", COMP_CWORD="1"
    )
    assert completed.stdout.split() == ["alert"]
    question = {"strategy": "range", "partitions_per_topic": {"t": 2}, "members": {"a": {"topics": ["t"]}}}
    told = installed.run("evenkeel", "assign", cwd=elsewhere, given=json.dumps(question) + "\n")
    assert json.loads(told.stdout) == {"assignment": {"a": [["t", 0], ["t", 1]]}}
    told = installed.run("evenkeel", "alert", "--check", cwd=elsewhere)
    assert told.returncode == 0, told.stderr
    assert "silence" in told.stdout
    assert not (elsewhere / "trapped").exists()


@pytest.mark.nightly
def test_the_users_own_files_are_found_where_users_put_them(installed: Installed, elsewhere: Path) -> None:
    own = Path(installed.environment["HOME"]) / ".config" / "evenkeel"
    own.mkdir(parents=True)
    try:
        (own / "evenkeel.toml").write_text("[alerts]\npoll_ms = 1\n")
        told = installed.run("evenkeel", "alert", "--check", cwd=elsewhere)
        assert told.returncode == 2
        assert told.stderr.startswith("The setting alerts.poll_ms is wrong: ")
        assert told.stderr.rstrip().endswith(f"{Path('streaming', 'conf', 'evenkeel.toml')} for the allowed values.")
        (own / "evenkeel.toml").write_text("")
        (own / "alerts.yaml").write_text("rules: [5]")
        told = installed.run("evenkeel", "alert", "--check", cwd=elsewhere)
        assert told.stderr.startswith(f"{own / 'alerts.yaml'}, rule number 1: ")
    finally:
        shutil.rmtree(own)


@pytest.mark.nightly
def test_a_strategy_in_the_working_folder_is_found_by_pythonpath_and_not_without(
    installed: Installed, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "def give_all(group, racks):\n    return {group.members[0].member_id: {'t': (0,)}}\n"
    )
    (tmp_path / "evenkeel.toml").write_text('[[custom_strategies]]\nname = "mine"\nassignor = "mine:give_all"\n')
    question = {"strategy": "mine", "partitions_per_topic": {"t": 1}, "members": {"a": {"topics": ["t"]}}}
    answers = [
        json.loads(installed.run("evenkeel", "assign", cwd=tmp_path, given=json.dumps(question), **given).stdout)
        for given in ({"PYTHONPATH": "."}, {})
    ]
    assert answers[0] == {"assignment": {"a": [["t", 0]]}}
    assert "error" in answers[1]
