"""What a reader sees of an answer: its tags, links and text."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

from tests.serve.client import Answer
from tests.serve.conftest import Served


class Seen(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def links(self) -> list[str]:
        return [attrs["href"] or "" for tag, attrs in self.tags if tag == "a" and "href" in attrs]


def answered(served: Served, target: str) -> Answer:
    """The answer of a board that waits no longer for its older rows: they are there, or it cannot be shown."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        answer = served.get(target)
        if "Older rows are being read" not in answer.text:
            return answer
        # A rendering is kept until something changes.
        served.model.lake.forget()
    raise AssertionError(f"{target} never had its older rows")


def shown(served: Served, target: str) -> str:
    """A board once its older rows are there."""
    answer = answered(served, target)
    assert answer.status == 200, (target, answer.text[-900:])
    return answer.text


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())
