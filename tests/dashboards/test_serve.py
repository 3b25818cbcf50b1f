from __future__ import annotations

import http.client
import logging
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.websockets import WebSocket, WebSocketDisconnected, WebSocketState
from websockets import ConnectionClosedError, Origin, Subprotocol
from websockets.sync.client import connect

from dashboards.serve import is_news, options
from dashboards.theme import DARK, LIGHT
from streaming.config import PageSettings
from tests.dashboards.served_page import served


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("serve")
    with served(folder / "lake", folder / "page.log") as address:
        yield address


ROOT = Path(__file__).resolve().parents[2]


def _run(port: int, lake: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "EVENKEEL_PAGE__PORT": str(port), "EVENKEEL_LAKE": str(lake)}
    command = [sys.executable, "-m", "dashboards"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False, cwd=lake.parent
    )


def test_a_port_that_is_taken_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = _run(port, tmp_path / "lake")
    assert done.returncode == 2
    assert done.stderr.startswith(f"The page cannot listen on 127.0.0.1:{port} (")
    assert "--port" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_that_a_viewer_left_is_not_in_the_log_and_every_other_failure_is() -> None:
    async def nothing(*_: object) -> Any:
        return None

    gone = WebSocket({"type": "websocket"}, nothing, nothing)
    gone.application_state = WebSocketState.DISCONNECTED
    with pytest.raises(WebSocketDisconnected) as left:
        gone.receive_bytes().send(None)  # by hand: a browser in the same process has an event loop there
    told = [(type(error), error, None) for error in (left.value, RuntimeError(str(left.value)), ValueError())]
    lines = [
        logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "Exception in ASGI application", None, info)
        for info in (*told, None)
    ]
    assert [is_news(line) for line in lines] == [False, True, True, True]


_LEAVING = """
from starlette.websockets import WebSocket, WebSocketState

receive = WebSocket.receive_bytes

async def find_it_gone(self):
    await receive(self)
    self.application_state = WebSocketState.DISCONNECTED  # as when nobody takes what is sent
    return await receive(self)

WebSocket.receive_bytes = find_it_gone
"""


def test_a_viewer_who_leaves_while_something_is_sent_puts_no_traceback_into_the_pages_log(tmp_path: Path) -> None:
    with served(tmp_path / "lake", tmp_path / "page.log", first=_LEAVING) as address:
        stream = f"{address.replace('http:', 'ws:')}_stcore/stream"
        with connect(stream, origin=Origin(address.rstrip("/")), subprotocols=[Subprotocol("streamlit")]) as viewer:
            viewer.send(b"")
            with suppress(ConnectionClosedError):
                list(viewer)  # until the server closes it


def test_nobody_but_this_machine_is_served_and_nobody_is_told_of_it_unless_asked() -> None:
    given = options(PageSettings())
    assert given["server_address"] == "127.0.0.1"
    assert given["server_allowedHosts"] == ["localhost", "127.0.0.1", "::1"]
    assert options(PageSettings(hosts=("example.org",)))["server_allowedHosts"] == ["example.org"]
    assert given["browser_gatherUsageStats"] is False
    assert given["client_showErrorDetails"] == "none"
    assert options(PageSettings(address="0.0.0.0", port=80, path="watch"))["server_baseUrlPath"] == "watch"


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1", "http://127.0.0.1", 101),
        ("evil.example", "http://evil.example", 403),
        ("127.0.0.1", "http://evil.example", 403),
    ],
)
def test_a_foreign_site_gets_nothing_out_of_a_page_on_loopback(
    address: str, host: str, origin: str, status: int
) -> None:
    # The second name belongs to the foreign site and resolves to 127.0.0.1.
    port = int(address.rstrip("/").rsplit(":", 1)[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest("GET", "/_stcore/stream", skip_host=True)
    for name, value in {
        "Host": f"{host}:{port}",
        "Origin": f"{origin}:{port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": "streamlit",
    }.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()


def test_every_setting_of_the_page_is_explained_in_the_file_with_its_default() -> None:
    text = (ROOT / "conf" / "evenkeel.toml").read_text(encoding="utf-8")
    section = text.split("[page]", 1)[1].split("\n[", 1)[0].split("\n# [[", 1)[0]
    lines = [line.removeprefix("# ") for line in section.splitlines() if " = " in line and line.startswith("# ")]
    assert PageSettings.model_validate(tomllib.loads("\n".join(lines))) == PageSettings()
    assert {line.split(" = ")[0] for line in lines} == set(PageSettings.model_fields)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_every_colour_of_text_can_be_read_on_its_ground() -> None:
    # WCAG 2.1, 1.4.3: 4.5 to 1 for text.
    for palette in (LIGHT, DARK):
        for name in ("text", "quiet", "accent", "bad", "warn", "unsure"):
            assert _contrast(getattr(palette, name), palette.ground) >= 4.5, name
        for name in ("bad", "warn", "unsure"):
            assert _contrast(getattr(palette, name), getattr(palette, f"{name}_ground")) >= 4.5, name
        assert _contrast(palette.ground, palette.bad) >= 4.5
        # WCAG 2.1, 1.4.11: 3 to 1 for graphics.
        assert _contrast(palette.owned, palette.ground) >= 3
