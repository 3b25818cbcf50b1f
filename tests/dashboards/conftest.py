"""A real browser for the page, with a record of its errors and requests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

# (The first is Chromium without windows, toolbars and the like: a page takes half the processor time.)
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

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
    """A browser's errors, and its requests to foreign hosts."""

    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


@pytest.fixture
def look(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open an address; afterwards there must be no errors, requests to foreign hosts, or pop-ups."""
    seen = Seen()
    contexts = []

    def open_page(
        address: str,
        *,
        zone: str = "Europe/Berlin",
        scheme: str = "light",
        ready: str = ".groups",
        before: Callable[[Page], None] | None = None,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": 1440, "height": 900},
            timezone_id=zone,
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        own = address.split("?", maxsplit=1)[0].rstrip("/")
        ours = (own, own.replace("http:", "ws:"), f"blob:{own}", "data:")
        page.on("console", lambda m: seen.complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: seen.complaints.append(str(e)))
        page.on("request", lambda r: None if r.url.startswith(ours) else seen.foreign.append(r.url))
        page.on("dialog", lambda d: (seen.dialogs.append(d.message), d.dismiss()))
        if before is not None:
            before(page)
        page.goto(address, timeout=PATIENCE_MS)
        page.wait_for_selector(ready)
        # On a busy machine the boards may be ready before the page's own style, which moves them.
        expect(page.get_by_test_id("stMainBlockContainer")).to_have_css("padding-left", "36px", timeout=PATIENCE_MS)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert seen == Seen()
