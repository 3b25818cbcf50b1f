"""How many state partitions a new checkpoint gets: by the setting, else by the cores that there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streaming.config import JobSettings, Settings
from streaming.job import checkpoint as module
from streaming.job.checkpoint import state_partitions


class _Spark:
    """A session whose executors register one after the other."""

    def __init__(self, master: str, *cores: int) -> None:
        self.master, self._cores = master, cores
        self._asked: Iterator[int] = iter(cores)

    @property
    def sparkContext(self) -> _Spark:  # noqa: N802 - Spark's name
        return self

    @property
    def defaultParallelism(self) -> int:  # noqa: N802 - Spark's name
        return next(self._asked, self._cores[-1])

    @property
    def _jvm(self) -> Any:
        runtime = SimpleNamespace(availableProcessors=lambda: self._cores[0])
        return SimpleNamespace(
            java=SimpleNamespace(lang=SimpleNamespace(Runtime=SimpleNamespace(getRuntime=lambda: runtime)))
        )

    def range(self, _end: int) -> _Spark:
        return self

    def count(self) -> int:
        return 1


def _partitions(spark: Any, tmp_path: Path, chosen: int | None = None) -> int:
    settings = Settings(lake=str(tmp_path), job=JobSettings(shuffle_partitions=chosen))
    return state_partitions(settings, spark, str(tmp_path / "checkpoint"))


@pytest.mark.parametrize(("cores", "partitions"), [(1, 1), (4, 4), (32, 8)])
def test_a_new_checkpoint_gets_one_for_each_core_up_to_eight(cores: int, partitions: int, tmp_path: Path) -> None:
    assert _partitions(_Spark("local[*]", cores), tmp_path) == partitions


def test_on_a_cluster_it_waits_for_the_cores_of_all_executors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTLED_S", 0)
    assert _partitions(_Spark("spark://master:7077", 2, 4, 6, 6), tmp_path) == 6


def test_the_setting_wins_over_the_cores(tmp_path: Path) -> None:
    assert _partitions(_Spark("local[*]", 4), tmp_path, chosen=12) == 12


@pytest.mark.parametrize(("cores", "clusters", "partitions"), [(8, 3, 2), (2, 10, 1), (64, 2, 8)])
def test_clusters_share_the_cores(cores: int, clusters: int, partitions: int, tmp_path: Path) -> None:
    settings = Settings(lake=str(tmp_path))
    assert state_partitions(settings, _Spark("local[20]", cores), str(tmp_path / "c"), clusters) == partitions
