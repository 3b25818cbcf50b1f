"""The benchmark of the codec counts only decoded records."""

from __future__ import annotations

import pytest

from tests.benchmarks import decode


def test_every_record_of_the_benchmark_decodes() -> None:
    assert decode.records_per_second(5_000) > 0


def test_a_benchmark_whose_records_do_not_decode_gives_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_records", lambda count: iter([(n, 0, b"junk", b"junk") for n in range(count)]))
    with pytest.raises(RuntimeError, match="did not decode"):
        decode.records_per_second(100)
