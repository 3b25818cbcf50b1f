"""`python -m streaming.alerts`: the alerter with its settings from environment and file."""

from __future__ import annotations

import sys

from streaming.alerts.commands import main
from streaming.config import load_settings
from streaming.lifecycle import exit_code

sys.exit(exit_code(lambda: main(load_settings())))
