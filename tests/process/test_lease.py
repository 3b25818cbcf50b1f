"""Who may work, by a lease in a store: the rule with a clock of the tests', and two machines with a real server."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from streaming.exceptions import SetupError
from streaming.process import keeper
from streaming.process.lease import UNKNOWN, Holder, Lease, LeaseLostError, LeaseStoreError, Stored
from streaming.process.lease_store import ObjectLeaseStore

TTL = 90.0
_AWAY = "The store does not answer."
ONE, TWO = Holder("one", 1, "today", "token-1"), Holder("two", 2, "today", "token-2")


class Store:
    """One object in memory; can be away, and can lose an answer."""

    def __init__(self) -> None:
        self.stored: Stored | None = None
        self.is_away = self.loses_answer = False
        self._versions = itertools.count()

    def read(self) -> Stored | None:
        if self.is_away:
            raise LeaseStoreError(_AWAY)
        return self.stored

    def create(self, content: bytes) -> int | None:
        return self._put(content, None)

    def replace(self, content: bytes, version: object) -> int | None:
        return self._put(content, version)

    def _put(self, content: bytes, expected: object) -> int | None:
        if self.is_away:
            raise LeaseStoreError(_AWAY)
        if expected != (None if self.stored is None else self.stored.version):
            return None
        version = next(self._versions)
        self.stored = Stored(content, version)
        if self.loses_answer:
            self.loses_answer = False
            raise LeaseStoreError(_AWAY)
        return version


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lease_of(store: Store, clock: Clock) -> Callable[[Holder], Lease]:
    return lambda holder: Lease(store, holder, clock, ttl_s=TTL)


LeaseOf = Callable[[Holder], Lease]


def test_a_lease_that_is_renewed_is_never_taken_over(lease_of: LeaseOf, clock: Clock) -> None:
    one, two = lease_of(ONE), lease_of(TWO)
    assert one.attempt() is None
    for _ in range(100):
        assert two.attempt() == ONE
        clock.now += TTL / 3
        one.renew()
        one.check()


def test_a_candidate_takes_over_after_it_has_watched_for_the_whole_time_itself(lease_of: LeaseOf, clock: Clock) -> None:
    one, two = lease_of(ONE), lease_of(TWO)
    one.attempt()
    clock.now += 1_000_000
    assert two.attempt() == ONE
    clock.now += TTL - 0.1
    assert two.attempt() == ONE
    clock.now += 0.1
    assert two.attempt() is None
    with pytest.raises(LeaseLostError, match=r"taken over \(process 2 on two, since today\)"):
        one.renew()
    with pytest.raises(LeaseLostError):
        one.check()
    two.renew()


def test_a_holder_has_stopped_before_anybody_can_take_over(lease_of: LeaseOf, store: Store, clock: Clock) -> None:
    one, two = lease_of(ONE), lease_of(TWO)
    one.attempt()
    two.attempt()
    store.is_away = True
    clock.now += TTL * 2 / 3 - 0.1
    with pytest.raises(LeaseStoreError):
        one.renew()
    one.check()
    clock.now += 0.1
    with pytest.raises(LeaseLostError, match=r"could not be renewed for 60 s"):
        one.check()
    store.is_away = False
    assert two.attempt() == ONE
    one.renew()
    one.check()


def test_of_two_that_take_over_at_once_one_wins(lease_of: LeaseOf, store: Store, clock: Clock) -> None:
    lease_of(ONE).attempt()
    two, three = lease_of(TWO), lease_of(replace(TWO, host="three", token="token-3"))
    stale = store.read()
    two.attempt(), three.attempt()
    clock.now += TTL
    assert two.attempt() is None
    now = store.stored
    store.read = lambda: stale  # type: ignore[method-assign]  # it reads before the other has written
    assert three.attempt() is not None
    assert store.stored == now


def test_a_clean_end_leaves_the_lease_to_the_next_at_once(lease_of: LeaseOf) -> None:
    one = lease_of(ONE)
    one.attempt()
    one.release()
    assert lease_of(TWO).attempt() is None


def test_who_was_succeeded_releases_nothing(lease_of: LeaseOf, clock: Clock) -> None:
    one, two = lease_of(ONE), lease_of(TWO)
    one.attempt()
    two.attempt()
    clock.now += TTL
    assert two.attempt() is None
    one.release()
    assert lease_of(ONE).attempt() == TWO


@pytest.mark.parametrize("step", ["attempt", "renew"])
def test_a_write_whose_answer_was_lost_is_recognised_and_counts_from_a_later_one(
    step: str, lease_of: LeaseOf, store: Store, clock: Clock
) -> None:
    one, two = lease_of(ONE), lease_of(TWO)
    if step == "renew":
        one.attempt()
    store.loses_answer = True
    with pytest.raises(LeaseStoreError):
        getattr(one, step)()
    assert two.attempt() == ONE
    clock.now += TTL / 2
    if step == "renew":
        with pytest.raises(LeaseStoreError):  # it learns the version of its own write
            one.renew()
        one.renew()
    else:
        assert one.attempt() is None
    clock.now += TTL / 2
    assert two.attempt() == ONE
    one.check()


def test_a_holder_that_is_known_to_have_ended_is_succeeded_at_once(store: Store, clock: Clock) -> None:
    Lease(store, ONE, clock).attempt()
    assert Lease(store, TWO, clock, lambda token: token == "another").attempt() == ONE
    assert Lease(store, TWO, clock, lambda token: token == ONE.token).attempt() is None


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"host": 1, "pid": "x"}',
        b'{"host": "h", "pid": Infinity, "since": "s", "token": "t", "released": false}',
        b'{"host": "h", "pid": 1, "since": "s", "token": "t", "released": 1}',
    ],
)
def test_garbage_is_watched_like_a_lease_and_then_replaced(
    garbage: bytes, lease_of: LeaseOf, store: Store, clock: Clock
) -> None:
    store.stored = Stored(garbage, "garbage")
    one = lease_of(ONE)
    assert one.attempt() is not None
    clock.now += TTL
    assert one.attempt() is None


def test_what_others_write_into_a_lease_is_shown_short_and_harmless(lease_of: LeaseOf, store: Store) -> None:
    said = {"host": "h\x1b[2J" * 1000, "pid": 1, "since": "\n", "token": "", "released": False}
    store.stored = Stored(json.dumps(said).encode(), "x")
    shown = str(lease_of(ONE).attempt())
    assert len(shown) < 200
    assert shown.isprintable()
    assert UNKNOWN.token == ""


class Careless(Store):
    """A store that ignores the conditions of writes."""

    def _put(self, content: bytes, expected: object) -> int | None:  # noqa: ARG002 - it ignores it
        return super()._put(content, None if self.stored is None else self.stored.version)

    honours_conditions = ObjectLeaseStore.honours_conditions


def test_a_store_that_ignores_conditions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "ObjectLeaseStore", lambda _lake, _path: Careless())
    wanted = keeper.WantedLease("s3://b/lake", "x", keeper.Loss.END, wait=False)
    told = "^The store of s3://b/lake ignores the conditions of writes"
    with (
        pytest.raises(SetupError, match=told),
        keeper.leased(wanted, lambda _: False, lambda _: None),
    ):
        pytest.fail("it must not be held")


_HOLDS = """
import functools, logging, sys
from streaming.process import lock
lock.leased = functools.partial(lock.leased, ttl_s=6.0)
logging.basicConfig(level=logging.INFO)
what, lake = sys.argv[1:]
with lock.only_one(what, lake, "c") as check:
    print("held", flush=True)
    sys.stdin.readline()
    check()
print("ended", flush=True)
"""


@contextmanager
def _machine(folder: Path, lake: str, what: str = "job") -> Iterator[subprocess.Popen[str]]:
    """A process that holds a lease as if on a machine of its own: with other locks, but the same store."""
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(folder)}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", _HOLDS, what, lake]
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.xdist_group("object_store")
def test_of_two_machines_one_holds_it_and_the_other_takes_over_from_the_dead_alone(s3: str, tmp_path: Path) -> None:
    lake = f"{s3}/lake"
    with _machine(tmp_path / "one", lake) as first:
        assert _line(first) == "held"
        with _machine(tmp_path / "two", lake) as second:
            _, told = second.communicate()
        assert second.returncode == 1
        assert f"Another job runs for the cluster 'c' with the lake {lake} (process {first.pid} on " in told
        first.kill()
        first.wait()
        began = time.monotonic()
        with _machine(tmp_path / "one", lake) as again:  # the dead one's machine knows that it has ended
            assert _line(again) == "held"
            assert time.monotonic() - began < 5
            again.send_signal(signal.SIGSTOP)
            with _machine(tmp_path / "two", lake) as second:
                assert _line(second) == "held"
                again.send_signal(signal.SIGCONT)
                _, told = again.communicate("\n")
                assert again.returncode == 1
                assert "lease" in told
                assert second.communicate("\n")[0].strip() == "ended"
        with _machine(tmp_path / "three", lake) as third:
            began = time.monotonic()
            assert _line(third) == "held"
            assert time.monotonic() - began < 5
