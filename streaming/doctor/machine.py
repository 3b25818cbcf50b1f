"""This machine: Java, disk, memory, the server's port, the files with secrets, releases of what Evenkeel rests on."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]  # it has no type hints

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.java import find_java, java_release
from streaming.probe import CheckResult
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


def check_machine(settings: Settings) -> Iterator[CheckResult]:
    """All checks of this machine."""
    yield _releases()
    yield _java()
    yield _memory()
    yield from _disk(settings)
    yield _port(settings)
    yield from _secret_files(settings)


def _releases() -> CheckResult:
    found = [f"Python {platform.python_version()}", platform.platform(terse=True)]
    found += [f"{name} {version(name)}" for name in _PACKAGES]
    return CheckResult("machine", "releases", "ok", ", ".join(found))


def _java() -> CheckResult:
    try:
        java = find_java()
        return CheckResult("machine", "Java", "ok", f"{java} is Java {java_release(java)}")
    except SetupError as error:
        return CheckResult("machine", "Java", "wrong", str(error))


def _memory() -> CheckResult:
    memory = psutil.virtual_memory()
    free = memory.available // 2**20
    said = f"{free:,} MB of {memory.total // 2**20:,} MB are free"
    if free < _MEMORY_LEAST_MB:
        text = f"{said}: the job does not start. Free some, or take a larger machine."
        return CheckResult("machine", "memory", "wrong", text)
    if free < _MEMORY_MB:
        text = (
            f"{said}, and all processes together take some {_MEMORY_MB:,} MB. (While they run this may be all right.)"
        )
        return CheckResult("machine", "memory", "warn", text)
    return CheckResult("machine", "memory", "ok", said)


def _disk(settings: Settings) -> Iterator[CheckResult]:
    if not on_object_store(settings.lake):
        yield from _folder("lake's folder", settings.lake)
    yield from _folder("temporary folder", tempfile.gettempdir())


def _folder(what: str, name: str) -> Iterator[CheckResult]:
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
        yield CheckResult("machine", what, "wrong", f"{folder} cannot be written ({error.strerror}).")
        return
    free = usage.free // 2**20
    said = f"{folder} can be written, {free:,} MB of {usage.total // 2**20:,} MB are free"
    if free < _DISK_LEAST_MB:
        yield CheckResult("machine", what, "wrong", f"{said}: free some space before it is full.")
    elif free < _DISK_MB:
        yield CheckResult("machine", what, "warn", f"{said}: a month of 1,000 groups takes some 12,000 MB.")
    else:
        yield CheckResult("machine", what, "ok", said)


def _port(settings: Settings) -> CheckResult:
    address, port = settings.serve.address
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    what = f"server's port {settings.serve.listen}"
    try:
        with socket.socket(family, socket.SOCK_STREAM) as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind((address, port))
        return CheckResult("machine", what, "ok", "free")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            reason = (error.strerror or str(error)).lower()
            return CheckResult(
                "machine", what, "wrong", f"it cannot be used ({reason}): change serve.listen, or free it."
            )
    if are_held(logs_of(settings.lake, settings.cluster)):
        return CheckResult("machine", what, "ok", "taken, as by the server of the evenkeel up that runs here")
    text = "something listens there. Where that is no Evenkeel server: change serve.listen, or free the port."
    return CheckResult("machine", what, "warn", text)


def _secret_files(settings: Settings) -> Iterator[CheckResult]:
    """Files with secrets: there, and readable for nobody else."""
    files = {"alerts.targets_file": settings.alerts.targets_file}
    for section, kafka in settings.connections().items():
        for name in ("sasl_password_file", "ssl_password_file", "proxy_url_file"):
            files[f"{section}.{name}"] = getattr(kafka, name, None)
    for name, path in files.items():
        if path is None:
            continue
        try:
            mode = path.stat().st_mode
        except OSError as error:
            yield CheckResult("settings", name, "wrong", f"{path} cannot be read ({error.strerror}): correct {name}.")
            continue
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            text = f"{path} may be read by others: chmod 600 {path}."
            yield CheckResult("settings", name, "warn", text)
        else:
            yield CheckResult("settings", name, "ok", f"{path} is for this user alone")
