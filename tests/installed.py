"""The wheel, installed into an empty environment, and a working folder without any access to the checkout.

The environment has no package except ours. Our dependencies are not installed again, which would take minutes and the
network: a line in a `.pth` file adds the packages that `.venv` has from conf/requirements.lock. `.pth` files in a
folder that is added this way are not read, so the editable install, which is one of them, has no effect.

The modules that use these fixtures name this one in `pytest_plugins`, and share a group, so that the
wheel is built once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent

_SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "assignors", "streaming", "dashboards", "conf")

# If one of these is imported from the working folder, it says so and ends the process.
_TRAPS = (
    *("assignors", "conf", "dashboards", "deltalake", "duckdb", "jinja2", "kafka", "msgspec", "numpy", "pandas"),
    *("pyarrow", "pydantic", "pyspark", "rich", "starlette", "streaming", "typer", "uvicorn", "yaml"),
)


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel in it."""

    wheel: Path
    bin: Path
    environment: dict[str, str]

    def run(self, *command: str, cwd: Path, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=cwd,
            env=self.environment | environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    # Built from a copy of the sources: setuptools leaves a folder `build` beside them.
    (folder / "sources").mkdir()
    for name in _SOURCES:
        copy = shutil.copytree if (_ROOT / name).is_dir() else shutil.copy
        copy(_ROOT / name, folder / "sources" / name)
    return install(folder)


def install(folder: Path) -> Installed:
    """Build the wheel of the sources in `folder`/sources, and install it into `folder`/env."""
    pip = [sys.executable, "-P", "-m", "pip", "-q", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps"]
    subprocess.run(
        [*pip, "wheel", *offline, "--no-build-isolation", "-w", str(folder), str(folder / "sources")], check=True
    )
    [wheel] = folder.glob("evenkeel-*.whl")
    subprocess.run([sys.executable, "-P", "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    [packages] = (folder / "env").glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "env" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", *offline, str(wheel)], check=True)
    home = folder / "home"
    home.mkdir()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EVENKEEL_", "PYTHON", "SPARK", "PYSPARK", "XDG_", "VIRTUAL_ENV"))
    }
    return Installed(wheel, python.parent, environment | {"HOME": str(home)})


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with modules named like our libraries. Importing one of them writes the file `trapped`."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in _TRAPS:
        (folder / f"{name}.py").write_text(
            f"open({str(folder / 'trapped')!r}, 'a').write({name + chr(10)!r})\nraise SystemExit({name!r})\n"
        )
    return folder
