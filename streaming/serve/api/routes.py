"""Requests to the API: parameters checked by the lists' structs, answers in pages; and marks, the only ones that write.

`POST /api/v1/marks` has a token of its own, which reads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dashboards import Site, since
from streaming.exceptions import EvenkeelError, SetupError
from streaming.explain import NoSuchPartitionError, PartitionError, read_partition, verdicts_in_words
from streaming.lifecycle import room_log
from streaming.notes import checked_mark, write_note
from streaming.serve.api.listings import LISTINGS, ExplainFilter, Filter, Listing, decode_cursor, encode_cursor
from streaming.serve.model import Model, Snapshot
from streaming.serve.page import RETRY, problem, quoted
from streaming.times import epoch_ms, utc

PREFIX: Final = "/api/v1"

MARKS: Final = f"{PREFIX}/marks"
"""The path that takes a POST."""

_STARTING = "The tables are still being read: ask again in some seconds."

_READING = "The verdict is still being read: ask again in some seconds."

_KINDS: Final[Mapping[str, type]] = {
    "partition": int,
    "decision": int,
    "record_time": datetime,
    "mark_time": datetime,
    "until_time": datetime,
}

# Clocks of those who mark differ from ours.
_AHEAD: Final = timedelta(days=1)

# More decisions than a day of any cluster has.
_ALL: Final = 2**31 - 1

_F = TypeVar("_F", bound=msgspec.Struct)


class _Anything(Convertor[str]):
    """The rest of a path, line feeds as well (Starlette's own stops at them)."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", _Anything())


def routes(model: Model, site: Site) -> list[Route]:
    """The routes of the API; older rows than those in memory are the site's."""

    def in_thread(answer: Callable[[Request, Snapshot], Response]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            if model.snapshot is None:
                raise HTTPException(503, _STARTING, RETRY)
            return await run_in_threadpool(answer, request, model.snapshot)

        return endpoint

    def listed(listing: Listing) -> Callable[[Request, Snapshot], Response]:
        return lambda request, snapshot: _page(model, listing, request, snapshot)

    return [
        *(Route(f"{PREFIX}/{one.name}", in_thread(listed(one))) for one in LISTINGS),
        Route(MARKS, marking(model), methods=["POST"]),
        Route(f"{PREFIX}/explain", in_thread(lambda request, _: _explain(site, request))),
        # A group's id may contain anything.
        Route(
            f"{PREFIX}/groups/{{group:anything}}", in_thread(lambda request, snapshot: _group(model, request, snapshot))
        ),
        Route(
            f"{PREFIX}/topics/{{topic:anything}}", in_thread(lambda request, snapshot: _topic(model, request, snapshot))
        ),
    ]


def _page(model: Model, listing: Listing, request: Request, snapshot: Snapshot) -> Response:
    asked = _checked(request, Filter, {"cluster", "limit", "cursor", *listing.takes})
    kinds = [_KINDS.get(column, str) for column in listing.key]
    after = decode_cursor(asked.cursor, kinds) if asked.cursor is not None else None
    known = {name: getattr(asked, name) for name in ("cluster", "topic", "status", "verdict", "kind")} | {
        "group_id": asked.group,
        "since": _since(model, asked.since, listing.name),
        "until": datetime.now(UTC) + _AHEAD,
        "imbalance": model.thresholds.imbalance,
        "most": _ALL,
    }
    rows = model.lake.page(listing.query, known, listing.key, after, asked.limit + 1, newest_first=listing.newest_first)
    more = len(rows) > asked.limit
    rows = rows[: asked.limit]
    following = encode_cursor([rows[-1][column] for column in listing.key]) if more else None
    return _json({"items": rows, "next": following, "rounds": _rounds(model, snapshot)})


def _group(model: Model, request: Request, snapshot: Snapshot) -> Response:
    group = request.path_params["group"]
    asked = _checked(request, Filter, {"cluster"})
    given = {"cluster": asked.cluster, "group_id": group, "imbalance": model.thresholds.imbalance}
    found = _of_one_cluster(model.lake.ask("groups", given), "living group", group)
    of = {"cluster": found[0]["cluster"], "group_id": group}
    verdicts = model.lake.ask("api_drift", {**of, "verdict": None})
    return _json(
        {
            "group": found[0],
            "drift": verdicts[0] if verdicts else None,
            "what_if": model.lake.ask("api_what_if", of),
            "rounds": _rounds(model, snapshot),
        }
    )


def _topic(model: Model, request: Request, snapshot: Snapshot) -> Response:
    topic = request.path_params["topic"]
    asked = _checked(request, Filter, {"cluster"})
    found = _of_one_cluster(model.lake.ask("topics", {"cluster": asked.cluster, "topic": topic}), "topic", topic)
    groups = model.lake.ask("api_topic_groups", {"cluster": found[0]["cluster"], "topic": topic})
    return _json({"topic": found[0], "groups": groups, "rounds": _rounds(model, snapshot)})


def _explain(site: Site, request: Request) -> Response:
    """The verdict in words, of the worst topic where a group decides topic by topic (RocketMQ).

    Then `other_topics` has the same of each of the others.
    """
    asked = _checked(request, ExplainFilter, ExplainFilter.__struct_fields__)
    try:
        place = None if asked.partition is None else read_partition(asked.partition)
        found = site.verdicts(asked.group, asked.cluster, asked.generation, asked.decision)
        if found is None:
            raise HTTPException(503, _READING, {"Retry-After": "2"})
        told = verdicts_in_words(_of_one_cluster(found, "such verdict on a group", asked.group), place)
    except (PartitionError, NoSuchPartitionError) as error:
        raise HTTPException(404 if isinstance(error, NoSuchPartitionError) else 400, str(error)) from None
    first, *others = [words.json(row) for row, words in told]
    return _json({**first, "other_topics": others} if others else first)


def _of_one_cluster(rows: list[dict[str, Any]], what: str, name: str) -> list[dict[str, Any]]:
    if not rows:
        raise HTTPException(404, f"There is no {what} {quoted(name)}.")
    if len({row["cluster"] for row in rows}) > 1:
        raise HTTPException(400, f"Several clusters have {quoted(name)}: add cluster= and a name to the address.")
    return rows


def _checked(request: Request, filters: type[_F], takes: Collection[str]) -> _F:
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given or name not in takes:
            what = "is given twice" if name in given else f"is none of this path, which takes {', '.join(takes)}"
            raise HTTPException(400, f"The parameter {quoted(name)} {what}.")
        given[name] = value
    try:
        return msgspec.convert(given, filters, strict=False)
    except msgspec.ValidationError as error:
        raise HTTPException(400, f"A parameter is wrong: {quoted(str(error))}.") from None


def _since(model: Model, given: datetime | None, listing: str) -> datetime:
    if listing == "marks" and given is not None:
        return given  # all of them are in memory
    if listing == "mutes":
        return datetime.now(UTC)  # those that are not over
    earliest = since(model.lake.past, datetime.now(UTC))
    if given is None:
        return earliest
    return max(given, earliest)


def _rounds(model: Model, snapshot: Snapshot) -> list[dict[str, Any]]:
    silent = model.silent(snapshot)
    return [
        {
            "cluster": name,
            "round": cluster.round,
            "round_time": utc(cluster.round_ms),
            "silent": name in silent,
        }
        for name, cluster in sorted(snapshot.clusters.items())
    ] + [{"cluster": name, "round": None, "round_time": None, "silent": True} for name in sorted(snapshot.unstarted)]


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


_LOG = room_log(__name__)

# A mark of last year is no mark of a chart that anybody looks at; clocks differ by minutes.
_OLDEST: Final = timedelta(days=366)
_MARKED_AHEAD: Final = timedelta(minutes=10)


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
    """The endpoint; a request that reaches it has shown the token (`app.py`)."""

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
    if not now - _OLDEST <= at <= now + _MARKED_AHEAD:
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
