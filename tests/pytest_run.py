"""A run of pytest with this suite's conftest, over test modules that a test has written into a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["run_pytest"]

_TESTS = Path(__file__).resolve().parent


def run_pytest(folder: Path, processes: int, fixtures: str = "") -> subprocess.CompletedProcess[str]:
    """Run it.

    Args:
        folder: With the test modules; becomes the working folder.
        processes: How many share the tests; 0 for none beside pytest itself.
        fixtures: Python that is added to the conftest.
    """
    (folder / "conftest.py").write_text((_TESTS / "conftest.py").read_text("utf-8") + fixtures, "utf-8")
    shared = ["-n", str(processes), "--dist", "loadgroup", "-o", "markers=turn: when"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *shared],
        cwd=folder,
        env={"PYTHONPATH": str(_TESTS.parent), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
