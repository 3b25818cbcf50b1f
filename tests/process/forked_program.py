"""A program that a fork server imports: it prints what it sees of its process, and waits or ends as told."""

from __future__ import annotations

import os
import time

BALLAST = bytes(range(256)) * (32 << 12)
"""32 MB that every fork shares with its server."""


def main() -> int:
    """Print who it is, and what it has of two secrets; wait, or end with the code that it is given."""
    print(f"here {os.getpid()} of {len(BALLAST)}, {os.environ.get('MINE')}, {os.environ.get('HIS')}", flush=True)
    if "CODE" in os.environ:
        return int(os.environ["CODE"])
    time.sleep(600)
    return 0
