"""Where a benchmark runs: a folder and a broker of its own, both gone when it ends.

Every process that a benchmark starts is guarded by this one, so even a kill -9 leaves only the folder; the
next benchmark removes it.
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

__all__ = ["Place", "bench_place"]

_PREFIX = "evenkeel-bench-"


@dataclass(frozen=True, slots=True)
class Place:
    """One running broker, and room beside it.

    Attributes:
        folder: Room for lakes, checkpoints and logs.
        bootstrap: Where the broker listens.
    """

    folder: Path
    bootstrap: str

    def settings(self, name: str, *, probe: ProbeSettings | None = None, **job: int) -> Settings:
        """Settings of a cluster of its own: made groups in topics of their own, and a lake of their own.

        Args:
            name: Name of the cluster; begins the names of its topics.
            probe: Settings of the probe, in place of the defaults.
            job: What differs from the job's defaults.
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
def bench_place() -> Iterator[Place]:
    """Start a broker in a temporary folder; both end with the block.

    Raises:
        SetupError: The broker does not start.
    """
    _remove_left_behind()
    pid = psutil.Process().pid
    with (
        tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{pid}-", ignore_cleanup_errors=True) as folder,
        EmbeddedBroker(Path(folder) / "broker") as broker,
    ):
        yield Place(Path(folder), broker.bootstrap)


def _remove_left_behind() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
