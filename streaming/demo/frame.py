"""What both demos have: an empty folder, a free port, a stage that goes quiet, tables that catch up with it."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from streaming.config import ServeSettings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.process import Programs
from streaming.tables import LakeReader
from streaming.up import lines

__all__ = ["INTERVAL_MS", "LOOK_MS", "catch_up", "empty_folder", "free_port", "look", "play", "wait"]

INTERVAL_MS = 2_000
"""Rounds and batches are frequent, so that people who watch the demo see events at once."""

LOOK_MS = 500
"""The alerter polls more often than rounds come, so that an alert appears within the round that fires it."""

# Limit until the tables show the last round or an alert; a batch of the demo takes a second or two.
_CATCH_UP_S = 120.0

_LEAST_SPACE = 2 * 2**30


def empty_folder(folder: Path) -> Path:
    """The folder, created if missing.

    Raises:
        SetupError: It is not empty, cannot be created, or there is no space.
    """
    if folder.exists() and any(folder.iterdir()):
        message = f"The folder {folder} is not empty: the demo starts with new tables, choose another with LAKE=."
        raise SetupError(message)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"The folder {folder} cannot be created ({error.strerror}): choose another with LAKE=."
        raise SetupError(message) from error
    if shutil.disk_usage(folder).free < _LEAST_SPACE:
        message = (
            f"Less than 2 GiB are free on the disk of {folder}: free some space, or choose another folder with LAKE=."
        )
        raise SetupError(message)
    return folder


def free_port() -> int:
    """The server's own port if it is free, else any other."""
    default = ServeSettings().address[1]
    for port in (default, 0):
        with socket.socket() as trial, contextlib.suppress(OSError):
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(("127.0.0.1", port))
            return int(trial.getsockname()[1])
    return default  # the server reports what is wrong with it


def look(programs: Programs, notices: deque[str]) -> str:
    """Look after the programs; the newest notice about one of them."""
    programs.look()
    return notices[-1] if notices else ""


def play(
    console: Console,
    stop: threading.Event,
    programs: Programs,
    notices: deque[str],
    journal: Path,
    seconds: int,
) -> bool:
    """Wait until the stage has gone quiet; False when stopped before."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    began = time.monotonic()
    said = ""
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("the stories play", total=seconds)
        while not stop.wait(0.5):
            notice = look(programs, notices)
            if notice != said:
                said = notice
                console.print(lines(said))
            progress.update(task, completed=min(seconds, time.monotonic() - began))
            if journal.exists() and any(_is_quiet(line) for line in journal.read_bytes().splitlines()[-50:]):
                return True
    return False


def _is_quiet(line: bytes) -> bool:
    try:
        return bool(json.loads(line)["what"] == "quiet")
    except (ValueError, KeyError):
        return False  # an incomplete line, still being written


def catch_up(stop: threading.Event, lake: str) -> None:
    """Wait until the tables show two rounds that began after the stage had gone quiet."""
    sql = "SELECT count(*) >= 2 AS done FROM rounds WHERE epoch(round_time) > ?"
    wait(stop, lake, sql, [time.time()], "no new round")


def wait(stop: threading.Event, lake: str, sql: str, given: list[Any], missing: str) -> None:
    """Wait until a query of one value, `done`, is true of the tables.

    Raises:
        EvenkeelError: It is not within two minutes.
    """
    reader = LakeReader(lake)
    deadline = time.monotonic() + _CATCH_UP_S
    while not stop.wait(1.0):
        reader.refresh()
        if reader.rows(sql, given)[0]["done"]:
            return
        if time.monotonic() > deadline:
            message = f"The tables in {lake} show {missing} within {_CATCH_UP_S:.0f} s: see the logs."
            raise EvenkeelError(message)
