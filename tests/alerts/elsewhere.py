"""An alerter as if on another machine that shares the lake: without the lock of this one, with a token of its own.

python -m tests.alerts.elsewhere NAME PATIENCE_S    # settings from the environment, as `evenkeel alert`
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from streaming.alerts import Alerter, load_rules, open_targets
from streaming.config import load_settings
from streaming.lifecycle import on_stop_signals, set_up_log
from streaming.process.lease import ALERTER, TTL_S, Lease, LeaseObjects


def lease_elsewhere(lake: str, cluster: str, machine: str, clock: Callable[[], float], ttl_s: float = TTL_S) -> Lease:
    """The alerter's lease as on another machine."""
    return Lease(ALERTER, LeaseObjects(lake, f"_locks/{cluster}/{ALERTER}"), clock, ttl_s, machine)


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
