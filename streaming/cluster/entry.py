"""The job as a file, as `spark-submit` wants it.

`streaming/job/__main__.py` is none: run by its path, the `operator.py` beside it would come before Python's own.
"""

from __future__ import annotations

import sys

from streaming.job.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
