"""`POST /api/v1/marks`: the only request that writes. It has a token of its own, which reads nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from streaming.exceptions import EvenkeelError, SetupError
from streaming.lifecycle import room_log
from streaming.notes import checked_mark, write_note
from streaming.serve.model import Model
from streaming.serve.page import problem, quoted
from streaming.times import epoch_ms

_LOG = room_log(__name__)

# A text of 200 characters, a group of 255, and names: anything longer is no mark.
_MOST_BYTES: Final = 8_192

# A deploy makes one; a script that runs wild must not fill the table. (A burst of a minute, then one a second.)
_BURST: Final = 60
_PER_SECOND: Final = 1.0

_BODY_S: Final = 10.0

# A mark of last year is no mark of a chart that anybody looks at; clocks differ by minutes.
_OLDEST: Final = timedelta(days=366)
_AHEAD: Final = timedelta(minutes=10)


class NewMark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mark as it is sent."""

    text: Annotated[str, Meta(min_length=1, max_length=400, description="What was done: up to 200 characters.")]
    cluster: Annotated[str | None, Meta(description="The cluster; not needed where the lake has only one.")] = None
    group: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4_096)] | None,
        Meta(description="The group that it concerns; otherwise the whole cluster."),
    ] = None
    time: Annotated[Annotated[datetime, Meta(tz=True)] | None, Meta(description="When (RFC 3339); otherwise now.")] = (
        None
    )
    id: Annotated[
        Annotated[str, Meta(pattern="^[A-Za-z0-9_.-]{1,64}$")] | None,
        Meta(description="Id of your own: a mark that is sent twice with one id is one mark."),
    ] = None


class NotingRate:
    """How many marks may be written now: a bucket of tokens."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        """Begin with a full bucket; `steady` returns seconds."""
        self._steady = steady
        self._left, self._at = float(_BURST), steady()

    def take_one(self) -> bool:
        """Count one more mark; False when it is one too many."""
        now = self._steady()
        self._left = min(float(_BURST), self._left + (now - self._at) * _PER_SECOND)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def marking(model: Model, pace: NotingRate | None = None) -> Callable[[Request], Any]:
    """The endpoint; a request that reaches it has shown the token (`access.py`)."""
    pace = pace or NotingRate()

    async def endpoint(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return problem(415, "Send JSON, with Content-Type: application/json.")
        try:
            body = await asyncio.wait_for(_body(request), _BODY_S)
        except TimeoutError:
            return problem(408, "The body did not come within ten seconds.")
        if body is None:
            return problem(413, f"A mark has up to {_MOST_BYTES} bytes.")
        try:
            asked = msgspec.json.decode(body, type=NewMark)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            return problem(400, f"This is no mark: {quoted(str(error))}. /api/v1/openapi.json describes one.")
        if not pace.take_one():
            return problem(429, "Too many marks: one a second is enough.", headers={"Retry-After": "1"})
        return await run_in_threadpool(_write, model, asked)

    return endpoint


async def _body(request: Request) -> bytes | None:
    """The body; None when it is too long."""
    found = b""
    async for chunk in request.stream():
        found += chunk
        if len(found) > _MOST_BYTES:
            return None
    return found


def _write(model: Model, asked: NewMark) -> Response:
    known = sorted(model.snapshot.clusters) if model.snapshot is not None else []
    cluster = asked.cluster if asked.cluster is not None else known[0] if len(known) == 1 else None
    if cluster is None or cluster not in known:
        what = "There are several clusters: name one." if asked.cluster is None else "There is no such cluster."
        return problem(400, what if known else "There is no round in the lake yet.")
    now = datetime.now(UTC)
    at = asked.time or now
    if not now - _OLDEST <= at <= now + _AHEAD:
        return problem(400, "The time of a mark lies within the last year, and not in the future.")
    try:
        mark = checked_mark(cluster, asked.text, asked.group, epoch_ms(at), "api", asked.id)
        write_note(model.root, mark, epoch_ms(now))
    except SetupError as error:
        return problem(400, str(error))
    except (EvenkeelError, OSError) as error:
        _LOG.warning("a mark could not be written: %s", error)
        return problem(503, "The lake cannot be written now; the server's log has the reason.")
    made = {"mark_id": mark.mark_id, "cluster": cluster, "text": mark.text, "group_id": mark.group_id, "mark_time": at}
    return Response(msgspec.json.encode(made), 201, media_type="application/json")
