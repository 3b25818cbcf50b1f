"""A home of Spark in which a session on this machine starts in two thirds of the processor time, and without a shell.

Four things are different in it. `bin/spark-submit` is a program of ours (`_spark_submit.py`), and so is the Python of
its sessions (`_python.py`). There is an archive of the classes that the JVM of a job loads (class data sharing); a JVM
takes one only where no folder with files is on its class path, so the configuration is named in another way than by
Spark's folder for it. And `pyspark.zip` is missing: Python finds no bytecode in it, where the installed pyspark has its
modules compiled.

The JVM itself refuses an archive that was made by another Java or with other jars.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyspark

from streaming.jars import find_java
from streaming.places import cache_folder, shipped
from streaming.process import SAFE_PATH
from streaming.spark._python import SERVER

_SUBMIT, _PYTHON = "spark-submit", f"python-{hashlib.sha256(sys.executable.encode()).hexdigest()[:12]}"
_INTERPRETERS = {_SUBMIT: os.path.realpath(sys.executable), _PYTHON: sys.executable}
"""What runs our programs in `bin`: environments of one Python share a home, and each has a Python of its own."""

_PROGRAMS = {_SUBMIT: Path(__file__).with_name("_spark_submit.py"), _PYTHON: Path(__file__).with_name("_python.py")}
"""What each says."""

# Linux takes the first line of a program up to this length, and ends a path at a space.
_LONGEST_INTERPRETER = 240

_CHOSEN = (
    *("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS"),
    *("PYSPARK_GATEWAY_PORT", "MASTER", "SPARK_ENV_LOADED"),
)
"""What a user or a platform sets who has a Spark, or a configuration, of their own: then nothing here is used."""

# Where the archive does not fit, the JVM would say so on its standard output.
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")


def use_prepared_home(*, writes_archive: Path | None = None) -> None:
    """Let the sessions of this process start in the prepared home, unless the environment says where Spark is.

    Args:
        writes_archive: Where the JVM writes the archive when it ends, whatever the environment says; None to use the
            one that is there.

    Raises:
        SetupError: There is no usable Java.
    """
    if writes_archive is None and any(os.environ.get(name) for name in _CHOSEN):
        return
    folder = _folder()
    archive = f"SharedArchiveFile={class_archive()}"
    if writes_archive is not None:
        archive = f"ArchiveClassesAtExit={writes_archive}"
    try:
        (folder / "conf").mkdir(parents=True, exist_ok=True)
        (folder / "bin").mkdir(exist_ok=True)
        for place, target in _links():
            with suppress(FileExistsError):
                (folder / place).symlink_to(target)
        for name, program in _PROGRAMS.items():
            if not (folder / "bin" / name).exists():
                _write(folder / "bin" / name, program)
    except OSError:
        return  # no place to write: Spark starts as it is installed
    options = (f"-XX:{archive}", *_QUIET, f"-Dlog4j2.configurationFile={shipped('log4j2.properties')}")
    os.environ |= {
        "SPARK_HOME": str(folder),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_SUBMIT_OPTS": shlex.join(options),
        "PYSPARK_SUBMIT_ARGS": shlex.join(["--properties-file", str(shipped("spark-defaults.conf")), "pyspark-shell"]),
    }


def forking_python() -> Path | None:
    """The Python that asks for forks (`fork_pythons`), on Linux; None where sessions do not start in the prepared home.

    Raises:
        SetupError: There is no usable Java.
    """
    python = _folder() / "bin" / _PYTHON
    is_used = sys.platform == "linux" and os.environ.get("SPARK_HOME") == str(_folder())
    return python if is_used and python.exists() else None


@cache
def fork_pythons(python: Path, imports: tuple[str, ...]) -> tuple[object, ...]:
    """Let the sessions that this process starts from now on fork their Python processes, as long as this one lives.

    Args:
        python: The program that asks for a fork (`_python.py`).
        imports: Modules that all of them share.

    Returns:
        What must be kept while they are forked.
    """
    folder = tempfile.TemporaryDirectory(prefix="evenkeel-")
    with socket.socket(socket.AF_UNIX) as listening:
        path = str(Path(folder.name, "pythons"))
        listening.bind(path)
        listening.listen()
        process = subprocess.Popen(
            [sys.executable, "-m", "streaming.spark._fork_pythons", str(listening.fileno()), *imports],
            stdin=subprocess.PIPE,
            # As Spark starts them. NumPy's library and Arrow would start threads, which a fork is without.
            env=os.environ | SAFE_PATH | {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
            pass_fds=[listening.fileno()],
            start_new_session=True,
        )
    os.environ |= {"PYSPARK_PYTHON": str(python), SERVER: path}
    return folder, process


def _links() -> Iterator[tuple[str, Path]]:
    yield "jars", _spark() / "jars"
    for script in (_spark() / "bin").iterdir():
        # Spark's own way to submit has another name here.
        yield f"bin/{script.name}" if script.name != "spark-submit" else "bin/spark-submit.sh", script


def _write(path: Path, program: Path) -> None:
    """Write a program of ours, whole or not at all: several processes may do so at once."""
    interpreter = _INTERPRETERS[path.name]
    if " " in interpreter or len(interpreter) > _LONGEST_INTERPRETER:
        with suppress(FileExistsError):
            if path.name == _SUBMIT:
                path.symlink_to(_spark() / "bin" / path.name)
        return
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(f"#!{interpreter} -IS\n{program.read_text('utf-8')}", "utf-8")
    part.chmod(0o755)
    part.replace(path)


def class_archive() -> Path:
    """The archive of this Java with these jars; it need not exist.

    Raises:
        SetupError: There is no usable Java.
    """
    return _folder() / "classes.jsa"


def _folder() -> Path:
    # Times in seconds, as the JVM compares them: the layers of an image have no fractions.
    jars = sorted((jar.name, jar.stat().st_size, int(jar.stat().st_mtime)) for jar in (_spark() / "jars").iterdir())
    texts = [program.read_text("utf-8") for program in _PROGRAMS.values()]
    made_for = f"{find_java().resolve()} {_INTERPRETERS[_SUBMIT]} {_spark()} {jars} {texts}"
    return cache_folder() / f"spark-{hashlib.sha256(made_for.encode()).hexdigest()[:12]}"


def _spark() -> Path:
    return Path(pyspark.__file__).parent
