"""`python -m streaming.alerts`: the alerter with the settings of environment and file."""

from __future__ import annotations

import sys

from streaming.alerts.run import main
from streaming.config import load_settings
from streaming.exceptions import SETUP_EXIT_CODE, SetupError
from streaming.lock import ALERTER, only_one

try:
    settings = load_settings()
    with only_one(ALERTER, settings.lake, settings.cluster):
        sys.exit(main(settings))
except SetupError as error:
    sys.stderr.write(f"{error}\n")
    sys.exit(SETUP_EXIT_CODE)
