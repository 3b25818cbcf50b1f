"""A token endpoint as identity providers have it, for one client."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from tests.loopback import Asked, Loopback

__all__ = ["TokenEndpoint"]


class TokenEndpoint(Loopback):
    """Runs for the duration of the block; answers the client "me" with `secret`.

    Attributes:
        url: Its address.
        secret: The client's secret.
        reply: Makes an answer, which is sent as JSON.
        asked: The forms that came.
    """

    def __init__(self, reply: Callable[[], Any]) -> None:
        super().__init__()
        self.url = f"http://127.0.0.1:{self.port}/token"
        self.secret = "hunter2: 50%"
        self.reply = reply
        self.asked: list[dict[str, list[str]]] = []

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        self.asked.append(parse_qs(asked.body.decode()))
        scheme, _, text = asked.headers["Authorization"].partition(" ")
        login = [unquote_plus(part) for part in base64.b64decode(text).decode().split(":")]
        is_known = (scheme, login) == ("Basic", ["me", self.secret])
        return 200 if is_known else 401, json.dumps(self.reply()).encode()
