"""The rows of a batch, from the operator's bytes to the append."""

from __future__ import annotations

import pytest

from streaming.groups import GapRow, RoundRow, Rows, encode_rows
from streaming.job.unpack import rows_by_table
from streaming.tables import table_named, to_arrow


def gap(number: int) -> GapRow:
    return GapRow("c", "log", "t", number, 2, 3, None, None, "gone")


ROUND = RoundRow("c", None, 1, 1_000, 0, 1_001, 10_000, "p", 3, 4, 5, 0, 6, 0, 1, 10_080)


@pytest.mark.parametrize("at_once", [1, 2, 3, 1_000])
def test_rows_come_in_their_order_however_many_are_unpacked_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("streaming.job.unpack._UNPACKED", at_once)
    parts = [[gap(1), gap(2)], [gap(3)], [], [gap(4), gap(5), gap(6)]]
    packed = [encode_rows(Rows(gaps=part)) for part in parts] + [encode_rows(Rows(rounds=[ROUND]))]

    tables = rows_by_table(packed)

    assert set(tables) == {"gaps", "rounds"}
    assert tables["gaps"]["partition"].to_pylist() == [1, 2, 3, 4, 5, 6]
    plain = [[getattr(gap(n), name) for name in GapRow.__struct_fields__] for n in range(1, 7)]
    assert tables["gaps"].equals(to_arrow(table_named("gaps"), plain))


def test_no_rows_are_no_tables() -> None:
    assert rows_by_table([encode_rows(Rows())]) == rows_by_table([]) == {}
