"""Start Streamlit with our page and our settings, headless and silent towards everybody but the viewer."""

from __future__ import annotations

import logging
import os
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from dashboards.theme import THEME
from streaming.config import PageSettings, load_settings
from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError, SetupError

__all__ = ["is_news", "main", "options", "serve"]

_OWN_NAMES = ("localhost", "127.0.0.1", "::1")

_PAGE = Path(__file__).parent / "page.py"


def main() -> int:
    """Serve until SIGTERM or SIGINT; failures are one sentence, and their exit code is returned."""
    try:
        serve()
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return SETUP_EXIT_CODE
    except EvenkeelError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def serve(lake: str | None = None, port: int | None = None) -> NoReturn:
    """Serve the page until SIGTERM or SIGINT, and end the process with exit code 0.

    Args:
        lake: The lake; None takes the settings'.
        port: The port; None takes the settings'.

    Raises:
        SetupError: A setting is wrong, or the port is taken.
    """
    # The page's script loads the settings for itself, from the environment of this process.
    if lake is not None:
        os.environ["EVENKEEL_LAKE"] = lake
    if port is not None:
        os.environ["EVENKEEL_PAGE__PORT"] = str(port)
    settings = load_settings()
    _check_port(settings.page)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    from streamlit import net_util  # noqa: PLC0415 - two seconds of imports, not before the port is known
    from streamlit.web import bootstrap  # noqa: PLC0415

    logging.getLogger("uvicorn.error").addFilter(is_news)
    # Streamlit 1.67 asks a host in the network for this machine's address when a foreign site knocks.
    net_util.get_external_ip = lambda: None
    flags = options(settings.page)
    bootstrap.load_config_options(flags)
    host = f"[{settings.page.address}]" if ":" in settings.page.address else settings.page.address
    path = f"/{settings.page.path.strip('/')}" if settings.page.path.strip("/") else ""
    sys.stdout.write(f"the page is at http://{host}:{settings.page.port}{path}, of the tables in {settings.lake}\n")
    sys.stdout.flush()
    bootstrap.run(str(_PAGE), is_hello=False, args=[], flag_options=flags)
    # The thread that reads the lake may be inside DuckDB: an interpreter that is taken down around it complains at
    # length, and there is nothing left to save.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def options(page: PageSettings) -> dict[str, Any]:
    """Streamlit's own options, by their names with "_" for "."; they win over any file of the user's."""
    return {
        "server_address": page.address,
        "server_port": page.port,
        "server_baseUrlPath": page.path,
        "server_allowedHosts": list(page.hosts) or (list(_OWN_NAMES) if page.address in _OWN_NAMES else []),
        "server_headless": True,
        "server_fileWatcherType": "none",
        "server_runOnSave": False,
        "server_showEmailPrompt": False,
        "server_enableStaticServing": False,
        "browser_gatherUsageStats": False,
        "client_toolbarMode": "minimal",
        "client_showErrorDetails": "none",
        "client_showErrorLinks": False,
        "client_showSidebarNavigation": False,
        "global_developmentMode": False,
        "logger_level": "warning",
        "logger_hideWelcomeMessage": True,
        "runner_magicEnabled": False,
        **THEME,
    }


def is_news(record: logging.LogRecord) -> bool:
    """Whether a line of the web server belongs in the log: not that a viewer left just when something was sent.

    (Streamlit 1.67 takes Starlette's `WebSocketDisconnected` for a text frame and fails as it refuses it: two long
    tracebacks, and nobody to whom it matters.)
    """
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or kind.__name__ != "WebSocketDisconnected"


def _check_port(page: PageSettings) -> None:
    """Ask for the port before Streamlit does, which would end without a word on what to do."""
    family = socket.AF_INET6 if ":" in page.address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((page.address, page.port))
    except OSError as error:
        message = (
            f"The page cannot listen on {page.address}:{page.port} ({error.strerror}): end what holds the port, or "
            "choose another with [page] port in evenkeel.toml, EVENKEEL_PAGE__PORT or --port."
        )
        raise SetupError(message) from error
