"""Who may ask, and what every answer carries."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from streaming.config import ServeSettings, load_settings
from streaming.exceptions import SetupError
from streaming.serve.app import Guard
from tests.serve.client import Answer, ask

HEADERS = ("content-security-policy", "x-frame-options", "x-content-type-options", "referrer-policy")


class Server:
    def __init__(self, **settings: Any) -> None:
        self.paused: list[float] = []
        self.app = Guard(PlainTextResponse("here"), ServeSettings(**settings), self._pause)

    async def _pause(self, seconds: float) -> None:
        self.paused.append(seconds)

    def get(self, path: str = "/x", **more: Any) -> Answer:
        return ask(self.app, path, **more)


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_get_and_head_are_answered(method: str) -> None:
    answer = Server().get(method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "answer", [Server().get(), Server().get(method="POST"), Server(token="t").get()], ids=["200", "405", "401"]
)
def test_every_answer_keeps_browsers_away_from_others(answer: Answer) -> None:
    assert set(HEADERS) <= answer.headers.keys()
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "set-cookie" not in answer.headers


# A header is bytes. The last one of this is a blank in Latin-1, as which Starlette reads it.
IN_LATIN_1 = bearer("voilà".encode().decode("latin-1") + " ")


@pytest.mark.parametrize(
    ("settings", "login", "status"),
    [
        ({"token": "geheim"}, {}, 401),
        ({"token": "geheim"}, bearer("geheimnis"), 401),
        ({"token": "geheim"}, bearer("geheim"), 200),
        ({"token": "geheim"}, basic("evenkeel", "geheim"), 401),
        ({"token": "voilà"}, IN_LATIN_1, 200),
        ({"token": "voil"}, IN_LATIN_1, 401),
        ({"user": "ops", "password": "pä:ss"}, basic("ops", "pä:ss"), 200),
        ({"user": "ops", "password": "pä:ss"}, basic("evenkeel", "pä:ss"), 401),
    ],
)
def test_who_has_the_token_or_the_password_with_any_characters_is_let_in(
    settings: dict[str, str], login: dict[str, str], status: int
) -> None:
    assert Server(**settings).get(headers=login).status == status


def test_a_login_that_is_missing_is_asked_for() -> None:
    assert Server(token="t").get().headers["www-authenticate"] == "Bearer"
    assert Server(user="ops", password="p").get().headers["www-authenticate"].startswith("Basic ")


@pytest.mark.parametrize("header", ["Basic", "Basic ===", "Bearer", "Bearer \xff\xfe", "Digest x", "x" * 10_000])
def test_a_broken_login_is_a_wrong_one(header: str) -> None:
    assert Server(token="t", password="p").get(headers={"authorization": header}).status == 401


def test_a_wrong_login_waits_a_second_and_locks_out_nobody_who_knows() -> None:
    server = Server(token="right")
    for _ in range(50):
        assert server.get(headers=bearer("old")).status == 401
    assert server.paused == [1.0] * 50
    assert server.get(headers=bearer("right")).status == 200
    assert server.get().status == 401
    assert len(server.paused) == 50


def test_health_needs_no_login() -> None:
    server = Server(token="t", path="/keel")
    assert server.get("/health").status == server.get("/keel/health").status == 200
    assert server.get("/healthy").status == 401


def test_a_foreign_site_that_points_its_name_at_loopback_is_refused() -> None:
    server = Server()
    assert server.get(headers={"host": "evil.example:8090"}).status == 421
    assert server.get(headers={"host": "[::1]:8090"}).status == 200
    assert Server(listen="0.0.0.0:1").get(headers={"host": "any.example"}).status == 200
    assert Server(listen="0.0.0.0:1", hosts=("a.example",)).get(headers={"host": "b.example"}).status == 421


@pytest.mark.parametrize("listen", ["8090", "::1:8090", "127.0.0.1:99999", "", "a b:1", "127.0.0.1:"])
def test_a_wrong_address_is_refused_in_a_sentence(listen: str) -> None:
    with pytest.raises(SetupError, match=r"serve\.listen"):
        load_settings(serve={"listen": listen})


@pytest.mark.parametrize("secret", ["", "from a file\n", " t"])
def test_a_secret_that_no_header_carries_is_refused(secret: str) -> None:
    with pytest.raises(SetupError, match=r"serve\.token"):
        load_settings(serve={"token": secret})
