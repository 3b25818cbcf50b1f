"""Who may work, by a lease in a lake: the rule with a clock of the tests', and two machines with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.exceptions import SetupError
from streaming.process import JOB, MAINTAINER, Lease, LeaseLostError, LeaseStoreError, only_one
from streaming.process.lease import Holder, LeaseObjects, _start_of
from tests.clock import Clock

TTL = 90.0


class Objects(LeaseObjects):
    """A lease in a real folder; the store can be away, lose an answer, or ignore conditions."""

    is_away = loses_answer = ignores_conditions = False

    def numbers(self) -> list[int]:
        self._answer()
        return super().numbers()

    def create(self, number: int, holder: Holder) -> bool:
        self._answer()
        if self.ignores_conditions:
            self.delete(number)
        written = super().create(number, holder)
        if self.loses_answer:
            self.loses_answer, message = False, "the answer was lost"
            raise LeaseStoreError(message)
        return written

    def _answer(self) -> None:
        if self.is_away:
            raise LeaseStoreError("The store does not answer.")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    (tmp_path / "lake").mkdir()
    return Objects(str(tmp_path / "lake"), "_locks/c/job")


LeaseOf = Callable[[str], Lease]


@pytest.fixture
def lease_on(objects: Objects, clock: Clock) -> LeaseOf:
    """A lease as a process of a machine has it."""
    return lambda machine: Lease(JOB, objects, clock, TTL, machine)


def test_a_lease_that_is_renewed_is_never_taken_over(lease_on: LeaseOf, clock: Clock, objects: Objects) -> None:
    one, two = lease_on("one"), lease_on("two")
    assert one.poll()
    for _ in range(50):
        assert not two.poll()
        assert str(two.holder).startswith(f"process {os.getpid()} on ")
        clock.now += TTL / 3
        assert one.poll()
        one.check()
    assert objects.numbers() == [51]


def test_a_candidate_takes_over_after_it_has_watched_for_the_whole_time_itself(lease_on: LeaseOf, clock: Clock) -> None:
    one, two = lease_on("one"), lease_on("two")
    one.poll()
    clock.now += 1_000_000
    assert not two.poll()
    clock.now += TTL - 0.1
    assert not two.poll()
    clock.now += 0.1
    assert two.poll()
    with pytest.raises(LeaseLostError, match=r"taken over \(process \d+ on "):
        one.poll()
    with pytest.raises(LeaseLostError):
        one.check()
    two.check()
    # Who was succeeded releases nothing, and stands by like any other.
    one.release()
    assert not one.poll()


def test_a_holder_has_stopped_before_anybody_can_take_over(lease_on: LeaseOf, objects: Objects, clock: Clock) -> None:
    one, two = lease_on("one"), lease_on("two")
    one.poll()
    two.poll()
    objects.is_away = True
    clock.now += TTL * 2 / 3 - 0.1
    with pytest.raises(LeaseStoreError):
        one.poll()
    one.check()
    clock.now += 0.1
    with pytest.raises(LeaseLostError, match=r"could not be renewed for 60 s"):
        one.check()
    objects.is_away = False
    assert not two.poll()
    assert one.poll()
    one.check()


def test_of_two_that_take_over_at_once_one_wins(lease_on: LeaseOf, objects: Objects, clock: Clock) -> None:
    lease_on("one").poll()
    two, three = lease_on("two"), lease_on("three")
    stale = objects.newest()
    two.poll(), three.poll()
    clock.now += TTL
    assert two.poll()
    objects.newest = lambda: stale  # type: ignore[method-assign]  # it reads before the other has written
    assert not three.poll()
    two.check()


def test_a_candidate_that_stood_still_between_look_and_write_takes_no_number_that_was_in_use(
    lease_on: LeaseOf, objects: Objects, clock: Clock
) -> None:
    one, two = lease_on("one"), lease_on("two")
    one.poll()
    two.poll()
    stale = objects.newest()
    for _ in range(5):
        clock.now += TTL / 3
        one.poll()
    objects.newest = lambda: stale  # type: ignore[method-assign]
    assert not two.poll()
    assert objects.numbers() == [6]
    clock.now += TTL / 3
    assert one.poll()


def test_a_clean_end_leaves_the_lease_to_the_next_at_once(lease_on: LeaseOf) -> None:
    one = lease_on("one")
    one.poll()
    one.release()
    assert lease_on("two").poll()


@pytest.mark.parametrize("step", ["take", "renew"])
def test_a_write_whose_answer_was_lost_is_recognised_and_counts_from_a_later_one(
    step: str, lease_on: LeaseOf, objects: Objects, clock: Clock
) -> None:
    one, two = lease_on("one"), lease_on("two")
    if step == "renew":
        one.poll()
        clock.now += TTL / 3
    objects.loses_answer = True
    with pytest.raises(LeaseStoreError):
        one.poll()
    assert not two.poll()
    clock.now += TTL / 2
    assert one.poll()
    assert one.poll()
    one.check()
    clock.now += TTL / 2
    assert not two.poll()


def test_on_one_machine_a_process_that_has_died_is_succeeded_at_once(lease_on: LeaseOf, objects: Objects) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        started = _start_of(other.pid)
        objects.create(1, Holder("host", "one", other.pid, started, "token"))
        local, remote = lease_on("one"), lease_on("two")
        assert not local.poll()
        assert local.is_local
        assert not remote.poll()
        assert not remote.is_local
    assert not remote.poll()
    assert local.poll()
    # One that has its number since then is another process.
    objects.create(3, Holder("host", "one", os.getpid(), "1", "token"))
    assert lease_on("one").poll()


def test_what_was_watched_counts_at_the_next_try_that_does_not_wait(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    LeaseObjects(str(lake), f"_locks/{MAINTAINER}").create(1, Holder("dead", "another machine", 1, "", "token"))
    told = r"^Another maintainer for the lake .* runs \(process 1 on dead\)"
    with pytest.raises(SetupError, match=told), only_one(MAINTAINER, str(lake), None, wait=False, ttl_s=0.2):
        pass
    time.sleep(0.3)
    with only_one(MAINTAINER, str(lake), None, wait=False, ttl_s=0.2):
        pass


def test_garbage_is_watched_like_a_lease_and_then_succeeded(
    lease_on: LeaseOf, objects: Objects, clock: Clock, tmp_path: Path
) -> None:
    folder = tmp_path / "lake" / "_locks" / "c" / "job"
    folder.mkdir(parents=True)
    (folder / f"{7:020}.json").write_text('{"host": 1}')
    one = lease_on("one")
    assert not one.poll()
    clock.now += TTL
    assert one.poll()
    assert objects.numbers() == [8]


def test_a_store_that_ignores_conditions_is_refused(lease_on: LeaseOf, objects: Objects) -> None:
    objects.ignores_conditions = True
    with pytest.raises(SetupError, match=r"^The store of .*/lake ignores the conditions of writes"):
        lease_on("one").poll()


_HOLDS = """
import logging, os, sys
from streaming.process import lease, only_one
lease._machine = lambda: os.environ["MACHINE"]
logging.basicConfig(level=logging.INFO)
with only_one("job", sys.argv[1], "c", ttl_s=6.0) as check:
    print("held", flush=True)
    sys.stdin.readline()
    check()
print("ended", flush=True)
"""


@contextmanager
def _machine(folder: Path, lake: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a lease as if on a machine of its own."""
    environment, pipe = {**os.environ, "MACHINE": str(folder)}, subprocess.PIPE
    command = [sys.executable, "-c", _HOLDS, lake]
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def _line(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().strip()


@pytest.mark.nightly
@pytest.mark.xdist_group("object_store")
@pytest.mark.parametrize("kind", ["folder", "store"])
def test_of_two_machines_one_works_and_the_other_takes_over_from_the_dead_alone(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake") if kind == "folder" else f"{request.getfixturevalue('s3')}/lake"
    Path(lake).mkdir() if kind == "folder" else None
    with _machine(tmp_path / "one", lake) as first:
        assert _line(first) == "held"
        with _machine(tmp_path / "two", lake) as second:
            said = second.stderr.readline()
            assert f"Standing by: the job for the cluster 'c' with the lake {lake} is process {first.pid} on " in said
            assert said.endswith(" takes over when that one ends, or has not renewed its lease for 6 s.\n")
            first.kill()
            first.wait()
            with _machine(tmp_path / "one", lake) as again:  # the dead one's machine knows that it has ended
                began = time.monotonic()
                assert _line(again) == "held"
                assert time.monotonic() - began < 5
                again.send_signal(signal.SIGSTOP)
                assert _line(second) == "held"
                assert "Took over: this is the job" in second.stderr.readline()
                again.send_signal(signal.SIGCONT)
                _, said = again.communicate("\n")
                assert again.returncode == 1
                assert "lease" in said
            second.communicate("\n")
            assert second.returncode == 0
        with _machine(tmp_path / "three", lake) as third:
            began = time.monotonic()
            assert _line(third) == "held"
            assert time.monotonic() - began < 5
