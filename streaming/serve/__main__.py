"""`python -m streaming.serve`: the server, with the settings of the environment; started by `evenkeel up`."""

from __future__ import annotations

import sys

from streaming.config import load_fleet
from streaming.lifecycle import exit_code
from streaming.serve import main

if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(load_fleet())))
