"""The page's routes, whose content comes from `dashboards`, and errors as problem details (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dashboards import RenderedPage, Site, assets, segments

# A value that was wrong is quoted so far.
_LONGEST = 200

RETRY: Final = {"Retry-After": "5"}
"""Headers of an answer that a later request will get."""


def problem(status: int, detail: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """An error as the answer to a request.

    Args:
        status: The HTTP status.
        detail: One sentence: what happened, and what to do.
        headers: More headers.
    """
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return Response(json.dumps(body), status, headers, media_type="application/problem+json")


def quoted(value: str) -> str:
    """A foreign value in an error's text: short, on one line."""
    return ascii(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}...")


# An address contains its file's digest, so what is there never changes.
_FOR_GOOD: Final = "public, max-age=31536000, immutable"

_NOTHING = "There is nothing here: / has what there is."


def routes(site: Site) -> Sequence[Route]:
    """The routes of the page, apart from its boards: `page` answers those where no other route fits."""

    async def root(request: Request) -> Response:
        return await page(site, request)

    return [Route("/", root), Route("/static/{digest}/{file}", _static)]


async def page(site: Site, request: Request) -> Response:
    """The board at the address of a request, or the page that says that there is none."""
    path = _path(request)
    if path is None:
        # Without the slash at its end, relative addresses would lead out of the proxy's path.
        return RedirectResponse(f"{request.scope['root_path'].rpartition('/')[2]}/", 307)
    parameters = request.query_params.multi_items()
    answer = await run_in_threadpool(site.answer, path, parameters)
    return _sent(request, answer or site.missing(path, _NOTHING))


def _sent(request: Request, answer: RenderedPage) -> Response:
    headers = {"ETag": answer.tag, "Vary": "Accept-Encoding"}
    if answer.status == 200 and answer.tag in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    return _packed(request.headers, answer.body, answer.packed, "text/html; charset=utf-8", headers, answer.status)


async def _static(request: Request) -> Response:
    found = assets().get(f"{request.path_params['digest']}/{request.path_params['file']}")
    if found is None:
        return problem(404, "There is no such file: it belongs to another release, so load the page again.")
    headers = {"Cache-Control": _FOR_GOOD, "Vary": "Accept-Encoding"}
    return _packed(request.headers, found.body, found.packed, found.kind, headers, 200)


def _packed(given: Headers, body: bytes, packed: bytes, kind: str, headers: dict[str, str], status: int) -> Response:
    if takes_gzip(given):
        return Response(packed, status, {**headers, "Content-Encoding": "gzip"}, kind)
    return Response(body, status, headers, kind)


def takes_gzip(headers: Headers) -> bool:
    """Whether a client asks for gzip; one that would rather have something else gets plain bytes."""
    encodings = headers.get("accept-encoding", "").replace(" ", "")
    return "gzip" in encodings and "gzip;q=0" not in encodings


def _path(request: Request) -> tuple[str, ...] | None:
    """The decoded segments of the address below the server's root; None at the root without its slash."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    path = raw.partition(b"?")[0].decode("latin-1")
    root = request.scope.get("root_path", "")
    if root and f"{path}/".startswith(f"{root}/"):
        path = path[len(root) :]
    if path:
        return segments(path)
    return None
