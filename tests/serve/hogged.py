"""A server's page and alerter in one process, while page queries take every core and all the memory they may have.

python -m tests.serve.hogged    # settings from the environment; prints a line when the queries run
"""

from __future__ import annotations

import threading
from datetime import timedelta

from dashboards.lake import PageLake
from dashboards.query import Query
from streaming.alerts import AlerterFleet
from streaming.config import load_settings

_HOG = "SELECT count(DISTINCT a.range * b.range) FROM range(1000000000) AS a, range(1000000000) AS b, rounds"


def main() -> None:
    """Run until the process is killed."""
    settings = load_settings()
    hog = Query("hog", _HOG, _HOG, frozenset(), frozenset({"rounds"}), frozenset({"cluster"}))
    hour = timedelta(hours=1)
    lake = PageLake(settings.lake, hour, hour, timedelta(seconds=1), more={"hog": hog})
    lake.poll()
    lake.start()
    threads = [threading.Thread(target=lake.ask, args=("hog",), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    AlerterFleet([settings]).start()
    print("hogged", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
