"""Signals that end our processes in order."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from streaming.exceptions import EvenkeelError, SetupError
from streaming.lifecycle import exit_code, on_signals, stop_signals


def test_a_signal_in_the_middle_of_a_wait_is_no_deadlock() -> None:
    with stop_signals() as stop:
        # What `Event.wait` holds for some microseconds, whenever it begins and ends.
        with stop._cond:  # type: ignore[attr-defined]
            os.kill(os.getpid(), signal.SIGTERM)
            assert not stop.is_set()
        assert stop.wait(60)


def test_each_signal_is_passed_on_and_its_handler_put_back() -> None:
    came: list[int] = []
    two = threading.Semaphore(0)

    def ask(number: int) -> None:
        came.append(number)
        two.release()

    before = signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGUSR2)
    with on_signals(ask, signal.SIGUSR1, signal.SIGUSR2):
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1):
            os.kill(os.getpid(), number)
            assert two.acquire(timeout=60)
    assert came == [signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1]
    assert (signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGUSR2)) == before


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (EvenkeelError("It failed."), 1, "It failed.\n"),
        (SetupError("Mend it."), 2, "Mend it.\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_a_process_ends_with_a_sentence_or_by_ctrl_c_without_a_word(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        raise error

    assert exit_code(work) == code
    assert capsys.readouterr().err == said
