"""An alerter as on another machine that shares the lake.

python -m tests.alerts.elsewhere NAME PATIENCE_S    # settings from the environment, as `evenkeel alert`
"""

from __future__ import annotations

import sys
import threading
import time

from streaming.alerts import Alerter, load_rules, open_targets
from streaming.config import load_settings
from streaming.lifecycle import on_stop_signals, set_up_log
from tests.alerts.build import lease_elsewhere


def main(name: str, patience_s: float) -> int:
    """Run until SIGTERM; the exit code is 1 where another one has taken over."""
    set_up_log({})
    settings = load_settings()
    stop = threading.Event()
    turn = lease_elsewhere(settings.lake, settings.cluster, name, time.monotonic, patience_s)
    alerter = Alerter(settings, load_rules(settings.alerts.rules), open_targets(settings), turn=turn)

    def end(_: int) -> None:
        stop.set()
        alerter.wake.set()

    with on_stop_signals(end), alerter:
        return 0 if alerter.run(stop) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
