"""`POST /api/v1/marks`: the only request that writes. It has a token of its own, which reads nothing."""

from __future__ import annotations

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

# A mark of last year is no mark of a chart that anybody looks at; clocks differ by minutes.
_OLDEST: Final = timedelta(days=366)
_AHEAD: Final = timedelta(minutes=10)


class NewMark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mark as it is sent.

    Attributes:
        text: What was done: up to 200 characters.
        cluster: The cluster; not needed where the lake has only one.
        group: The group that it concerns; None for the whole cluster.
        time: When; None for now.
        id: An id of the sender's own: a mark that is sent twice with one id is one mark.
    """

    text: Annotated[str, Meta(min_length=1, max_length=400)]
    cluster: str | None = None
    group: Annotated[str, Meta(min_length=1, max_length=4_096)] | None = None
    time: Annotated[datetime, Meta(tz=True)] | None = None
    id: Annotated[str, Meta(pattern="^[A-Za-z0-9_.-]{1,64}$")] | None = None


def marking(model: Model) -> Callable[[Request], Any]:
    """The endpoint; a request that reaches it has shown the token (`access.py`)."""

    async def endpoint(request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await request.body(), type=NewMark)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            return problem(400, f"This is no mark: {quoted(str(error))}. docs/alerts.md describes one.")
        return await run_in_threadpool(_write, model, asked)

    return endpoint


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
