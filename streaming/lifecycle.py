"""What all our processes do alike: their log, their end by a signal, and the exit code of a failure."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from queue import SimpleQueue
from typing import Final

from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError, SetupError

SUPERVISOR: Final = "EVENKEEL_SUPERVISOR"
"""The variable that names what starts a process again when it has died, and never two of them at a time.

Who supervises sets it, fresh at each start of its own (`process/programs.py`), or a person for another supervisor. It
is no setting: in a file it would hold for every machine.
"""


def set_up_log(libraries: Mapping[str, int]) -> None:
    """Log to standard error, from INFO on; a library's logger from its own level on."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name, level in libraries.items():
        logging.getLogger(name).setLevel(level)


def room_log(module: str) -> logging.Logger:
    """The logger that all modules of a room share: `streaming.alerts` for `streaming.alerts.run`."""
    return logging.getLogger(".".join(module.split(".")[:2]))


@contextmanager
def on_signals(ask: Callable[[int], object], *numbers: signal.Signals) -> Iterator[None]:
    """Call a function with the number of each of these signals, in a thread of its own, instead of what they do.

    Not in the handler: that runs in the middle of whatever the main thread does, perhaps while this holds the lock of
    the very `threading.Event` that `ask` is about to set. Then both would wait for ever. (A `SimpleQueue` may be put to
    from a handler: its documentation says so.)
    """
    asked: SimpleQueue[int | None] = SimpleQueue()

    def pass_on() -> None:
        while (number := asked.get()) is not None:
            ask(number)

    thread = threading.Thread(target=pass_on, name="signals", daemon=True)
    thread.start()
    before = {number: signal.signal(number, lambda number, _frame: asked.put(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        asked.put(None)
        thread.join()


def on_stop_signals(ask: Callable[[int], object], *more: signal.Signals) -> AbstractContextManager[None]:
    """`on_signals` for SIGINT, SIGTERM, and some more."""
    return on_signals(ask, signal.SIGINT, signal.SIGTERM, *more)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Turn SIGINT and SIGTERM into an event."""
    stop = threading.Event()
    with on_stop_signals(lambda _: stop.set()):
        yield stop


def exit_code(run: Callable[[], int | None]) -> int:
    """Run a process's work; returns its exit code. A failure of ours is one sentence on standard error."""
    try:
        return run() or 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except EvenkeelError as error:
        sys.stderr.write(f"{error}\n")
        if isinstance(error, SetupError):
            return SETUP_EXIT_CODE
        return 1
