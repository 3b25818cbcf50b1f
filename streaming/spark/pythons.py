"""The server that forks Spark's Python processes on this machine (`_fork_pythons.py`), one for each process of ours."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from streaming.process import SAFE_PATH
from streaming.spark._python import SERVER


@cache
def fork_pythons(python: Path, imports: tuple[str, ...]) -> tuple[object, ...]:
    """Let the sessions that this process starts from now on fork their Python processes, as long as this one lives.

    Args:
        python: The program that asks for a fork (`_python.py`).
        imports: Modules that all of them share.

    Returns:
        What must be kept while they are forked.
    """
    folder = tempfile.TemporaryDirectory(prefix="evenkeel-")
    with socket.socket(socket.AF_UNIX) as listening:
        path = str(Path(folder.name, "pythons"))
        listening.bind(path)
        listening.listen()
        process = subprocess.Popen(
            [sys.executable, "-m", "streaming.spark._fork_pythons", str(listening.fileno()), *imports],
            stdin=subprocess.PIPE,
            # As Spark starts them. NumPy's library and Arrow would start threads, which a fork is without.
            env=os.environ | SAFE_PATH | {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
            pass_fds=[listening.fileno()],
            start_new_session=True,
        )
    os.environ |= {"PYSPARK_PYTHON": str(python), SERVER: path}
    return folder, process
