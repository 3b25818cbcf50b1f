"""The outcomes of attempts are each written once, whatever a commit reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streaming.alerts.decisions import Decisions
from streaming.alerts.delivery import deliveries as module
from streaming.alerts.delivery.deliveries import Deliveries
from streaming.alerts.delivery.items import DELIVERED, Delivery, notice
from streaming.tables import LakeReader
from tests.alerts.build import START, Writer

Append = Callable[..., bool]


def made_and_reported_as_failed(append: Append) -> Append:
    def appended(*given: Any) -> bool:
        append(*given)
        raise ConnectionResetError

    return appended


def not_made(_: Append) -> Append:
    def refused(*_: Any) -> bool:
        raise ConnectionResetError

    return refused


def delivered(name: str) -> Delivery:
    return Delivery(notice("c", "report", name, START), "ops", 1, DELIVERED, None, 5, START)


@pytest.mark.parametrize("failing", [made_and_reported_as_failed, not_made])
def test_after_a_commit_that_failed_each_outcome_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: Callable[[Append], Append]
) -> None:
    lake = Writer(tmp_path).root
    Decisions(lake, "c")
    deliveries = Deliveries(lake, "c")
    deliveries.write([delivered("a")])
    with monkeypatch.context() as patched:
        patched.setattr(module, "append_once", failing(module.append_once))
        with pytest.raises(ConnectionResetError):
            deliveries.write([delivered("b")])
    deliveries.write([delivered("b"), delivered("c")])
    deliveries.write([delivered("d")])
    rows = LakeReader(lake).rows("SELECT transition_id, outcome FROM alert_deliveries ORDER BY transition_id")
    assert rows == [{"transition_id": name, "outcome": DELIVERED} for name in "abcd"]
