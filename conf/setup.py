"""Set up a checkout: `.venv` with everything pinned by version and hash, and the jars; does nothing if all is there.

    python3 conf/setup.py            # install what is missing
    python3 conf/setup.py browser    # install a browser for the page's tests, if possible
    python3 conf/setup.py prometheus # install Prometheus for the long test of the metrics, if possible
    python3 conf/setup.py alertmanager # install Alertmanager for the long test of the alerts, if possible
    python3 conf/setup.py systemd    # install systemd-analyze for the test of the units, if possible
    python3 conf/setup.py scripts    # fetch the page's libraries of conf/scripts.toml, if possible
    python3 conf/setup.py store      # build an object store for the tests of lakes on S3, if possible
    python3 conf/setup.py helm       # build Helm, and what checks conf/deploy, for the nightly tests, if possible

Standard library only, and without new syntax, so that an old Python can report in one sentence what is missing. Exit
code 2 when a person must do something first.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "conf" / "requirements.lock"
STAMP = VENV / "set-up-for"

OLDEST = (3, 11)
# The size of .venv and the jars, and half as much again for pip's work.
SPACE_GIB = 3
NO_CHARTS = "The page will not refresh itself and has no charts."


# Names of Chromium browsers on the PATH; tests/dashboards/conftest.py looks for the same.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# Programs that tests run and set-up builds with Go, by the argument that builds them: the name, the package, its
# release, the digest of the names, versions and hashes of all modules that it is built from, the oldest Go that its
# go.mod allows, and which tests need it.
BUILT = {
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


def main():
    """Install what is missing."""
    if sys.version_info < OLDEST:
        stop(
            "Python %d.%d is too old: install 3.11 or newer, and name it with make PYTHON=python3.11."
            % sys.version_info[:2]
        )
    python = VENV / "bin" / "python"
    wanted = fingerprint()
    if not python.exists() or not STAMP.exists() or STAMP.read_text(encoding="utf-8") != wanted:
        check_java()
        check_space()
        # An interrupted set-up leaves no stamp, so that the next one repairs it, even with the earlier lock and Python.
        if STAMP.exists():
            STAMP.unlink()
        install(python)
        STAMP.write_text(wanted, encoding="utf-8")
    scripts(NO_CHARTS)
    # Verifies the checksums of existing jars and downloads missing ones; prints nothing when all is well.
    sys.exit(subprocess.call([str(python), "-P", "-m", "streaming.jars", "fetch"], cwd=str(ROOT)))


def fingerprint():
    """A digest of the installation's inputs: the lock, the project file and this Python."""
    digest = hashlib.sha256()
    for path in (LOCK, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    digest.update(("%s %s" % (sys.version, ROOT)).encode())
    return digest.hexdigest()


def check_java():
    """Check for Java before the downloads, not after them."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or shutil.which(java) is None:
        stop("No Java was found: install a JDK 17 or 21, and put it on the PATH or set JAVA_HOME.")


def check_space():
    """Report a full disk before pip fails halfway."""
    free = shutil.disk_usage(str(ROOT)).free / 2**30
    if free < SPACE_GIB:
        stop("%.1f GiB are free on the disk of %s, set-up needs %d: free some space." % (free, ROOT, SPACE_GIB))


def install(python):
    """Create the environment and install every package of the lock."""
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    print("installing %d packages into .venv, a minute or two ..." % sum("==" in line for line in lines), flush=True)
    quiet = ["-q", "--disable-pip-version-check", "--no-input"]
    # (venv keeps the links that it finds in bin: those to another Python would stay, and that one would be used.)
    is_other = os.path.realpath(str(python)) != os.path.realpath(sys.executable)
    steps = [
        [sys.executable, "-P", "-m", "venv", *(["--clear"] if is_other else []), str(VENV)],
        [str(python), "-P", "-m", "pip", "install", *quiet, "--require-hashes", "-r", str(LOCK)],
        [str(python), "-P", "-m", "pip", "install", *quiet, "--no-deps", "--no-build-isolation", "-e", str(ROOT)],
    ]
    for step in steps:
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            said = [line.strip() for line in done.stdout.splitlines() if line.strip()]
            errors = [line for line in said if line.upper().startswith("ERROR")]
            stop("Set-up stopped at `%s`: %s" % (" ".join(step[:4]), (errors or said or ["no output"])[-1]))


# Programs that tests start, by the argument that installs them: the name, programs that will do, Debian's packages, and
# what to do where none can be installed. (Ubuntu has only the second package of Chromium.)
PROGRAMS = {
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


def install_program(what):
    """Install the first of Debian's packages that gives a program; say in one sentence why none could be installed."""
    name, programs, packages, want = PROGRAMS[what]
    if any(map(shutil.which, programs)):
        return
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        print("%s was not found, and set-up can install it only as root on Debian or Ubuntu: %s" % (name, want))
        return
    print("installing %s for the tests ..." % name, flush=True)
    install = ["install", "-y", "-qq", "--no-install-recommends"]
    for step in (["update", "-qq"], *([*install, package] for package in packages)):
        problem = failure(["apt-get", *step], DEBIAN_FRONTEND="noninteractive")
        if any(map(shutil.which, programs)):
            return
    print("%s could not be installed (%s): %s" % (name, problem or "apt-get gave none of its programs", want))


def scripts(without, *purpose):
    """Fetch libraries of the browser; if that is impossible, say in one sentence what there is not, and go on."""
    problem = failure([sys.executable, "-P", str(ROOT / "conf" / "scripts.py"), *purpose])
    if problem:
        print("%s %s" % (without, problem))


def build(what):
    """Build a program of the tests with Go; if that is impossible, say so in one sentence and go on."""
    name, package, release, modules, oldest_go, tests = BUILT[what]
    built = cache() / ("%s-%s" % (name, release))
    if built.exists():
        return
    print("building %s for %s, a minute or several ..." % (name, tests), flush=True)
    with tempfile.TemporaryDirectory(dir=str(cache())) as folder:
        go, problem = find_go(Path(folder), oldest_go)
        if not problem:
            package = "%s@%s" % (package, release)
            problem = failure([go, "install", "-ldflags=-s -w", package], GOBIN=folder, GOTOOLCHAIN="local")
        if not problem and modules_of(go, Path(folder, name)) != modules:
            problem = "its modules are others than those that conf/setup.py names"
        if problem:
            print("%s could not be built (%s): %s are skipped." % (name, problem, tests))
            return
        # (Where two set-ups run at once, the second replaces the first's file by the same.)
        Path(folder, name).replace(built)


def checks():
    """Install what checks conf/deploy; if that is impossible, say so in one sentence and go on."""
    lock = ROOT / "conf" / "deploy.lock"
    place = cache() / "deploy-checks"
    stamp = place / "set-up-for"
    wanted = "%s\n%s" % (sys.version, lock.read_text(encoding="utf-8"))
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    quiet = ["-q", "--disable-pip-version-check", "--no-input"]
    problem = failure([sys.executable, "-P", "-m", "venv", "--clear", str(place)]) or failure(
        [str(place / "bin" / "python"), "-P", "-m", "pip", "install", *quiet, "--require-hashes", "-r", str(lock)]
    )
    if problem:
        print("What checks conf/deploy could not be installed (%s): its nightly tests are skipped." % problem)
    else:
        stamp.write_text(wanted, encoding="utf-8")


def cache():
    """The folder of what the tests run."""
    folder = Path(os.environ.get("EVENKEEL_CACHE") or ROOT / ".cache" / "evenkeel").expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def find_go(folder, oldest):
    """A Go that is new enough and an empty text; where there is none, Go from PyPI in the folder, or why not."""
    there = shutil.which("go")
    if there:
        done = subprocess.run([there, "version"], stdout=subprocess.PIPE, text=True, check=False)
        version = re.search(r"go(\d+)\.(\d+)", done.stdout)
        if version and (int(version[1]), int(version[2])) >= oldest:
            return there, ""
    lock = str(ROOT / "conf" / "go.lock")
    install = ["-P", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input", "--target"]
    problem = failure([str(VENV / "bin" / "python"), *install, str(folder / "pip"), "--require-hashes", "-r", lock])
    return str(folder / "pip" / "go" / "bin" / "go"), problem


def modules_of(go, binary):
    """The digest of the modules in a program that Go has built."""
    done = subprocess.run([go, "version", "-m", str(binary)], stdout=subprocess.PIPE, text=True, check=False)
    modules = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith(("mod\t", "dep\t"))]
    return hashlib.sha256("\n".join(modules).encode()).hexdigest()


def failure(command, **environment):
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
    return (said or ["exit code %d" % done.returncode])[-1] if done.returncode else ""


def stop(sentence):
    """End with one sentence."""
    sys.stderr.write(sentence + "\n")
    sys.exit(2)


if __name__ == "__main__":
    wanted = "".join(sys.argv[1:])
    if wanted in PROGRAMS:
        install_program(wanted)
        if wanted == "browser":
            scripts("The page's check with axe is skipped.", "tests")
    elif wanted == "scripts":
        scripts(NO_CHARTS)
    elif wanted in BUILT:
        build(wanted)
        if wanted == "helm":
            checks()
    else:
        main()
