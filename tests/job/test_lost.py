"""What a start says when checkpoint and lake do not belong together, on disks and on a real S3 server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streaming.config import JobSettings, Settings, checkpoint_of
from streaming.exceptions import SetupError
from streaming.job import checkpoint as module
from streaming.job.checkpoint import (
    CheckpointUnreachableError,
    broken_by_spark,
    clear_torn_start,
    is_empty,
    refuse_lost,
    standing_of,
    state_partitions,
)
from streaming.job.rebuild.plan import Rebuild, read_plan, write_plan
from streaming.tables import DeltaLake, file_system, named_to_arrow, table_named
from tests.empty_lake import empty_lake
from tests.faulty_store import NOTHING, RESET, FaultyStore
from tests.object_store import ObjectStore

QUERY = "52298ad0-bb63-41e9-b910-3b1603346b26"


class Watched:
    """A lake with one round a batch, and its checkpoint."""

    def __init__(self, root: Path) -> None:
        self.settings = Settings(cluster="c", lake=str(root))
        self.lake = empty_lake(root)
        self.checkpoint = Path(checkpoint_of(self.settings))
        for folder in ("offsets", "commits"):
            (self.checkpoint / folder).mkdir(parents=True)
        (self.checkpoint / "metadata").write_text(json.dumps({"id": QUERY}), encoding="utf-8")
        self.batch = -1

    def take(self) -> None:
        self.batch += 1
        offsets = {"log": {}, "events": {}, "rounds": 2, "round": self.batch, "time": 1_000, "elapsed": 0}
        lines = "\n".join(["v1", json.dumps({"batchWatermarkMs": 0}), json.dumps(offsets)])
        (self.checkpoint / "offsets" / str(self.batch)).write_text(lines, encoding="utf-8")
        row = {"cluster": "c", "round": self.batch, "round_time": 1_000, "event_date": 0, "opened_offset": self.batch}
        self.lake.append("rounds", named_to_arrow(table_named("rounds"), [row]), QUERY, self.batch)
        (self.checkpoint / "commits" / str(self.batch)).write_text('v1\n{"nextBatchWatermarkMs":0}', encoding="utf-8")

    def refused(self) -> str:
        with pytest.raises(SetupError) as refused:
            refuse_lost(self.settings, str(self.checkpoint), is_rebuilt=False)
        message = str(refused.value)
        assert "evenkeel run --rebuild-state" in message
        return message


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    made = Watched(tmp_path / "lake")
    for _ in range(3):
        made.take()
    return made


def test_a_lake_and_its_checkpoint_may_start_also_in_the_middle_of_a_batch(watched: Watched) -> None:
    refuse_lost(watched.settings, str(watched.checkpoint), is_rebuilt=False)
    (watched.checkpoint / "commits" / "2").unlink()
    refuse_lost(watched.settings, str(watched.checkpoint), is_rebuilt=False)


def test_a_first_start_may_start(tmp_path: Path) -> None:
    settings = Settings(cluster="c", lake=str(tmp_path / "lake"))
    refuse_lost(settings, checkpoint_of(settings), is_rebuilt=False)


def test_a_lost_checkpoint_is_told(watched: Watched) -> None:
    shutil.rmtree(watched.checkpoint)
    assert watched.refused().startswith(
        f"The checkpoint {watched.checkpoint} is lost: it is empty, but the table rounds"
    )


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (lambda c: (c / "offsets" / "2").write_bytes(b""), "offsets/2 is empty"),
        (lambda c: (c / "offsets" / "2").write_bytes((c / "offsets" / "2").read_bytes()[:-9]), "offsets/2 is cut"),
        (lambda c: (c / "offsets" / "2").unlink(), "offsets/2 is gone"),
        (lambda c: (c / "commits" / "2").write_bytes(b""), "commits/2 is empty"),
        (lambda c: (c / "commits" / "2").write_bytes(b"\0" * 40), "commits/2 is cut"),
        (lambda c: (c / "metadata").write_bytes(b""), "metadata is empty"),
        (lambda c: (c / "metadata").unlink(), "metadata is gone"),
    ],
)
def test_a_broken_file_of_the_checkpoint_is_told(watched: Watched, broken: Callable[[Path], object], why: str) -> None:
    broken(watched.checkpoint)
    assert watched.refused().startswith(f"The checkpoint {watched.checkpoint} is broken ({why}): restore it, or run ")


# What Spark 4.2.0 said (shortened) when files of the state were missing or cut.
_SAID = {
    "CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE": "org.apache.spark.SparkException: "
    "[CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE] An error occurred during loading state. Error reading "
    "streaming state file of file:/x/state/0/0/1.changelog does not exist.",
    "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED": "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading "
    "state.  SQLSTATE: 58030",
    "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY": "[STREAM_FAILED] Query terminated with exception: "
    "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart streaming query with stateful operators",
}


@pytest.mark.parametrize("code", _SAID)
def test_what_spark_says_of_a_broken_state_is_one_sentence(code: str) -> None:
    said = broken_by_spark("/x", _SAID[code])
    assert str(said).startswith(f"The checkpoint /x is broken (Spark says {code}): restore it, or run evenkeel run")


@pytest.mark.parametrize(
    "why",
    [
        "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: Connection refused",
        "org.apache.hadoop.fs.s3a.AWSServiceThrottledException: open s3a://b/x: (Service: S3, Status Code: 503)",
        "java.nio.file.AccessDeniedException: s3a://b/x: S3Exception: Forbidden (Service: S3, Status Code: 403)",
    ],
)
def test_a_store_that_is_away_is_not_a_broken_checkpoint(why: str) -> None:
    said = f"{_SAID['CANNOT_LOAD_STATE_STORE.UNCATEGORIZED']}\nCaused by: {why}"
    assert broken_by_spark("s3://b/x", said) is None
    assert broken_by_spark("/x", said) is not None
    gone = "Caused by: java.io.FileNotFoundException: No such file or directory: s3a://b/x/state/0/0/1.changelog"
    assert broken_by_spark("s3://b/x", f"{_SAID['CANNOT_LOAD_STATE_STORE.UNCATEGORIZED']}\n{gone}") is not None


_LEFT = (".0.5c7f6a52-5f64-4f5e-8a0a-0f8f8d2d1c11.TID7.tmp", "..0.5c7f6a52-5f64-4f5e-8a0a-0f8f8d2d1c11.TID7.tmp.crc")
"""What Spark 4.2.0 leaves on a disk when it is killed before it renames the first offsets."""


def test_what_a_start_killed_in_the_first_batch_has_left_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    for name in (*_LEFT, "something else"):
        (tmp_path / "offsets" / name).touch()
    clear_torn_start(str(tmp_path))
    assert [path.name for path in (tmp_path / "offsets").iterdir()] == ["something else"]
    clear_torn_start(str(tmp_path / "not there"))


def test_nothing_is_deleted_once_a_batch_is_planned(watched: Watched) -> None:
    left = watched.checkpoint / "offsets" / _LEFT[0]
    left.touch()
    clear_torn_start(str(watched.checkpoint))
    assert left.exists()


def test_a_failure_of_another_kind_is_not_blamed_on_the_checkpoint() -> None:
    assert broken_by_spark("/x", "java.io.IOException: No space left on device") is None


def test_a_deleted_table_is_reported_and_not_created_again(watched: Watched) -> None:
    shutil.rmtree(Path(watched.settings.lake) / "drift")
    assert "says was written to it: drift. Restore it" in watched.refused()
    assert not (Path(watched.settings.lake) / "drift").exists()


def test_a_lake_of_an_older_backup_is_told(watched: Watched, tmp_path: Path) -> None:
    backup = shutil.copytree(Path(watched.settings.lake) / "rounds", tmp_path / "backup")
    watched.take()
    watched.take()
    shutil.rmtree(Path(watched.settings.lake) / "rounds")
    shutil.move(backup, Path(watched.settings.lake) / "rounds")
    assert "says was written to it: the rounds after 2, up to 4" in watched.refused()


def test_a_checkpoint_of_an_older_backup_is_told(watched: Watched, tmp_path: Path) -> None:
    backup = shutil.copytree(watched.checkpoint, tmp_path / "backup")
    watched.take()
    shutil.rmtree(watched.checkpoint)
    shutil.move(backup, watched.checkpoint)
    assert "is older than the lake" in (said := watched.refused())
    assert "it ends with batch 2, and rounds has batch 3 of its query" in said


def test_a_lake_that_was_moved_with_its_checkpoint_continues(watched: Watched, tmp_path: Path) -> None:
    moved = shutil.move(watched.settings.lake, tmp_path / "moved")
    settings = watched.settings.model_copy(update={"lake": str(moved)})
    refuse_lost(settings, checkpoint_of(settings), is_rebuilt=False)
    # The tables know the batches that they have, wherever they are.
    row = named_to_arrow(table_named("rounds"), [{"cluster": "c", "round": 9}])
    assert DeltaLake(str(moved)).append("rounds", row, QUERY, 2) == 0
    assert DeltaLake(str(moved)).append("rounds", row, QUERY, 3) == 1


_OFFSETS = {"log": {}, "events": {}, "rounds": 2, "round": 7, "time": 1_000, "elapsed": 0}


def _put(checkpoint: str, name: str, text: str) -> None:
    with file_system(checkpoint).open_output_stream(name, buffer_size=4096) as stream:
        stream.write(text.encode())


@pytest.fixture
def checkpoint(s3: str) -> str:
    """As Spark leaves it after batch 0, in the middle of batch 1."""
    place = f"{s3}/a team/checkpoint"
    assert is_empty(place)
    assert standing_of(place) is None
    _put(place, "metadata", json.dumps({"id": "the-query"}))
    for number in (0, 1):
        _put(place, f"offsets/{number}", f"v1\n{{}}\n{json.dumps(_OFFSETS)}")
        _put(place, f"offsets/.{number}.crc", "x")
    _put(place, "commits/0", "v1\n{}")
    return place


@pytest.mark.xdist_group("object_store")
def test_it_says_how_far_the_query_is(checkpoint: str) -> None:
    assert not is_empty(checkpoint)
    standing = standing_of(checkpoint)
    assert (standing.query, standing.planned, standing.offsets) == ("the-query", 1, _OFFSETS)


@pytest.mark.xdist_group("object_store")
def test_what_a_start_killed_in_the_first_batch_has_left_on_s3_is_deleted(s3: str, object_store: ObjectStore) -> None:
    _put(f"{s3}/c", "offsets/.0.5c7f6a52-5f64-4f5e-8a0a-0f8f8d2d1c11.TID7.tmp", "v1")
    clear_torn_start(f"{s3}/c")
    assert object_store.objects(f"{s3}/c") == []


@pytest.mark.xdist_group("object_store")
def test_a_broken_file_of_it_is_told(checkpoint: str) -> None:
    _put(checkpoint, "offsets/1", "")
    with pytest.raises(SetupError, match=r"broken \(offsets/1 is empty\)"):
        standing_of(checkpoint)


@pytest.mark.xdist_group("object_store")
def test_the_plan_of_a_rebuild_is_kept_in_it(checkpoint: str) -> None:
    assert read_plan(checkpoint) is None
    plan = Rebuild(1, 2, 3, {"lag": 1}, ("drift",), {})
    write_plan(checkpoint, plan)
    assert read_plan(checkpoint) == plan


@pytest.mark.xdist_group("object_store")
def test_nothing_starts_while_its_store_does_not_answer(
    checkpoint: str, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without its plan a rebuild would write rows twice, and without a look a lost checkpoint would be started over.
    settings = Settings(lake=checkpoint.replace("checkpoint", "lake"), job=JobSettings(checkpoint=checkpoint))
    with FaultyStore(object_store.port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        proxy.fail(RESET)
        for look in (is_empty, read_plan):
            with pytest.raises(CheckpointUnreachableError, match=r"^The checkpoint s3://\S+ team/\S+ cannot be read: "):
                look(checkpoint)
        proxy.fail(NOTHING)
        refuse_lost(settings, checkpoint + "-new", is_rebuilt=False)


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
