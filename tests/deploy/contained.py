"""Runs a program as a container does: as a user without any right, and nothing can be written but its volumes.

    unshare --mount --uts --propagation private python contained.py VOLUME INSTALLED PROGRAM [ARGUMENT ...]

No shell runs. The machine has a name that nobody resolves. `/tmp` is a new and empty volume, VOLUME another one.
INSTALLED and this Python are seen where they were, even below `/tmp` or the home of root, of which nothing else is
seen. The process becomes the program, so a signal reaches it. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import socket
import sys
from pathlib import Path

USER = "65534"
"""`nobody`: it has an entry among the users, as the user of the image has, and no home."""

# What a container gets from its engine, devices and shared memory among it.
_OF_ENGINE = ("/dev", "/proc", "/sys")

_SHELLS = ("/bin/sh", "/bin/bash", "/bin/dash")

# Flags of mount(2).
_READ_ONLY, _REMOUNT, _BIND = 1, 32, 4096


def main() -> None:
    """Cover, make read-only, become the program."""
    volume, installed, *program = sys.argv[1:]
    os.umask(0o022)
    socket.sethostname("contained")
    home = pwd.getpwuid(0).pw_dir
    held = {folder: os.open(folder, os.O_PATH) for folder in (volume, installed, sys.base_prefix)}
    _mount("tmpfs", "/tmp", 0, kind="tmpfs", options="mode=1777")
    _mount("tmpfs", home, 0, kind="tmpfs", options="mode=755")
    for folder, descriptor in held.items():
        Path(folder).mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{descriptor}", folder, _BIND)
        os.close(descriptor)
    for shell in {str(Path(name).resolve()) for name in _SHELLS if Path(name).exists()}:
        _mount("/bin/false", shell, _BIND)
    places = [line.split()[1] for line in Path("/proc/self/mounts").read_text("utf-8").splitlines()]
    for place in dict.fromkeys(places):
        # What was mounted below /tmp and home before is covered.
        is_covered = place.startswith(("/tmp", f"{home}/")) and place not in held
        if place != volume and not is_covered and not place.startswith(_OF_ENGINE):
            _mount("", place, _REMOUNT | _BIND | _READ_ONLY)
    os.chdir(volume)
    as_nobody = ["--reuid", USER, "--regid", USER, "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    os.execvp("setpriv", ["setpriv", *as_nobody, *program])


def _mount(source: str, place: str, flags: int, kind: str = "", options: str = "") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), place.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode() or None):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), place)


if __name__ == "__main__":
    main()
