"""Each test of the settings starts in an empty folder, without settings in the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("EVENKEEL_") and name != "EVENKEEL_CACHE":
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
