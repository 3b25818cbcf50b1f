"""Racks that note whether a strategy has read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streaming.groups.classic.leader_metadata import Looked


@pytest.mark.parametrize(
    "read",
    [
        lambda racks: racks["t"],
        lambda racks: racks.get("unknown"),
        lambda racks: "t" in racks,
        list,
        len,
        bool,
        lambda racks: list(racks.items()),
    ],
)
def test_a_strategy_that_reads_anything_of_the_racks_has_looked(read: Callable[[Looked], object]) -> None:
    racks = Looked({"t": (("r1",), ("r2",))})
    assert not racks.at
    read(racks)
    assert racks.at
