"""`python -m streaming.job`: the job with the settings of environment and file, for a supervisor or spark-submit."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import NoReturn

from streaming.config import load_settings
from streaming.job.log import set_up_log
from streaming.lifecycle import exit_code, room_log
from streaming.process import JOB, only_one

_LOG = room_log("streaming.job")


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
    from streaming.job.session import start_beside  # noqa: PLC0415

    def done(number: int, written: dict[str, int]) -> None:
        _LOG.info("batch %d: %s", number, ", ".join(f"{n} {table}" for table, n in written.items()) or "no rows")

    def work() -> None:
        settings = load_settings()
        with only_one(JOB, settings.lake, settings.cluster) as check:
            session = start_beside(settings, chosen.checkpoint)
            from streaming.job.run import run  # noqa: PLC0415

            run(
                settings,
                available_now=chosen.available_now,
                checkpoint=chosen.checkpoint,
                rebuild_state=chosen.rebuild_state,
                done=done,
                check=check,
                session=session,
            )

    return exit_code(work)


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
