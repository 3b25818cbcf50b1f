"""`python -m streaming.probe`: the probe with its settings from environment and file."""

from __future__ import annotations

import sys

from streaming.probe.run import main

sys.exit(main())
