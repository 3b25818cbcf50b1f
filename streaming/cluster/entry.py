"""The job as a file, which `spark-submit` needs.

`streaming/job/__main__.py` cannot be that file: if it is run by its path, the `operator.py` beside it hides Python's.
"""

from __future__ import annotations

import sys

from streaming.job.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
