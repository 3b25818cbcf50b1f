"""Kafka Connect's real classes of three releases and ours: same cluster, same decision, through chains of rebalances.

Workers come, leave, miss a decision and return; connectors and tasks are added and deleted; time passes; the leader
changes. 600 cases; the environment variable CASES sets another number: 20,000 in `make test-all`.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from assignors.connect import CONNECTOR, LeaderMemory, Unit, assign_eagerly, assign_incrementally
from tests.examples import by_day
from tests.oracle.java_connect import RELEASES, Connect, DealCase

CASES = int(os.environ.get("CASES", "600"))
pytestmark = [pytest.mark.java, pytest.mark.timeout(0 if CASES > 20_000 else 300)]

_STEPS = 12


class _Chain:
    """A cluster of workers with one leader, whose memory is kept here and in Java."""

    def __init__(self, random: Random, number: int, release: str) -> None:
        self.random, self.release = random, release
        self.case = DealCase(number, 1_000, random.choice((0, 500, 300_000)), False, 1, frozenset(), {})
        self.memory = LeaderMemory()
        self.born = 0

    def step(self) -> DealCase:
        """The next rebalance."""
        random, case = self.random, self.case
        running = {worker: list(units) for worker, units in case.running.items()}
        for worker in list(running):
            if len(running) > 1 and random.random() < 0.15:
                del running[worker]
        while not running or random.random() < 0.3:
            running[f"connect-{random.choice('abcé🦊')}-{_number(random)}"] = []
        if random.random() < 0.1:  # a zombie comes back with what it ran
            running[f"zombie-{_number(random)}"] = random.sample(sorted(case.configured), min(2, len(case.configured)))
        self.case = replace(
            case,
            now=case.now + random.choice((1, 100, 400, 200_000, 400_000)),
            led_before=random.random() < 0.85 and case.generation > 1,
            generation=case.generation + random.choice((1, 1, 1, 2)),
            configured=_configured(random, case.configured),
            running=running,
        )
        if not self.case.led_before:
            self.memory = replace(self.memory, dealt=frozenset())
        return self.case

    def compare(self, delay: int, started: dict[str, list[Unit]], revoked: dict[str, frozenset[Unit]]) -> str:
        """Compare Java's decision with ours, and let the workers follow it."""
        case = self.case
        ours = assign_incrementally(
            case.configured,
            case.running,
            self.memory,
            now=case.now,
            max_delay=case.max_delay,
            waits_always=self.release == "3.4.1",
        )
        assert (ours.delay, ours.started, ours.revoked) == (delay, started, revoked), (case, self.memory)
        self.memory = ours.memory
        misses = {worker for worker in case.running if self.random.random() < 0.03}
        running = {
            worker: list(units)
            if worker in misses
            else [unit for unit in units if unit not in revoked[worker]] + started[worker]
            for worker, units in case.running.items()
        }
        self.case = replace(case, running=running)
        kinds = {"delayed": delay > 0, "revoked": any(revoked.values()), "started": any(started.values())}
        return ", ".join(kind for kind, holds in kinds.items() if holds) or "nothing"


def _number(random: Random) -> int:
    return random.randrange(1_000_000)


def _configured(random: Random, configured: frozenset[Unit]) -> frozenset[Unit]:
    """The configuration with a connector more or fewer, or with another number of tasks."""
    counts = Counter(name for name, _ in configured)
    for _ in range(random.randrange(3)):
        name = f"connector-{random.choice('aAbzé🦊')}-{random.randrange(6)}"
        if name in counts and random.random() < 0.5:
            del counts[name]
        else:
            counts[name] = 1 + random.randrange(6)
    return frozenset((name, task) for name, count in counts.items() for task in range(CONNECTOR, count - 1))


@pytest.mark.parametrize("release", by_day(RELEASES, [max(RELEASES)]))
def test_chains_of_rebalances_are_decided_as_the_real_class_decides(release: str) -> None:
    random = Random(f"connect {release} {CASES}")
    told: Counter[str] = Counter()
    chains = [_Chain(random, at, release) for at in range(-(-CASES // len(RELEASES) // _STEPS))]
    with Connect(release) as java:
        for _ in range(_STEPS):
            answers = java.deal([chain.step() for chain in chains])
            for chain, answer in zip(chains, answers, strict=True):
                told[chain.compare(answer.delay, answer.started, answer.revoked)] += 1
    for kind in ("delayed", "revoked", "started"):
        assert sum(count for kinds, count in told.items() if kind in kinds) > CASES // len(RELEASES) // 20, told


@pytest.mark.parametrize("release", by_day(RELEASES, [max(RELEASES)]))
def test_eager_leaders_deal_as_the_real_class_deals(release: str) -> None:
    random = Random(f"eager {release} {CASES}")
    cases = []
    for _ in range(-(-CASES // len(RELEASES))):
        configured = frozenset[Unit]()
        for _ in range(random.randrange(6)):
            configured = _configured(random, configured)
        cases.append((configured, [f"{random.choice('abé🦊')}{_number(random)}" for _ in range(random.randint(1, 7))]))
    with Connect(release) as java:
        for (configured, workers), answer in zip(cases, java.deal_eagerly(cases), strict=True):
            # An assignment's bytes do not keep the order of connectors.
            ours = assign_eagerly(configured, workers)
            assert {worker: sorted(units) for worker, units in ours.items()} == {
                worker: sorted(units) for worker, units in answer.items()
            }
