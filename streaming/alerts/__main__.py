"""`python -m streaming.alerts`: the alerter with its settings from environment and file."""

from __future__ import annotations

import sys

from streaming.alerts.run import main
from streaming.config import load_settings
from streaming.exceptions import SETUP_EXIT_CODE, SetupError

try:
    sys.exit(main(load_settings()))
except SetupError as error:
    sys.stderr.write(f"{error}\n")
    sys.exit(SETUP_EXIT_CODE)
