"""What readers of the lake wait for, and what a hundred viewers of the page cost the server.

A process of `evenkeel serve` runs over a made lake. First one viewer opens each board; then a hundred ask again every
three seconds with the ETags of their last answers, as browsers do, while a round is written every ten seconds. The
server's memory and processor time are those of its process. Of a hundred thousand groups the alerter, too, judges some
rounds.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil  # type: ignore[import-untyped]  # it ships no types

from dashboards import STATIC
from streaming.alerts.rules.rules import load_rules
from streaming.alerts.run import Alerter
from streaming.config import Settings
from streaming.demo.ports import free_port
from tests.benchmarks.day_of_rows import CLUSTER, DaySize, MadeDay, write_day
from tests.benchmarks.figure import Figure, Say
from tests.started import Started, get

_REFRESH_S = 3.0
_ROUND_S = 10.0
_VIEWERS, _SECONDS = 100, 60.0

_SETTLE_S = 2.5 * _REFRESH_S
"""The server has read a new round after this time. It is not asked: the answer would be half of what is measured."""

_FEW = DaySize(groups=30, hours=1)
"""What is on the page that many viewers look at."""

_AT_REST = DaySize(groups=100_000, hours=1 / 6, busy=0.01, occasional=0.02, with_members=0.03)
"""Groups as large clusters have them: most have no members and rest."""

_ALERTED_ROUNDS = 5

# The groups' ids differ in a number alone: "/" has them as one row, the pattern shows a hundred.
_BOARDS = (
    "/",
    "/?pattern=checkout-service-%3Cnumber%3E",
    "/?q=service-00",
    "/groups/checkout-service-{number:04}",
    "/rebalances",
)

_LISTS = ("/api/v1/groups", "/api/v1/lag", "/metrics")


def serve(say: Say) -> list[Figure]:
    """Run the benchmark."""
    figures: list[Figure] = []
    for lake in (_FEW, _AT_REST):
        what = f"{lake.groups:,} groups, {lake.hours:g} h"
        with tempfile.TemporaryDirectory(prefix=f"evenkeel-bench-{os.getpid()}-serve-") as folder:
            day = write_day(Path(folder), lake, say)
            say(f"the server starts over {what}")
            with _running(Path(folder)) as (port, process, started):
                held = process.memory_info().rss / 2**20
                figures.append(
                    Figure(f"page: server over {what}", f"{held:,.0f} MB", "", f"all read in {started:.1f} s")
                )
                figures += _first_visits(port, lake, what, day.next_round)
                if lake is _FEW:
                    say(f"{_VIEWERS} viewers for {_SECONDS:.0f} s")
                    figures += _many(port, process, day.next_round)
            if lake is _AT_REST:
                figures.append(_alerter(folder, day))
    return figures


def _first_visits(port: int, lake: DaySize, what: str, next_round: Callable[[], None]) -> Iterator[Figure]:
    loaded = [path for path in STATIC.rglob("*") if path.suffix in {".css", ".js", ".svg"}]
    libraries = sum(len(gzip.compress(path.read_bytes())) for path in loaded)
    aim = "300 ms" if lake.groups < 1_000 else "1,000 ms"
    for board in _BOARDS:
        path = board.format(number=7)
        next_round()
        time.sleep(_SETTLE_S)
        body, first = _get(port, path)
        again = [_get(port, f"{path}{'&' if '?' in path else '?'}part=main")[1] for _ in range(5)]
        weight = f"{(len(body) + libraries) / 1000:,.0f} KB with styles, scripts and libraries, compressed"
        yield Figure(f"  {path}, first after a round, {what}", f"{1000 * first:,.0f} ms", aim, weight)
        yield Figure("    refresh, median of 5", f"{1000 * median(again):,.0f} ms", "100 ms", "")
    for path in _LISTS:
        next_round()
        time.sleep(_SETTLE_S)
        body, first = _get(port, path)
        yield Figure(
            f"  {path}, first after a round, {what}", f"{1000 * first:,.0f} ms", aim, f"{len(body) / 1000:,.0f} KB"
        )


def _many(port: int, process: psutil.Process, next_round: Callable[[], None]) -> list[Figure]:
    before, began = process.cpu_times(), time.monotonic()
    # In a thread of its own: a browser's test leaves an event loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        waits, unchanged, most = thread.submit(asyncio.run, _views(port, process, next_round)).result()
    after, took = process.cpu_times(), time.monotonic() - began
    used = (after.user + after.system - before.user - before.system) / took
    ordered = sorted(waits)
    slow = ordered[int(0.99 * (len(ordered) - 1))]
    note = f"{len(waits):,} refreshes, {100 * unchanged / len(waits):.0f} % of them answered by 304"
    return [
        Figure(f"  {_VIEWERS} viewers: processor", f"{used:.2f} cores", "0.5 cores", note),
        Figure("    memory at most", f"{most / 2**20:,.0f} MB", "400 MB", ""),
        Figure("    refresh, median", f"{1000 * median(waits):,.0f} ms", "100 ms", f"99 %: {1000 * slow:,.0f} ms"),
    ]


async def _views(port: int, process: psutil.Process, next_round: Callable[[], None]) -> tuple[list[float], int, int]:
    """Waiting times of all refreshes, how many were answered by 304, and the server's largest memory in bytes."""
    waits: list[float] = []
    unchanged = [0]
    most = [0]
    until = time.monotonic() + _SECONDS

    async def view(number: int) -> None:
        # Viewers do not come at the same moment.
        await asyncio.sleep(_REFRESH_S * number / _VIEWERS)
        path = _BOARDS[number % len(_BOARDS)].format(number=number % 30)
        path += "&part=main" if "?" in path else "?part=main"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        tag = ""
        while (now := time.monotonic()) < until:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n{tag}\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            await reader.readexactly(int(fields.get("content-length", 0)))
            waits.append(time.monotonic() - now)
            unchanged[0] += head[0].split()[1] == "304"
            tag = f"If-None-Match: {fields['etag']}\r\n"
            await asyncio.sleep(max(0.0, now + _REFRESH_S - time.monotonic()))
        writer.close()

    async def write() -> None:
        while time.monotonic() < until:
            await asyncio.to_thread(next_round)
            await asyncio.sleep(_ROUND_S)

    async def watch() -> None:
        while time.monotonic() < until:
            most[0] = max(most[0], process.memory_info().rss)
            await asyncio.sleep(1)

    await asyncio.gather(write(), watch(), *map(view, range(_VIEWERS)))
    return waits, unchanged[0], most[0]


def _alerter(lake: str, day: MadeDay) -> Figure:
    rules, spent = load_rules(), []
    with Alerter(Settings(lake=lake, cluster=CLUSTER), rules, {}) as alerter:
        alerter.poll()
        for _ in range(_ALERTED_ROUNDS):
            day.next_round()
            before = time.process_time()
            alerter.poll()
            spent.append(time.process_time() - before)
    note = f"{_AT_REST.groups:,} groups, of which 3 in 100 move; {len(rules)} rules; median of {_ALERTED_ROUNDS}"
    return Figure("alerter: a round, processor time", f"{median(spent):.2f} s", "2 s", note)


@contextmanager
def _running(lake: Path) -> Iterator[tuple[int, psutil.Process, float]]:
    """The server: its port, its process, and the seconds until it had read everything."""
    port = free_port()
    command = [sys.executable, "-m", "streaming.serve"]
    given = {"EVENKEEL_LAKE": str(lake), "EVENKEEL_SERVE__LISTEN": f"127.0.0.1:{port}"}
    began = time.monotonic()
    with Started(command, lake / "server.log", os.environ | given) as process:
        process.until(lambda: _shows_all(port))
        yield port, psutil.Process(process.pid), time.monotonic() - began


def _shows_all(port: int) -> bool:
    """Whether the page is there, and the present is read."""
    status, shown = get(f"http://127.0.0.1:{port}/")
    return status == 200 and "tables are being read" not in shown and "has just started" not in shown


def _get(port: int, path: str) -> tuple[bytes, float]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept-Encoding": "gzip"})
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=300) as answer:
        body = answer.read()
    return body, time.perf_counter() - began
