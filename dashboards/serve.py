"""Start Streamlit with our page and settings, headless, without telemetry or requests to other hosts."""

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
    """Serve until SIGTERM or SIGINT; a failure is printed as one sentence, and its exit code is returned."""
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
        lake: Folder or URI of the lake; None takes the settings' value.
        port: Port of the page; None takes the settings' value.

    Raises:
        SetupError: A setting is wrong, or the port is taken.
    """
    # The page's script loads the settings itself, from the environment of this process.
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
    # Streamlit 1.67 asks an external host for this machine's address when a request comes from a foreign site.
    net_util.get_external_ip = lambda: None
    flags = options(settings.page)
    bootstrap.load_config_options(flags)
    host = f"[{settings.page.address}]" if ":" in settings.page.address else settings.page.address
    path = f"/{settings.page.path.strip('/')}" if settings.page.path.strip("/") else ""
    sys.stdout.write(f"the page is at http://{host}:{settings.page.port}{path}, of the tables in {settings.lake}\n")
    sys.stdout.flush()
    bootstrap.run(str(_PAGE), is_hello=False, args=[], flag_options=flags)
    # The thread that reads the lake may be inside DuckDB: shutting the interpreter down around it prints long errors,
    # and there is nothing left to save.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def options(page: PageSettings) -> dict[str, Any]:
    """Streamlit's options; "_" stands for the "." in their names. They win over any file of the user's."""
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
    """Whether a line of the web server belongs in the log; a viewer who left during a send does not.

    (Streamlit 1.67 takes Starlette's `WebSocketDisconnected` for a text frame and fails while refusing it: two long
    tracebacks without any use.)
    """
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or kind.__name__ != "WebSocketDisconnected"


def _check_port(page: PageSettings) -> None:
    """Check the port before Streamlit does, which would end without saying what to do."""
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
