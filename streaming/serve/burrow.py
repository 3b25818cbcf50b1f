"""Burrow's read API (`/v3/kafka`, `/burrow/admin`) with its JSON, as release 1.9.5 answers.

A window has one commit a round at the most, which is what Burrow's `min-distance` of one interval gives. The time of a
judgement is the newest round's, and not the clock's: rows that are late make no consumer a stopped one.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from streaming.burrow import Commit, Status, evaluate
from streaming.serve.model import Cluster, Model, Snapshot
from streaming.times import epoch_ms, utc

# Burrow's default for `intervals`: commits of a window, and end offsets.
_INTERVALS: Final = 10

_ORDER: Final[Mapping[Status, int]] = {"OK": 1, "WARN": 2, "ERR": 3, "STOP": 4, "STALL": 5, "REWIND": 6}


@dataclass(slots=True)
class _Partition:
    """A slot of a consumer's topic; without `window` nothing is known that could be judged."""

    owner: str = ""
    client_id: str = ""
    lag: int = 0
    last_commit: datetime | None = None
    window: list[dict[str, Any]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


def routes(model: Model) -> list[Route]:
    """The routes of Burrow's API."""

    def answered(answer: Callable[[Model, Request, Snapshot], Response]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            snapshot = model.snapshot
            if snapshot is None:
                return _json(request, "the tables are still being read", 503, error=True)
            try:
                return await run_in_threadpool(answer, model, request, snapshot)
            except HTTPException as error:
                return _json(request, error.detail, error.status_code, error=True)

        return endpoint

    async def admin(_: Request) -> Response:
        return PlainTextResponse("GOOD")

    async def ready(_: Request) -> Response:
        if model.snapshot:
            return PlainTextResponse("READY")
        return PlainTextResponse("STARTING", 503)

    async def nothing(request: Request) -> Response:
        return _json(request, "invalid request type", 404, error=True)

    of = "/v3/kafka/{cluster}"
    return [
        Route("/burrow/admin", admin),
        Route("/burrow/admin/ready", ready),
        Route("/v3/kafka", answered(_clusters)),
        Route(of, answered(_cluster)),
        Route(f"{of}/topic", answered(_topics)),
        Route(f"{of}/topic/{{topic}}", answered(_topic)),
        Route(f"{of}/topic/{{topic}}/consumers", answered(_consumers)),
        Route(f"{of}/consumer", answered(_consumers)),
        Route(f"{of}/consumer/{{consumer}}", answered(_consumer)),
        Route(f"{of}/consumer/{{consumer}}/status", answered(partial(_status, show_all=False))),
        Route(f"{of}/consumer/{{consumer}}/lag", answered(partial(_status, show_all=True))),
        Route("/v3/{rest:path}", nothing),
    ]


def _clusters(_model: Model, request: Request, snapshot: Snapshot) -> Response:
    return _json(request, "cluster list returned", clusters=sorted(snapshot.clusters))


def _cluster(_model: Model, request: Request, snapshot: Snapshot) -> Response:
    cluster = _known(request, snapshot, "cluster module not found")
    profile = {"name": "", "client-id": "", "kafka-version": "", "tls": None, "sasl": None}
    seconds = (cluster.interval_ms or 0) // 1000
    module = {"class-name": "kafka", "servers": [], "client-profile": profile, "topic-refresh": seconds,
              "offset-refresh": seconds}  # fmt: skip
    return _json(request, "cluster module detail returned", module=module)


def _topics(_model: Model, request: Request, snapshot: Snapshot) -> Response:
    found = {topic for (topic,) in snapshot.rows("ends", _known(request, snapshot).name, "topic")}
    return _json(request, "topic list returned", topics=sorted(found))


def _topic(model: Model, request: Request, snapshot: Snapshot) -> Response:
    wanted = request.path_params["topic"]
    cluster = _heard(model, snapshot, _known(request, snapshot, "cluster or topic not found")).name
    ends = [
        end
        for topic, end in snapshot.rows("ends", cluster, "topic", "high_watermark")
        if topic == wanted and end is not None
    ]
    if not ends:
        raise HTTPException(404, "cluster or topic not found")
    return _json(request, "topic offsets returned", offsets=ends)


def _consumers(model: Model, request: Request, snapshot: Snapshot) -> Response:
    """Groups that have committed: Burrow judges no others, so share groups would be NOTFOUND for ever."""
    topic = request.path_params.get("topic")
    rows = model.lake.ask("burrow_consumers", {"cluster": _known(request, snapshot).name})
    found = {row["group_id"] for row in rows if topic in {None, row["topic"]}}
    message = "consumer list returned" if topic is None else "consumers of topic returned"
    return _json(request, message, consumers=sorted(found))


def _consumer(model: Model, request: Request, snapshot: Snapshot) -> Response:
    cluster = _heard(model, snapshot, _known(request, snapshot, "cluster or consumer not found"))
    found = _partitions(model, cluster, request.path_params["consumer"])
    if not found:
        raise HTTPException(404, "cluster or consumer not found")
    topics = {
        topic: [
            {
                "offsets": [None] * (_INTERVALS - len(one.window)) + one.window if one.window else None,
                "owner": one.owner,
                "client_id": one.client_id,
                "current-lag": one.lag,
            }
            for one in partitions
        ]
        for topic, partitions in found.items()
    }
    return _json(request, "consumer detail returned", topics=topics)


def _status(model: Model, request: Request, snapshot: Snapshot, *, show_all: bool) -> Response:
    group = request.path_params["consumer"]
    status: dict[str, Any] = {
        "cluster": request.path_params["cluster"], "group": group, "status": "NOTFOUND", "complete": 1.0,
        "partitions": [], "partition_count": 0, "maxlag": None, "totallag": 0,
    }  # fmt: skip
    cluster = snapshot.clusters.get(request.path_params["cluster"])
    if cluster is None:
        return _json(request, "consumer status returned", 404, status=status)
    _heard(model, snapshot, cluster)
    if not snapshot.whole:
        raise HTTPException(503, "older rows are still being read, and a window with gaps would look like a stop")
    found = _partitions(model, cluster, group)
    if not found:
        return _json(request, "consumer status returned", 404, status=status)
    judged = [
        _judged(topic, number, one, cluster, model.commits_since(cluster))
        for topic, partitions in found.items()
        for number, one in enumerate(partitions)
    ]
    worst = max((_ORDER[one["status"]] for one in judged), default=1)
    status |= {
        "status": ("OK", "WARN", "ERR")[min(worst, _ORDER["ERR"]) - 1],
        "complete": sum(one["complete"] == 1.0 for one in judged) / len(judged),
        "partitions": [one for one in judged if show_all or one["status"] != "OK"],
        "partition_count": len(judged),
        "maxlag": max(judged, key=lambda one: int(one["current_lag"])),
        "totallag": sum(one["current_lag"] for one in judged),
    }
    return _json(request, "consumer status returned", status=status)


def _judged(topic: str, number: int, one: _Partition, cluster: Cluster, held_since: datetime) -> dict[str, Any]:
    window = [Commit(commit["offset"], commit["timestamp"], commit["lag"]) for commit in one.window]
    status = evaluate(window, one.ends, one.lag, cluster.round_ms)
    # A single commit spans no time, so any lag behind it would be STOP. Where it is from the time that is held, there
    # may have been others before, and the next ones will tell.
    if len(window) == 1 and one.last_commit is not None and one.last_commit > held_since:
        status = "OK"
    return {
        "topic": topic,
        "partition": number,
        "owner": one.owner,
        "client_id": one.client_id,
        "status": status,
        "start": one.window[0] if one.window else None,
        "end": one.window[-1] if one.window else None,
        "current_lag": one.lag,
        "complete": len(window) / _INTERVALS,
    }


def _partitions(model: Model, cluster: Cluster, group: str) -> dict[str, list[_Partition]]:
    """A group's partitions by topic; the place in the list is the number, as far as the group has committed."""
    of = {"cluster": cluster.name, "group_id": group}
    found: dict[str, dict[int, _Partition]] = {}
    for row in model.lake.ask("burrow_partitions", of):
        found.setdefault(row["topic"], {})[row["partition"]] = _Partition(
            row["client_host"] or "", row["client_id"] or "", row["lag"], row["last_commit_time"], [_commit(row)]
        )
    commits: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in model.lake.ask("burrow_commits", of):
        commits.setdefault((row["topic"], row["partition"]), []).append(_commit(row))
    since = utc(cluster.round_ms - _INTERVALS * (cluster.interval_ms or 0))
    ends: dict[tuple[str, int], list[int]] = {}
    for row in model.lake.ask("burrow_ends", of | {"since": since}):
        ends.setdefault((row["topic"], row["partition"]), []).append(row["high_watermark"])
    for topic, partitions in found.items():
        for number, one in partitions.items():
            one.window = commits.get((topic, number)) or one.window
            one.ends = ends.get((topic, number), [])
    return {
        topic: [partitions.get(number, _Partition()) for number in range(max(partitions) + 1)]
        for topic, partitions in found.items()
    }


def _commit(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "offset": row["committed_offset"],
        "timestamp": epoch_ms(row["last_commit_time"]),
        "observedAt": epoch_ms(row["round_time"]),
        "lag": row["lag"],
    }


def _known(request: Request, snapshot: Snapshot, otherwise: str = "cluster not found") -> Cluster:
    cluster = snapshot.clusters.get(request.path_params["cluster"])
    if cluster is None:
        raise HTTPException(404, otherwise)
    return cluster


def _heard(model: Model, snapshot: Snapshot, cluster: Cluster) -> Cluster:
    """The cluster, unless it is silent: Burrow has no field that could say how old an answer is."""
    if cluster.name in model.silent(snapshot):
        raise HTTPException(503, "no round has come from the cluster for some time, so nothing is known of its present")
    return cluster


def _json(request: Request, message: str, status_code: int = 200, *, error: bool = False, **fields: Any) -> Response:
    asked = {"url": request.url.path, "host": socket.gethostname()}
    body = msgspec.json.encode({"error": error, "message": message, **fields, "request": asked})
    return Response(body, status_code, media_type="application/json")
