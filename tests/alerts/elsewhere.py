"""An alerter as if on another machine that shares the lake: without the lock of this one, with a token of its own.

python -m tests.alerts.elsewhere NAME PATIENCE_S    # settings from the environment, as `python -m streaming.alerts`
"""

from __future__ import annotations

import sys
import threading
import time

from streaming.alerts import Alerter, load_rules, open_targets
from streaming.alerts.standby import AlerterTurn, token_of
from streaming.config import load_settings
from streaming.lifecycle import on_stop_signals, set_up_log


def main(name: str, patience_s: float) -> int:
    """Run until SIGTERM; the exit code is 1 where another one has taken over."""
    set_up_log({})
    settings = load_settings()
    stop = threading.Event()
    turn = AlerterTurn(settings.lake, settings.cluster, time.monotonic, token_of(name), patience_s, patience_s / 4)
    alerter = Alerter(settings, load_rules(settings.alerts.rules), open_targets(settings), turn=turn)

    def end(_: int) -> None:
        stop.set()
        alerter.wake.set()

    with on_stop_signals(end), alerter:
        return 0 if alerter.run(stop) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
