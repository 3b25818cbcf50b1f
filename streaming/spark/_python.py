"""Let Spark's Python be a fork of a process that has imported what it uses (`_fork_pythons.py`).

`prepared.py` writes this file as `bin/python-…` of the prepared home, so it imports only the standard library. It hands
over its arguments, its environment and its standard files, and lives as long as the fork: what Spark writes to a
daemon's standard input, and reads from its output, are pipes that end with this process. Where nobody forks, and for
what is no module (Spark asks for the version by `-c`), Python starts as anywhere.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import suppress

SERVER = "EVENKEEL_PYTHONS"
"""Variable with the path of the server's socket."""

if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as server, suppress(OSError):
        server.connect(os.environ.get(SERVER, "") if sys.argv[1:2] == ["-m"] else "")
        socket.send_fds(server, [b"f"], [0, 1, 2])
        server.sendall(f"{json.dumps([sys.argv[1:], dict(os.environ)])}\n".encode())
        server.recv(1)
        sys.exit()
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])  # noqa: S606
