"""The cluster of a benchmark: its own folder and broker, both removed when it ends.

Every process that a benchmark starts is guarded by it, so even a kill -9 leaves only the folder, which the next
benchmark removes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it ships no types

from streaming.config import JobSettings, KafkaSettings, ProbeSettings, Settings
from streaming.demo.broker import EmbeddedBroker

_PREFIX = "evenkeel-bench-"


@dataclass(frozen=True, slots=True)
class BenchCluster:
    """One running broker and a folder.

    Attributes:
        folder: Folder for lakes, checkpoints and logs.
        bootstrap: Address of the broker.
    """

    folder: Path
    bootstrap: str

    def settings(self, name: str, *, probe: ProbeSettings | None = None, **job: int) -> Settings:
        """Settings of a separate cluster: generated groups in separate topics, and a separate lake.

        Args:
            name: Name of the cluster, and prefix of its topics.
            probe: Settings of the probe; None takes the defaults.
            job: Settings that differ from the job's defaults.
        """
        given = probe or ProbeSettings()
        topics = {"events_topic": f"{name}.events", "rounds_topic": f"{name}.rounds"}
        return Settings(
            cluster=name,
            lake=str(self.folder / name / "lake"),
            kafka=KafkaSettings(bootstrap_servers=self.bootstrap),
            probe=given.model_copy(update=topics),
            job=JobSettings(offsets_topic=f"{name}.offsets", **job),
        )


@contextmanager
def bench_cluster(heap: str = "512m") -> Iterator[BenchCluster]:
    """Start a broker in a temporary folder; both end with the block.

    Args:
        heap: The broker's largest heap, as `-Xmx` wants it.

    Raises:
        SetupError: The broker does not start.
    """
    _remove_left_behind()
    pid = psutil.Process().pid
    with (
        tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{pid}-", ignore_cleanup_errors=True) as folder,
        EmbeddedBroker(Path(folder) / "broker", heap=heap) as broker,
    ):
        yield BenchCluster(Path(folder), broker.bootstrap)


def _remove_left_behind() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
