"""Fetches the browser's libraries of conf/scripts.toml with npm; does nothing if all are there.

    python3 conf/scripts.py          # what the page loads, into dashboards/static/vendor/
    python3 conf/scripts.py tests    # what the page's tests run in the browser, into the cache

Standard library only: set-up runs it, and so does the build of the wheel (`setup.py` at the top). Exit code 1, with one
sentence, when something could not be fetched.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "conf" / "scripts.toml"


def fetch(purpose):
    """Fetch the libraries of a purpose, "page" or "tests"; why that was impossible, or an empty text."""
    target = folder(purpose)
    stamp = target / "fetched-for"
    wanted = LIST.read_bytes()
    if stamp.exists() and stamp.read_bytes() == wanted:
        return ""
    target.mkdir(parents=True, exist_ok=True)
    for name, package in tomllib.loads(wanted.decode("utf-8")).items():
        if package.get("for", "page") == purpose:
            problem = fetch_package(name, package, target)
            if problem:
                return f"{name}@{package['version']} could not be fetched ({problem})"
    stamp.write_bytes(wanted)
    return ""


def folder(purpose):
    """The folder of a purpose's files."""
    if purpose == "page":
        return ROOT / "dashboards" / "static" / "vendor"
    cache = Path(os.environ.get("EVENKEEL_CACHE") or ROOT / ".cache" / "evenkeel")
    return cache.expanduser().resolve() / "scripts"


def fetch_package(name, package, target):
    """Fetch one package and take its files; why that was impossible, or an empty text."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm was not found"
    with tempfile.TemporaryDirectory() as place:
        command = [npm, "pack", f"{name}@{package['version']}", "--ignore-scripts", "--silent"]
        done = subprocess.run(
            [*command, "--pack-destination", place],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        packed = list(Path(place).glob("*.tgz"))
        if done.returncode or not packed:
            return ([line.strip() for line in done.stdout.splitlines() if line.strip()] or ["npm printed nothing"])[-1]
        if hashlib.sha512(packed[0].read_bytes()).hexdigest() != package["sha512"]:
            return "its SHA-512 is another than in conf/scripts.toml"
        with tarfile.open(packed[0]) as archive:
            for file, member in package["files"].items():
                (target / file).write_bytes(archive.extractfile(member).read())
    return ""


if __name__ == "__main__":
    sentence = fetch("tests" if sys.argv[1:] == ["tests"] else "page")
    if sentence:
        sys.exit(f"{sentence}: put npm on the PATH and let it reach its registry, then try again.")
