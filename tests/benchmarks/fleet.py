"""Ten clusters in one `evenkeel up`, beside one cluster with as many groups, and with ill ones among them.

All are one broker, watched under several names: each has topics of its own for events and rounds, and a tenth of the
groups. `ill` adds a cluster that is away and one whose checkpoint is poisoned: its query fails in every batch.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median

from streaming.demo.ports import free_port
from streaming.process import GuardedProcess
from streaming.tables import LakeReader
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.whole_up import CommittingGroups, GroupsSize, UpTree, up_with

_SIZE = GroupsSize(1_000, 10, 100)
_CLUSTERS = 10
_SETTLED_ROUNDS = 6
_MINUTE_S = 60.0
_LONGEST_S = 600.0
_POISONED, _AWAY = "poisoned", "away"


def fleet(cluster: BenchCluster, say: Say) -> list[Figure]:
    """Measure one cluster, ten, and ten beside two ill ones."""
    CommittingGroups(cluster.bootstrap, _SIZE, say)
    ten = [f"c{digit}" for digit in range(_CLUSTERS)]
    figures, alone = [], None
    for names in (["whole"], ten, [*ten, _POISONED, _AWAY]):
        of = f"{len(names)} cluster{'s' if len(names) > 1 else ''}"
        of += f" of {_SIZE.groups if len(names) == 1 else _SIZE.groups // _CLUSTERS:,} groups"
        if _AWAY in names:
            of = f"{_CLUSTERS} clusters beside one that is away and one that is poisoned"
        spent, held, delay = _measure(cluster, names, say, of)
        alone = alone or (spent, held, delay)
        beside = ""
        if len(names) > 1:
            ratios = [now / then for now, then in zip((spent, held, delay), alone, strict=True)]
            beside = "; processor time {:.1f}, memory {:.1f}, delay {:.1f} times those of one".format(*ratios)
        figures.append(
            Figure(
                f"fleet: {of}",
                f"{held / 2**20:,.0f} MB",
                "",
                f"{spent:.1f} CPU-s a minute, {delay:.1f} s from a round's record to its row{beside}",
            )
        )
    return figures


def _measure(cluster: BenchCluster, names: list[str], say: Say, of: str) -> tuple[float, float, float]:
    """Processor seconds of a minute, bytes, and seconds from a round's opening to its row (median of medians)."""
    folder = cluster.folder / f"fleet-{len(names)}"
    lake = folder / "lake"
    well = [name for name in names if name not in {_POISONED, _AWAY}]
    if _POISONED in names:
        say(f"{of}: letting the poisoned one begin")
        with _up(cluster, folder, [_POISONED]):
            _delays(lake, [_POISONED], 1)
        for path in (lake / "_checkpoints" / _POISONED / "state").rglob("*"):
            if path.is_file():
                path.write_bytes(b"poison")
    with _up(cluster, folder, names) as process:
        say(f"{of}: waiting until all groups are idle")
        _delays(lake, well, _SETTLED_ROUNDS)
        say(f"{of}: measuring a minute")
        tree = UpTree(process.pid)
        before = tree.spent()
        delays = _delays(lake, well, 1, _MINUTE_S)
        after = tree.spent()
        spent = sum(after.values()) - sum(before.values())
    return spent, float(sum(tree.held.values())), median(median(seconds) for seconds in delays.values())


def _delays(lake: Path, names: list[str], rounds: int, least_s: float = 0.0) -> dict[str, list[float]]:
    """Wait until each cluster has so many more rounds, and so long; returns how late each row was, by cluster."""
    reader, first = LakeReader(lake), dict[str, int]()
    seen: dict[str, dict[int, float]] = {name: {} for name in names}
    began = time.monotonic()
    while time.monotonic() - began < least_s or min(len(late) for late in seen.values()) < rounds:
        if time.monotonic() - began > _LONGEST_S:
            raise RuntimeError(
                f"{rounds} rounds of each cluster were not seen: { ({name: len(late) for name, late in seen.items()}) }"
            )
        time.sleep(0.2)
        if not (lake / "rounds").exists():
            continue
        reader.refresh()
        now = time.time()
        rows = reader.rows("SELECT cluster, round, epoch(round_time) AS at FROM rounds ORDER BY round DESC", [])
        newest = {row["cluster"]: row["round"] for row in reversed(rows)}
        for row in rows:
            name, number = row["cluster"], row["round"]
            if name in seen and number > first.setdefault(name, newest[name]):
                seen[name].setdefault(number, now - row["at"])
    return {name: list(late.values()) for name, late in seen.items()}


def _up(cluster: BenchCluster, folder: Path, names: list[str]) -> AbstractContextManager[GuardedProcess]:
    folder.mkdir(parents=True, exist_ok=True)
    text = f'lake = "{folder / "lake"}"\n[serve]\nlisten = "127.0.0.1:{free_port()}"\n'
    for name in names:
        address = cluster.bootstrap if name != _AWAY else f"127.0.0.1:{free_port()}"
        topics = "\n".join(f'{kind}_topic = "{folder.name}.{name}.{kind}"' for kind in ("events", "rounds"))
        text += f'[[clusters]]\nname = "{name}"\n[clusters.kafka]\nbootstrap_servers = "{address}"\n'
        text += f"[clusters.probe]\n{topics}\n"
        if len(name) == 2:
            text += f'[clusters.filters]\ngroups = ["/{name[1]}$/"]\n'
    file = folder / "evenkeel.toml"
    file.write_text(text)
    return up_with({"EVENKEEL_CONFIG": str(file)}, folder)
