"""`python -m streaming.job`: the job with the settings of environment and file, for a supervisor or spark-submit."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import NoReturn

from streaming.config import load_fleet
from streaming.job.log import set_up_log
from streaming.lifecycle import exit_code


def main(arguments: list[str] | None = None) -> int:
    """Run the job; returns the exit code: 0 stopped, 1 the query failed, 2 a person must act first."""
    parser = argparse.ArgumentParser(prog="python -m streaming.job", description=__doc__)
    parser.add_argument("--available-now", action="store_true", help="process what is there now and exit")
    parser.add_argument(
        "--checkpoint", help="folder of the checkpoint, instead of job.checkpoint or the one in the lake"
    )
    parser.add_argument("--rebuild-state", action="store_true", help="move the checkpoint aside, and read again")
    chosen = parser.parse_args(arguments)
    set_up_log()  # before the imports below, which already log
    from streaming.job.fleet import run_fleet  # noqa: PLC0415

    return exit_code(
        lambda: run_fleet(
            load_fleet(),
            available_now=chosen.available_now,
            checkpoint=chosen.checkpoint,
            rebuild_state=chosen.rebuild_state,
        )
    )


def _end(code: int) -> NoReturn:
    """End the process with this code.

    After a failure a thread may still be in native code, as when the JVM is gone. An interpreter that is finalized
    under it aborts (SIGABRT), and the end would look like a crash. So it is not finalized.
    """
    if not code:
        sys.exit()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _end(main())
