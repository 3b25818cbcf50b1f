"""Errors as problem details (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response

# A value that was wrong is quoted so far.
_LONGEST = 200


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
