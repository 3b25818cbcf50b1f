"""A round of the probe against a real RocketMQ cluster: 100 groups with two members each, on two brokers.

The members are threads of a process of their own: they hold queues and answer, and pull nothing. A round is one look,
without the bus: what the servers are asked, and how long they take to answer.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from streaming.config import Filters
from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.observe import RocketMQLook
from streaming.records import RocketMQObservation
from streaming.rocketmq import Client
from tests.benchmarks.figure import Figure, Say
from tests.probe.witness import asked_of_rocketmq
from tests.rocketmq.member import RocketMQMember
from tests.rocketmq.servers import EmbeddedRocketMQ

_START_S = 300.0
_ROUND_S = 60.0
_GROUPS, _MEMBERS = 100, 2
_QUEUES = 16
_ROUNDS = 20
_BEGIN = 1_795_582_476_000
_INTERVAL_MS = 10_000


def rocketmq(say: Say) -> list[Figure]:
    """Run the benchmark.

    Raises:
        RuntimeError: The groups did not come to rest.
    """
    names = [f"group-{number:03}" for number in range(_GROUPS)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        say("starting a RocketMQ cluster")
        cluster = stack.enter_context(EmbeddedRocketMQ(folder, name_servers=2))
        with cluster.commands() as commands:
            for name in names:
                commands.create_topic(name, _QUEUES)
        command = [sys.executable, "-m", "tests.benchmarks.rocketmq", cluster.addresses[0], *names]
        # Leaving closes its input, and waits for it.
        stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE))
        client = stack.enter_context(Client())
        asking = RocketMQCluster(client, cluster.addresses, Filters())
        say("waiting for the groups")
        _until_all_hold(asking, names, 2 * _QUEUES)
        return _measure(asking, names, say)


def _look(asking: RocketMQCluster, names: Sequence[str], number: int) -> RocketMQLook:
    return asking.observe_groups(names, frozenset(), _BEGIN + number * _INTERVAL_MS, Deadline.after(_ROUND_S))


def _until_all_hold(asking: RocketMQCluster, names: Sequence[str], queues: int) -> None:
    limit = time.monotonic() + _START_S
    while not all(
        _held(seen, name) == queues for name, seen in _look(asking, names, 0).groups.items() if name in names
    ):
        if time.monotonic() > limit:
            raise RuntimeError(f"the groups did not come to rest within {_START_S:.0f} s")
        time.sleep(1)


def _held(seen: RocketMQObservation, topic: str) -> int:
    held = [queue for member in seen.members for queue in member.queues or () if queue.topic == topic]
    return len(held) if len(seen.members) == _MEMBERS else -1


def _measure(asking: RocketMQCluster, names: Sequence[str], say: Say) -> list[Figure]:
    seconds, processor, requests = [], [], []
    for number in range(_ROUNDS):
        say(f"round {number + 1} of {_ROUNDS}")
        begin, began = time.perf_counter(), time.process_time()
        with asked_of_rocketmq() as sent:
            _look(asking, names, number)
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - began)
        requests.append(sent.total())
    note = f"{_GROUPS} groups x {_MEMBERS} members, 2 brokers x {_QUEUES} queues, 2 name servers"
    return [
        Figure(
            "a round against RocketMQ",
            f"{min(seconds):.2f} to {max(seconds):.2f} s (median {median(seconds):.2f})",
            "2 s",
            note,
        ),
        Figure("  processor time of the probe", f"{median(processor):.2f} s", "", f"median of {_ROUNDS} rounds"),
        Figure("  requests", f"{min(requests):,} to {max(requests):,}", "", "the most once a minute"),
    ]


def _play(name_server: str, names: Sequence[str]) -> None:
    """Run the members of all groups until standard input ends, as it does when the benchmark has."""
    for name in names:
        for number in range(1, _MEMBERS + 1):
            RocketMQMember([name_server], name, f"10.0.0.{number}@{number}", [name], pulls=False).start()
    sys.stdin.read()


if __name__ == "__main__":
    _play(sys.argv[1], sys.argv[2:])
