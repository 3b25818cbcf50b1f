"""Set up a checkout: `.venv` with everything pinned by version and hash, and the jars; does nothing if all is there.

Standard library only, and without new syntax, so that an old Python can report in one sentence what is missing. Exit
code 2 when a person must do something first.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "conf" / "requirements.lock"
STAMP = VENV / "set-up-for"

OLDEST = (3, 11)


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
        # An interrupted set-up leaves no stamp, so that the next one repairs it, even with the earlier lock and Python.
        if STAMP.exists():
            STAMP.unlink()
        install(python)
        STAMP.write_text(wanted, encoding="utf-8")
    # It says in one sentence why it could not.
    if subprocess.call([sys.executable, "-P", str(ROOT / "conf" / "scripts.py")]):
        print("The page will not refresh itself and has no charts.", flush=True)
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


def install(python):
    """Create the environment and install every package of the lock."""
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    print("installing %d packages into .venv, a minute or two ..." % sum("==" in line for line in lines), flush=True)
    quiet = ["-q", "--disable-pip-version-check", "--no-input"]
    # venv keeps the links that it finds in bin: those to another Python would stay, and that one would be used.
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


def stop(sentence):
    """End with one sentence."""
    sys.stderr.write(sentence + "\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
