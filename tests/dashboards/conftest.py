"""A real browser for the page, with a record of its errors and requests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.programs import BROWSERS

# Long enough for a machine that runs other tests at the same time; waits end as soon as their condition holds.
PATIENCE_MS = 90_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the whole run, from the system's packages."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: install one of {', '.join(BROWSERS)} (make test does, as root on Debian)")
    with sync_playwright() as playwright:
        # As root, as in a container, Chromium must run without the sandbox; it shows only our own pages.
        # Without a graphics card another process would imitate one.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        running = playwright.chromium.launch(executable_path=found, args=arguments)
        yield running
        running.close()


@dataclass
class Seen:
    """What a browser complained of (violations of the content policy, too), foreign requests, pop-ups, cookies."""

    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    cookies: list[Any] = field(default_factory=list)


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open an address; afterwards there must be no complaints, requests to foreign hosts, pop-ups or cookies."""
    seen = Seen()
    contexts = []

    def open_page(address: str, *, ready: str = "main > *", expected: tuple[str, ...] = (), **options: Any) -> Page:
        """A page in a browser of its own.

        Args:
            address: What to open.
            ready: Selector of what must be there.
            expected: Parts of the complaints that the test causes.
            options: Options of the browser: `timezone_id`, `color_scheme`, `viewport`, ...
        """
        defaults = {"viewport": {"width": 1440, "height": 900}, "timezone_id": "Europe/Berlin"}
        context = browser.new_context(**(defaults | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        ours = "/".join(address.split("/")[:3]) + "/"

        def complain(text: str) -> None:
            if not any(part in text for part in expected):
                seen.complaints.append(text)

        page.on("console", lambda m: complain(m.text) if m.type in {"error", "warning"} else None)
        page.on("pageerror", lambda e: complain(str(e)))
        page.on("request", lambda r: None if r.url.startswith(ours) else seen.foreign.append(r.url))
        page.on("dialog", lambda d: (seen.dialogs.append(d.message), d.dismiss()))
        page.goto(address, timeout=PATIENCE_MS)
        page.wait_for_selector(ready)
        return page

    yield open_page
    for context in contexts:
        seen.cookies += context.cookies()
        context.close()
    assert seen == Seen()
