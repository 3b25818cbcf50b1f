"""Stories 17 to 20: what people do beside the groups, and what becomes of it.

17. A colleague mutes `reports-stuck-rebalance` for an hour. Its alerts fire and resolve in the table, and the inbox
    gets none of them.
18. A deploy of `clicks-pile-up` is marked. Its drift is sent once, and its end.
19. The alert `offsets_blocked` is expected: a mute of its rule repeats every week. It fires and resolves, and nothing
    is sent.
20. The drift of `clicks-pile-up` is explained: what `evenkeel assign` makes of the explanation's line differs from what
    the members had in exactly the partitions that drifted.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from assignors.jsonl import assign_line
from streaming.config import AlertSettings
from streaming.demo.evidence import Evidence, Timed
from streaming.exceptions import EvenkeelError
from streaming.explain import verdict_in_words
from streaming.notes import KnownNames, mark, mute

MUTED = "reports-stuck-rebalance"
MARKED = "clicks-pile-up"
ANNOUNCED = "offsets_blocked"

_MARK = "deploy of the clicks' consumers 2.0"
_WINDOW = "the brokers' disks are changed"

_LONGEST_BYTES = 1_000_000
"""The most that is read of one message."""

# The job creates the tables some seconds after its start, and the first alert needs a batch more.
_PATIENCE_S = 120.0


class Inbox:
    """A receiver of alerts on loopback: takes what a target `json://` sends. A context manager."""

    def __init__(self, file: Path) -> None:
        """Prepare.

        Args:
            file: Each message is a line of it.
        """
        lock = threading.Lock()
        file.touch()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = min(int(self.headers.get("Content-Length") or 0), _LONGEST_BYTES)
                message = json.loads(self.rfile.read(length))
                with lock, file.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(message) + "\n")
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="inbox")

    @property
    def url(self) -> str:
        """Its URL as a target of alerts."""
        return f"json://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()


def alert_settings(url: str, poll_ms: int) -> AlertSettings:
    """The alerter's settings: one target."""
    return AlertSettings.model_validate({"poll_ms": poll_ms, "targets": {"inbox": url}})


def act(lake: str, cluster: str, stop: threading.Event) -> None:
    """Mute and mark as soon as the lake is there; in a thread of its own."""
    until = time.monotonic() + _PATIENCE_S
    left = [
        lambda: mark(lake, cluster, _MARK, MARKED),
        lambda: mute(lake, cluster, ANNOUNCED, "6d", _WINDOW, KnownNames((), ()), "rule", every="week"),
        lambda: mute(lake, cluster, MUTED, "1h", "its consumers are being rebuilt", KnownNames((), ()), "group"),
    ]
    while left and not stop.is_set() and time.monotonic() < until:
        try:
            left[0]()
        except (EvenkeelError, OSError):
            stop.wait(0.5)
        else:
            del left[0]  # what is done is not done again with what failed


def check_people(evidence: Evidence, inbox: Path) -> list[str]:
    """One sentence for everything that is missing."""
    sent = [json.loads(line) for line in inbox.read_text("utf-8").splitlines()]
    checks = ((17, _muted), (18, _marked), (19, _announced))
    missing = [
        type(sentence)(f"story {number}: {sentence}") for number, check in checks for sentence in check(evidence, sent)
    ]
    return [*missing, *(f"story 20: {sentence}" for sentence in _explained(evidence))]


def _muted(evidence: Evidence, sent: list[dict[str, Any]]) -> Iterator[str]:
    yield from _held(evidence, "group_id", MUTED, f"group {MUTED} is muted by ")
    if told := [one["title"] for one in sent if one.get("group_id") == MUTED]:
        yield f"{MUTED} is muted, and yet was sent: {told}"
    if not evidence.one("SELECT count(*) FROM mutes_current WHERE name = ?", MUTED):
        yield f"the table mutes should have a mute of {MUTED}"


def _marked(evidence: Evidence, sent: list[dict[str, Any]]) -> Iterator[str]:
    if not evidence.one("SELECT count(*) FROM marks WHERE group_id = ?", MARKED):
        yield f"the table marks should have a mark of {MARKED}"
    told = [one for one in sent if (one.get("rule"), one.get("group_id")) == ("drift", MARKED)]
    if [one["state"] for one in told] != ["firing", "resolved"]:
        yield Timed(
            f"the drift of {MARKED} should have been sent once, with its end, it was {[one['state'] for one in told]}"
        )


def _announced(evidence: Evidence, sent: list[dict[str, Any]]) -> Iterator[str]:
    yield from _held(evidence, "rule", ANNOUNCED, f"rule {ANNOUNCED} is muted by ")
    if told := [one["title"] for one in sent if one.get("rule") == ANNOUNCED]:
        yield f"{ANNOUNCED} was announced, and yet was sent: {told}"


def _held(evidence: Evidence, column: str, name: str, why: str) -> Iterator[str]:
    fired = evidence.rows(f"SELECT transition_id FROM alerts WHERE {column} = ? AND state = 'firing'", name)  # noqa: S608
    if not fired:
        yield f"an alert of {name} should have fired"
    sql = "SELECT outcome, reason FROM alert_deliveries WHERE transition_id = ?"
    for one in fired:
        rows = evidence.rows(sql, one["transition_id"])
        if not any(row["outcome"] == "held" and row["reason"].startswith(why) for row in rows):
            yield f"a message about {name} should have been held back because of {why!r}, it has {rows}"


def _explained(evidence: Evidence) -> Iterator[str]:
    sql = "SELECT * FROM drift WHERE group_id = ? AND verdict = 'drifted' ORDER BY decision DESC LIMIT 1"
    found = evidence.rows(sql, MARKED)
    if not found:
        yield f"{MARKED} should have drifted"
        return
    row = found[0]
    told = verdict_in_words(row, None)
    line = told.json(row)
    answer = assign_line({name: value for name, value in line.items() if name != "explanation"})
    owners = {(topic, p): member for member, of in answer.get("assignment", {}).items() for topic, p in of}
    wrong = [
        one for one in row["drifted_partitions"] if owners.get((one["topic"], one["partition"])) != one["expected"]
    ]
    if wrong or not told.sentences:
        yield f"the drift of {MARKED} should be explained by its own inputs, {wrong or answer} is not"
