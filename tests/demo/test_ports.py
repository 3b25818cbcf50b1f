"""Each port is given to one caller only, also between processes."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from streaming.demo import ports
from streaming.demo.ports import free_port

_CHILD = """\
import sys
from streaming.demo import ports
wanted = int(sys.argv[1])
drawn = iter([wanted])
chance = ports._RANDOM.randint
ports._RANDOM.randint = lambda first, last: next(drawn, None) or chance(first, last)
print(ports.free_port(), flush=True)
sys.stdin.read()
"""
"""Draws a given number first; ends with its input."""


def _draw(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Let the next random numbers be these."""
    drawn, chance = iter(numbers), random.SystemRandom()
    monkeypatch.setattr(ports._RANDOM, "randint", lambda first, last: next(drawn, None) or chance.randint(first, last))


def test_a_choice_of_ports_leaves_seeded_random_numbers_as_they_were() -> None:
    before = random.getstate()
    assert 20_000 <= free_port(neighbours=2) <= 32_000
    assert random.getstate() == before


def test_a_number_drawn_twice_is_given_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    _draw(monkeypatch, port, port)
    assert free_port() != port


def test_ports_below_that_a_server_takes_as_well_are_given_out_with_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port(neighbours=2)
    _draw(monkeypatch, port - 2, port - 1)
    assert free_port() not in range(port - 2, port + 1)
    _draw(monkeypatch, port + 2)
    assert free_port(neighbours=2) != port + 2


def test_another_process_gets_a_port_only_after_its_holder_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = free_port()
    command = [sys.executable, "-c", _CHILD, str(ours)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        theirs = int(child.stdout.readline())
        assert theirs != ours
        _draw(monkeypatch, theirs)
        assert free_port() != theirs
    _draw(monkeypatch, theirs)
    assert free_port() == theirs
