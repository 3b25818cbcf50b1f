"""Two alerters on one cluster: one works, and the other stands by. They agree by the lake.

The lock of a machine and the lease of an object store already keep a second one away (`streaming/process/lock.py`).
What neither sees is another machine that shares a lake in a folder. So who works is written into the table `alerts`, as
transaction ids of Delta: these survive everything that rows do, and two commits that claim the same one cannot both
succeed. Three numbers are enough:

    worker    token of the machine whose alerter works; RELEASED after its end
    asked     a candidate asks whether the worker lives, by adding one
    answered  the worker lives: it has seen this question

An alerter that works alone writes nothing, however long it lives. A candidate asks every `ASK_EVERY_S`, and takes over
when a question stays unanswered for `PATIENCE_S` of its own steady time: no two clocks are compared. A worker that
finds another token ends, without sending or deciding anything more.

The token is that of the machine since its start, not of the process: on one machine the lock keeps a second alerter
away, so one that is started again after a `kill -9` goes on at once.
"""

from __future__ import annotations

import hashlib
import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, Transaction

from streaming.alerts.exceptions import LostTurnError
from streaming.lifecycle import room_log
from streaming.tables import ALERT_TABLES, DeltaLake, append_once, table_named

_LOG = room_log(__name__)

PATIENCE_S: Final = 120.0
"""A worker looks every two seconds; its first look at a lake of ten thousand groups takes half a minute. A machine that
dies is succeeded after this time."""

ASK_EVERY_S: Final = 30.0
"""While two stand side by side, each question and each answer is a commit."""

LATELY_S: Final = 600.0
"""For so long after it took over, a worker looks for decisions that its predecessor still made."""

RELEASED: Final = 1
"""Token of nobody. (Versions begin with 1.)"""


class AlerterTurn:
    """Whose turn it is on one cluster, as one alerter sees it. For one thread."""

    def __init__(
        self,
        lake: str,
        cluster: str,
        steady: Callable[[], float],
        token: int | None = None,
        patience_s: float = PATIENCE_S,
        ask_every_s: float = ASK_EVERY_S,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            cluster: The cluster.
            steady: Seconds that no change of the clock affects.
            token: Who we are; None for this machine since its start.
            patience_s: How long a question may stay unanswered.
            ask_every_s: How long an answer is good for.
        """
        self._lake, self._steady = DeltaLake(lake), steady
        self._token = machine() if token is None else token
        self._patience_s, self._ask_every_s = patience_s, ask_every_s
        self._cluster = cluster
        self._worker, self._asked, self._answered = (
            f"alerts/{cluster}/worker/{what}" for what in ("token", "asked", "answered")
        )
        self._table: DeltaTable | None = None
        self._mine = False
        self.stands_by = False
        """Another one works."""
        self._took_over_at: float | None = None
        self._question: int | None = None
        self._at = 0.0

    @property
    def took_over_lately(self) -> bool:
        """Whether another one worked until a short while ago."""
        return self._took_over_at is not None and self._steady() - self._took_over_at < LATELY_S

    def look(self) -> bool:
        """Whether it is this alerter's turn.

        Raises:
            LostTurnError: It was, and another one has taken over.
            DeltaError, OSError, LakeUnwritableError: The table cannot be read or written now.
        """
        table = self._opened()
        worker = table.transaction_version(self._worker)
        if worker == self._token:
            self._begin()
            asked = self._number(self._asked)
            if asked > self._number(self._answered):
                self._write(self._answered, asked, lambda: self._number(self._answered) >= asked)
            return True
        if self._mine:
            raise LostTurnError(self._cluster)
        if worker in {None, RELEASED} or self._is_unanswered():
            took = self._write(self._worker, self._token, lambda: table.transaction_version(self._worker) != worker)
            if took:
                if worker not in {None, RELEASED}:
                    _LOG.warning("the other alerter of %s does not answer: taking over", self._cluster)
                self._took_over_at = self._steady() if worker is not None else None
                self._begin()
            return took
        if not self.stands_by:
            _LOG.info("another alerter works for the cluster %s: standing by", self._cluster)
            self.stands_by = True
        return False

    def release(self) -> None:
        """Say that this alerter has ended, so that the next one need not wait; raises as `look`."""
        if self._mine:
            table = self._opened()
            self._write(self._worker, RELEASED, lambda: table.transaction_version(self._worker) != self._token)
            self._mine = False

    def _begin(self) -> None:
        if self.stands_by and not self._mine:
            _LOG.info("this alerter works for the cluster %s now", self._cluster)
        self._mine, self.stands_by, self._question = True, False, None

    def _is_unanswered(self) -> bool:
        """Ask where it is time, and say whether a question has stayed unanswered for too long."""
        now = self._steady()
        if self._question is None:
            if not self.stands_by or now - self._at >= self._ask_every_s:
                question = self._number(self._asked) + 1
                self._write(self._asked, question, lambda: self._number(self._asked) >= question)
                self._question, self._at = question, now
            return False
        if self._number(self._answered) >= self._question:
            self._question, self._at = None, now
            return False
        return now - self._at >= self._patience_s

    def _number(self, name: str) -> int:
        assert self._table is not None  # noqa: S101 - `look` has opened it
        return self._table.transaction_version(name) or 0

    def _opened(self) -> DeltaTable:
        if self._table is None:
            self._lake.create(ALERT_TABLES)
            self._table = DeltaTable(self._lake.path("alerts"))
        else:
            self._table.update_incremental()
        return self._table

    def _write(self, name: str, version: int, is_written: Callable[[], bool]) -> bool:
        assert self._table is not None  # noqa: S101 - `look` has opened it
        schema = table_named("alerts").arrow_schema
        rows = pa.Table.from_pylist([], schema=pa.schema([field.remove_metadata() for field in schema]))
        return append_once(self._table, rows, is_written, [Transaction(name, version)])


def machine() -> int:
    """A number that this machine has since it was started, and no other one: containers on one kernel share it."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        booted = f"{socket.gethostname()}/{uuid.getnode()}"
    return token_of(booted)


def token_of(text: str) -> int:
    """A token from a text."""
    return RELEASED + 1 + int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])
