"""What a whole `evenkeel up` costs beside a cluster at rest: a minute of processor time, memory, and its first rows.

The groups have committed once, through a real broker, and have no members; nothing moves while the minute is measured.
`rest` takes one size, `scale` three, which show what grows with the number of groups. In `active` a twentieth of the
groups commits in each round.
"""

from __future__ import annotations

import time

from streaming.probe.idle import SETTLED_ROUNDS, SPREAD_ROUNDS
from tests.benchmarks.bench_cluster import BenchCluster, bench_cluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.whole_up import CommittingGroups, GroupsSize, UpTree, await_rounds, rounds_of, up, up_settings

_ROUNDS_BEFORE = SETTLED_ROUNDS + SPREAD_ROUNDS + 2
"""Rounds until only heartbeats report the groups, and two more."""

_HEAP = "3g"
"""A broker holds the newest commit of each partition: a million of them take more than the demo's half a gigabyte."""

_MINUTE_S = 60.0

REST = GroupsSize(1_000, 50, 20)
ACTIVE = GroupsSize(1_000, 50, 20, moving=50)
SCALE = (GroupsSize(1_000, 10, 100), GroupsSize(10_000, 10, 1_000), GroupsSize(100_000, 10, 1_000))


def rest(cluster: BenchCluster, say: Say, size: GroupsSize = REST) -> list[Figure]:
    """Measure one size."""
    return _measure(cluster, say, size)


def active(cluster: BenchCluster, say: Say) -> list[Figure]:
    """Measure the same size with some groups that move."""
    return _measure(cluster, say, ACTIVE)


def scale(say: Say) -> list[Figure]:
    """Measure three sizes, each beside a broker of its own."""
    figures = []
    for size in SCALE:
        with bench_cluster(_HEAP) as cluster:
            figures += _measure(cluster, say, size)
    return figures


def _measure(cluster: BenchCluster, say: Say, size: GroupsSize) -> list[Figure]:
    groups = CommittingGroups(cluster.bootstrap, size, say)
    name = f"{'active' if size.moving else 'rest'}-{size.groups}-{size.partitions}"
    settings = up_settings(cluster, name)
    with up(settings, cluster.folder / name) as process:
        began = time.time()
        say(f"{size.groups:,} groups: waiting for the first rows")
        first_s = await_rounds(settings, process, 1) - began
        say(f"{size.groups:,} groups: waiting until all of them are idle")
        await_rounds(settings, process, _ROUNDS_BEFORE)
        say(f"{size.groups:,} groups: measuring a minute")
        tree = UpTree(process.pid)
        before, rounds = tree.spent(), rounds_of(settings)
        interval_s = settings.probe.interval_ms / 1000
        for _ in range(int(_MINUTE_S / interval_s)):
            next_round = time.monotonic() + interval_s
            if size.moving:
                groups.move()
            time.sleep(max(0.0, next_round - time.monotonic()))
        after, made = tree.spent(), rounds_of(settings) - rounds
        spent = {part: seconds - before.get(part, 0.0) for part, seconds in after.items()}
    of = f"{size.groups:,} groups x {size.partitions} partitions without members"
    if size.moving:
        of += f", of which {size.moving} commit in each round"
    by_part = sorted(spent.items(), key=lambda item: -item[1])
    by_size = sorted(tree.held.items(), key=lambda item: -item[1])
    return [
        Figure(
            f"{'active' if size.moving else 'at rest'}: first rows",
            f"{first_s:.0f} s",
            "",
            f"{of}; after the start of `evenkeel up`",
        ),
        Figure(
            "  a minute, processor time",
            f"{sum(spent.values()):.1f} s",
            "",
            f"{made} rounds; " + ", ".join(f"{part} {seconds:.1f} s" for part, seconds in by_part),
        ),
        Figure(
            "  memory",
            f"{sum(tree.held.values()) / 2**20:,.0f} MB",
            "",
            f"{tree.processes} processes, shared pages in equal parts; "
            + ", ".join(f"{part} {held / 2**20:,.0f} MB" for part, held in by_size),
        ),
    ]
