"""Links on a board."""

from __future__ import annotations

from typing import Any

import pytest

from dashboards import html as board


def test_a_click_that_is_heard_twice_does_not_undo_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, Any] = {}
    monkeypatch.setattr(board.st, "session_state", session)

    def hear(at: int, **asked: str) -> dict[str, str] | None:
        session["overview"] = {"go": {"at": at, "cluster": "", **asked}}
        board._go("overview")
        went: dict[str, str] | None = session.pop("go", None)
        return went

    assert hear(1_000, show="warning") == {"show": "warning"}
    assert hear(2_000, show="") == {}
    assert hear(1_000, show="warning") is None
    assert hear(3_000, group="orders") == {"group": "orders"}
    assert session["went"] == 3_000
