"""`from assignors import assign` needs only NumPy."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
before = set(sys.modules)
import assignors, assignors.brokers, assignors.rocketmq
roots = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(root for root in roots if root not in sys.stdlib_module_names))
"""


def test_assignors_import_numpy_and_the_standard_library_only() -> None:
    run = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)

    assert set(run.stdout.split()) <= {"assignors", "numpy"}
