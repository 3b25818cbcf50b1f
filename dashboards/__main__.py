"""`python -m dashboards`: serve the page, with the same settings as `evenkeel up`."""

from __future__ import annotations

import sys

from dashboards.serve import main

if __name__ == "__main__":
    sys.exit(main())
