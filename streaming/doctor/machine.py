"""This machine: Java, disk, memory, the server's port, the files with secrets, releases of what Evenkeel rests on."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]  # it has no type hints

from streaming.config import Settings
from streaming.java import find_java, java_release
from streaming.probe import CheckResult, CheckState, tried
from streaming.process import are_held, logs_of
from streaming.stores import on_object_store

# What the three processes take together for a cluster of ordinary size (docs/performance.md: 3.1 GB for 20 million
# records); a machine with less swaps or ends one of them.
_MEMORY_MB: Final = 4_096
_MEMORY_LEAST_MB: Final = 1_024

# A month of 1,000 groups is some 12 GB (docs/performance.md); below a gigabyte the next compaction may fail.
_DISK_MB: Final = 10_240
_DISK_LEAST_MB: Final = 1_024

_PACKAGES: Final = ("evenkeel", "kafka-python", "pyspark", "deltalake", "duckdb", "pyarrow", "numpy", "apprise")


LookResult = tuple[CheckState, str]
"""State and text of a `CheckResult`."""


def check_machine(settings: Settings) -> Iterator[CheckResult]:
    """All checks of this machine."""
    looks: dict[str, Callable[[], LookResult]] = {"releases": _releases, "Java": _java, "memory": _memory}
    if not on_object_store(settings.lake):
        looks["lake's folder"] = partial(_folder, settings.lake)
    looks["temporary folder"] = partial(_folder, tempfile.gettempdir())
    looks[f"server's port {settings.serve.listen}"] = partial(_port, settings)
    for what, look in looks.items():
        yield tried("machine", what, look)
    yield from _secret_files(settings)


def _releases() -> LookResult:
    found = [f"Python {platform.python_version()}", platform.platform(terse=True)]
    found += [f"{name} {version(name)}" for name in _PACKAGES]
    return "ok", ", ".join(found)


def _java() -> LookResult:
    java = find_java()
    return "ok", f"{java} is Java {java_release(java)}"


def _memory() -> LookResult:
    memory = psutil.virtual_memory()
    free = memory.available // 2**20
    said = f"{free:,} MB of {memory.total // 2**20:,} MB are free"
    if free < _MEMORY_LEAST_MB:
        return "wrong", f"{said}: the job does not start. Free some, or take a larger machine."
    if free < _MEMORY_MB:
        needed = f"all processes together take some {_MEMORY_MB:,} MB. (While they run this may be all right.)"
        return "warn", f"{said}, and {needed}"
    return "ok", said


def _folder(name: str) -> LookResult:
    """Whether a folder, or the nearest one above it that is there, can be written and has room."""
    folder = Path(name).absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            # A disk that is full gives room for a name, but not for bytes.
            file.write(b"\0" * 65_536)
            file.flush()
            os.fsync(file.fileno())
        usage = shutil.disk_usage(folder)
    except OSError as error:
        return "wrong", f"{folder} cannot be written ({error.strerror})."
    free = usage.free // 2**20
    said = f"{folder} can be written, {free:,} MB of {usage.total // 2**20:,} MB are free"
    if free < _DISK_LEAST_MB:
        return "wrong", f"{said}: free some space before it is full."
    if free < _DISK_MB:
        return "warn", f"{said}: a month of 1,000 groups takes some 12,000 MB."
    return "ok", said


def _port(settings: Settings) -> LookResult:
    address, port = settings.serve.address
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind((address, port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            reason = (error.strerror or str(error)).lower()
            return "wrong", f"it cannot be used ({reason}): change serve.listen, or free it."
    else:
        return "ok", "free"
    if are_held(logs_of(settings.lake, settings.cluster)):
        return "ok", "taken, as by the server of the evenkeel up that runs here"
    return "warn", "something listens there. Where that is no Evenkeel server: change serve.listen, or free the port."


def _secret_files(settings: Settings) -> Iterator[CheckResult]:
    """Files with secrets: there, and readable for nobody else."""
    files = {"alerts.targets_file": settings.alerts.targets_file}
    for section, kafka in settings.connections().items():
        for name in ("sasl_password_file", "ssl_password_file", "proxy_url_file"):
            files[f"{section}.{name}"] = getattr(kafka, name, None)
    for name, path in files.items():
        if path is not None:
            yield tried("settings", name, partial(_secret_file, name, path))


def _secret_file(name: str, path: Path) -> LookResult:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return "wrong", f"{path} cannot be read ({error.strerror}): correct {name}."
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        return "warn", f"{path} may be read by others: chmod 600 {path}."
    return "ok", f"{path} is for this user alone"
