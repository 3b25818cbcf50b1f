"""A few bytes that decompress to many: a writer must not be able to fill a reader's memory, or to stop it.

The limits apply to the address space of a separate process (`under_limit.py`), so the tests really measure it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space of a process"),
    pytest.mark.turn(3),
]


def under_limit(scenario: str, *arguments: str) -> dict[str, Any]:
    """Run a scenario in a process with little memory."""
    path = str(ROOT)
    # (Each thread of a pool reserves address space for its stack and arena.)
    few_threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    env = os.environ | few_threads | {"PYTHONPATH": path}
    run = subprocess.run(
        [sys.executable, "-m", "tests.job.source.under_limit", scenario, *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4_000:]
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.nightly
def test_millions_of_junk_records_are_a_hundred_rows_and_a_count() -> None:
    found = under_limit("junk_in_the_log")
    assert (found["kept"], found["counted"]) == ({"__consumer_offsets": 101}, {"__consumer_offsets": 1_999_899})
    assert found["reasons"] == {"__consumer_offsets": ["key is null; every record of the offsets log has a key"]}


def test_broken_records_with_large_keys_are_a_hundred_rows_and_a_count() -> None:
    found = under_limit("keys_in_the_log")
    assert (found["kept"], found["counted"]) == ({"__consumer_offsets": 101}, {"__consumer_offsets": 10_899})
