"""Fork the Python processes of a Spark session: they share the memory of what they import.

    python -m streaming.spark._fork_pythons LISTENING MODULE ...

Imports the modules, in a single thread, because a fork has only the thread that forks. Then each connection to the
socket with the file descriptor LISTENING gets a fork, which takes arguments, environment and standard files from
`_python.py` and runs as if `python -m` had started it. It ends when its standard input does: its starter is gone.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Sequence

_F_SETSIG = 10
"""Linux's fcntl(2) command: what a socket that hangs up sends."""


def serve(listening: int, modules: Sequence[str]) -> None:
    """Fork whenever somebody asks; returns in forks that have run, and when nobody can ask any more."""
    for module in modules:
        importlib.import_module(module)
    # What is never collected is never written to, and stays shared.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that no fork becomes a zombie
    with socket.socket(fileno=listening) as server:
        while select.select([0, listening], [], [])[0] != [0]:
            asking = server.accept()[0]
            if os.fork() == 0:
                server.close()
                _run(asking)
                return
            asking.close()


def _run(asking: socket.socket) -> None:
    """Be the process that asks, which waits until `asking` is closed: until nothing of this process is left.

    When that one is killed, this one gets SIGTERM.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ends = socket.recv_fds(asking, 1, 3)[1]
    with asking.makefile("rb") as lines:
        (_, module, *arguments), environment = json.loads(lines.readline())
    fcntl.fcntl(asking, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(asking, _F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(asking, fcntl.F_SETFL, os.O_ASYNC)
    for standard, end in enumerate(ends):
        os.dup2(end, standard)
        os.close(end)
    os.environ.clear()
    os.environ.update(environment)
    # Where a session's own settings name more folders than this process was started with: users' strategies, say.
    named = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path += [folder for folder in named if folder and folder not in sys.path]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
