"""Programs under real guards, for one test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import streaming.process.guarded
from streaming.process import Programs
from tests.process.kept import REST_S, Kept


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    # A program that has run for a second counts as started; small logs, so that they rotate.
    monkeypatch.setattr(streaming.process.guarded, "_LOG_BYTES", 20_000)
    said: list[str] = []
    environment = {"EVENKEEL_KAFKA__SASL_PASSWORD": "it's a 100% secret; #really"}
    with Programs(tmp_path / "logs", environment, said.append, rest_s=REST_S, well_s=1.0) as programs:
        yield Kept(programs, said, tmp_path / "logs")
