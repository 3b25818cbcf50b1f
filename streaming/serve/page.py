"""The page's routes, whose content comes from `dashboards`, and errors as problem details (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from dashboards import STATIC, RenderedPage, Site, segments

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


_NOTHING = "There is nothing here: / has what there is."


def routes(site: Site) -> Sequence[BaseRoute]:
    """The routes of the page, apart from its boards: `page` answers those where no other route fits."""

    async def root(request: Request) -> Response:
        return await page(site, request)

    # Installers such as uv may put links in place of files.
    return [Route("/", root), Mount("/static", StaticFiles(directory=STATIC, follow_symlink=True))]


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
    headers = {"ETag": answer.tag}
    if answer.status == 200 and answer.tag in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    return Response(answer.body, answer.status, headers, "text/html; charset=utf-8")


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
