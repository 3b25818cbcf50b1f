"""What people do beside the groups of the demo."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from streaming.demo import people
from streaming.exceptions import EvenkeelError, SetupError


class Patient(threading.Event):
    """An event for which nobody waits."""

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        return self.is_set()


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was tried, in order. A mark fails once, and then the first mute twice."""
    tried: list[str] = []
    failing: list[Exception | None] = [SetupError("no lake"), None, EvenkeelError("busy"), OSError("gone"), None, None]

    def attempt(what: str) -> Callable[..., str]:
        def act(*_: object, **__: object) -> str:
            tried.append(what)
            error = failing[len(tried) - 1]
            if error is not None:
                raise error
            return what

        return act

    monkeypatch.setattr(people, "mark", attempt("mark"))
    monkeypatch.setattr(people, "mute", attempt("mute"))
    return tried


def test_a_mark_that_is_written_is_not_written_again_while_the_mute_fails(done: list[str]) -> None:
    people.act("lake", "demo", Patient())
    assert done == ["mark", "mark", "mute", "mute", "mute", "mute"]


def test_nothing_is_tried_once_the_demo_stops(done: list[str]) -> None:
    stop = Patient()
    stop.set()
    people.act("lake", "demo", stop)
    assert done == []
