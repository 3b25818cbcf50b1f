"""Fork programs that share the memory of what they import: ten of them cost little more than two.

    python -m streaming.process._fork_server MODULE

Imports the module and waits, in a single thread, because a fork has only the thread that forks. The starter sends ends
of sockets over the one on standard input. For each it forks a guard (`_guard.py`) with that as its standard input and
output, and the guard forks the program: the module's `main`. A guard's first order is a line of JSON, with the
program's name, log, and environment. So this process never has a program's secrets.

It ends when its starter closes the socket or is gone. When it is killed, each guard ends its program.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable

from streaming.process._guard import die_with_the_guard, guard

_FORK = multiprocessing.get_context("fork")

_PR_SET_NAME = 15
"""Linux's prctl(2) option: forks have one command line, so `ps -o comm` tells them apart."""


def serve(module: str) -> None:
    """Fork whatever is asked for until nobody can ask any more."""
    main = importlib.import_module(module).main
    # What is never collected is never written to, and stays shared.
    gc.collect()
    gc.freeze()
    # It looks for children that have ended, and so leaves no zombies.
    signal.signal(signal.SIGCHLD, lambda *_: multiprocessing.active_children())
    with socket.socket(fileno=0) as starter:
        while ends := socket.recv_fds(starter, 1, 1)[1]:
            _FORK.Process(target=_guarded, args=(main, *ends)).start()
            os.close(*ends)


def _guarded(main: Callable[[], int], end: int) -> None:
    """Guard one program, until it has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for standard in (0, 1):
        os.dup2(end, standard)
    with os.fdopen(end, "rb", 0) as orders:  # unbuffered: what follows is for the guard
        line = orders.readline()
    if not line:
        return  # the starter is gone
    name, log, log_bytes, environment = json.loads(line)
    os.environ.clear()
    os.environ.update(environment)
    output, its = os.pipe()
    program = _FORK.Process(target=_program, args=(main, name, its))
    program.start()
    os.close(its)

    def wait() -> int:
        program.join()
        return program.exitcode or 0

    code = guard(program.pid or 0, program.terminate, wait, output, log, log_bytes)
    os.write(1, f"{code}\n".encode())


def _program(main: Callable[[], int], name: str, output: int) -> None:
    os.setpgid(0, 0)
    die_with_the_guard()
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())
    # Not the guard's end of the socket: what the program starts would hold it open, and hide that the guard was killed.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for standard in (1, 2):
        os.dup2(output, standard)
    sys.exit(main())


if __name__ == "__main__":
    serve(sys.argv[1])
