"""`evenkeel up` with several clusters: two of a real broker, one that is not there, one with a poisoned checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from kafka import KafkaAdminClient

from streaming.demo.ports import free_port
from streaming.tables import LakeReader
from tests.probe.witness import Cluster
from tests.rocketmq.servers import EmbeddedRocketMQ
from tests.started import EVENKEEL, Started

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(900)]


class _Fleet:
    """A settings file, its lake, and an `up` over it."""

    def __init__(self, folder: Path, bootstrap: str, unique: str) -> None:
        self._file, self._bootstrap, self._unique = folder / "evenkeel.toml", bootstrap, unique
        self._page, self._dead = free_port(), free_port()
        self.lake = folder / "lake"
        self.reader = LakeReader(self.lake)

    def write(self, *names: str, more: str = "") -> None:
        """Write the file with these clusters, all of them the one broker; "dead" is nowhere, and `more` at the end."""
        text = f'lake = "{self.lake}"\n[probe]\ninterval_ms = 1_000\n[serve]\nlisten = "127.0.0.1:{self._page}"\n'
        for name in names:
            address = f"127.0.0.1:{self._dead}" if name == "dead" else self._bootstrap
            topics = "\n".join(f'{kind}_topic = "{self._unique}.{name}.{kind}"' for kind in ("events", "rounds"))
            text += f'[[clusters]]\nname = "{name}"\n' + 'offsets_log = "admin"\n' * (name == "admin")
            text += f'[clusters.kafka]\nbootstrap_servers = "{address}"\n'
            text += f"[clusters.probe]\n{topics}\n"
        new = self._file.with_suffix(".new")
        new.write_text(text + more)
        new.replace(self._file)

    @contextmanager
    def up(self) -> Iterator[None]:
        """Run `evenkeel up` until the end of the block."""
        environment = os.environ | {"EVENKEEL_CONFIG": str(self._file)}
        with Started([EVENKEEL, "up"], self._file.with_name("output"), environment) as self.running:
            yield
            self.running.stop()

    def newest(self, cluster: str) -> int:
        """Number of the cluster's newest round; -1 before the first."""
        self.reader.refresh()
        if not (self.lake / "rounds").exists():
            return -1
        [row] = self.reader.rows("SELECT coalesce(max(round), -1) AS n FROM rounds WHERE cluster = ?", [cluster])
        return int(row["n"])

    def wait_for_rounds(self, cluster: str, more: int = 1) -> None:
        """Wait until rows of more rounds have come."""
        goal = self.newest(cluster) + more
        self.running.until(lambda: self.newest(cluster) >= goal)


def _below(up: Started) -> dict[int, tuple[list[str], str]]:
    """Command line, and the cluster that it is the probe of, of each process below."""
    found = {}
    for child in up.below():
        with suppress(psutil.Error):  # it has ended meanwhile
            found[child.pid] = child.cmdline(), child.name().partition("probe-")[2]
    return found


def _probe_of(up: Started, cluster: str) -> int:
    [found] = [pid for pid, (_, of) in _below(up).items() if of == cluster]
    return found


def _jobs_of(up: Started) -> set[int]:
    return {
        pid
        for pid, (line, _) in _below(up).items()
        if line[1:] == ["-m", "streaming.job"] or Path(line[0] if line else "").name == "java"
    }


def test_a_cluster_that_is_away_or_poisoned_changes_nothing_in_the_others_and_the_file_is_followed(
    tmp_path: Path, bootstrap: str, unique: str
) -> None:
    fleet = _Fleet(tmp_path, bootstrap, unique)
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        witness = Cluster(bootstrap, unique, admin)
        witness.commit("group", witness.topic(), [0])
    fleet.write("well", "ill", "dead")
    with fleet.up():
        fleet.wait_for_rounds("well")
        fleet.wait_for_rounds("ill")
    before = fleet.newest("ill")
    poisoned = [path for path in (fleet.lake / "_checkpoints" / "ill" / "state").rglob("*") if path.is_file()]
    for path in poisoned:
        path.write_bytes(b"poison")
    with fleet.up():
        up = fleet.running
        fleet.wait_for_rounds("well", 10)
        up.until(lambda: "cluster ill: " in up.said)
        job, probe = _jobs_of(up), _probe_of(up, "well")
        fleet.wait_for_rounds("well", 5)
        assert fleet.newest("ill") == before
        # A new one comes, the ill one goes: nobody else starts again. (In one step it might be a new name.)
        fleet.write("well", "ill", "new", "dead")
        fleet.wait_for_rounds("new", 3)
        fleet.write("well", "new", "dead")
        up.until(lambda: not any(of == "ill" for _, of in _below(up).values()))
        fleet.wait_for_rounds("well", 3)
        assert (_jobs_of(up), _probe_of(up, "well")) == (job, probe)
    assert "Its query starts again in" in up.said
    assert "cluster ill is watched no more: it is not in the settings file" in up.said


def test_the_log_admin_mode_and_rocketmq_are_watched_side_by_side(
    tmp_path: Path, bootstrap: str, unique: str, rocketmq: EmbeddedRocketMQ
) -> None:
    fleet = _Fleet(tmp_path, bootstrap, unique)
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        witness = Cluster(bootstrap, unique, admin)
        topic = witness.topic()
        witness.produce(topic, [5, 0, 0])
        witness.commit("group", topic, [2, 0, 0])
    more = f'[[clusters]]\nname = "mq"\nrocketmq = "{rocketmq.name_servers[0].address}"\n'
    fleet.write("log", "admin", more=more)
    with fleet.up():
        for name in ("log", "admin", "mq"):
            fleet.wait_for_rounds(name, 2)
        sql = (
            "SELECT cluster, committed_offset, lag FROM lag_current WHERE topic = ? AND partition = 0 ORDER BY cluster"
        )
        fleet.running.until(lambda: len(fleet.reader.rows(sql, [topic])) == 2)
    rows = fleet.reader.rows(sql, [topic])
    assert [tuple(row.values()) for row in rows] == [("admin", 2, 3), ("log", 2, 3)]
    sql = "SELECT cluster, source FROM rounds_current ORDER BY cluster"
    assert [tuple(row.values()) for row in fleet.reader.rows(sql)] == [
        ("admin", "admin"),
        ("log", "log"),
        ("mq", "rocketmq"),
    ]
