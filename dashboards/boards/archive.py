"""Questions about what is not held in memory: roll-ups of months, decisions of any age.

The lake may be far away and large, so nobody waits for long: a question is given to one thread, and who asks gets the
rows, or None and asks again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass
from typing import Any, Final

from dashboards.query import history_queries, queries
from streaming.exceptions import EvenkeelError
from streaming.tables import LakeReader

__all__ = ["Archive"]

_log = logging.getLogger(__name__)

# Who asks waits so long; a page that is there within a second feels immediate.
_PATIENCE_S = 0.7

# An answer is good for so long: the newest hour of history comes once an hour, and a new decision is looked for in
# memory first.
_GOOD_S = 60.0

# Answers that are kept, of a few thousand rows each at the most.
_MOST_ANSWERS = 64

# Questions that wait. More than a handful of people at once ask for different months only in an attack.
_MOST_WAITING: Final = 16


@dataclass(slots=True)
class _Answer:
    rows: Future[list[dict[str, Any]]]
    asked_at: float


class Archive:
    """Rows of the queries over the whole lake, read from the lake when somebody asks."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._reader: LakeReader | None = None
        self._refreshed = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="archive")
        self._answers: OrderedDict[tuple[Any, ...], _Answer] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, name: str, **parameters: Any) -> list[dict[str, Any]] | None:
        """The rows of a query; None while they are still being read.

        Raises:
            EvenkeelError: The lake cannot be read.
        """
        key = (name, *sorted((k, str(v)) for k, v in parameters.items()))
        with self._lock:
            known = self._answers.get(key)
            if known is None or (known.rows.done() and time.monotonic() - known.asked_at > _GOOD_S):
                waiting = sum(not answer.rows.done() for answer in self._answers.values())
                if waiting >= _MOST_WAITING:
                    return None
                known = _Answer(self._thread.submit(self._read, name, parameters), time.monotonic())
                self._answers[key] = known
                while len(self._answers) > _MOST_ANSWERS:
                    self._answers.popitem(last=False)
        try:
            return known.rows.result(_PATIENCE_S)
        except NotYetError:
            return None
        except Exception as error:
            with self._lock:
                self._answers.pop(key, None)
            if isinstance(error, EvenkeelError):
                raise
            _log.exception("reading the archive failed")
            message = "Reading older rows failed; the server's log has the reason."
            raise EvenkeelError(message) from error

    def stop(self) -> None:
        """Take no more questions."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _read(self, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        if self._reader is None:
            self._reader = LakeReader(self._root)
        elif time.monotonic() - self._refreshed > _GOOD_S:
            self._reader.refresh()
        self._refreshed = time.monotonic()
        return self._reader.rows((queries() | history_queries())[name].duckdb, dict(parameters))
