"""`python -m dashboards`: serve the page, with the settings of `evenkeel up` and everything else."""

from __future__ import annotations

import sys

from dashboards.serve import main

if __name__ == "__main__":
    sys.exit(main())
