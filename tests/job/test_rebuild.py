"""The plan of a rebuild and what it does to rows, in small lakes; `tests/e2e/test_rebuilt.py` has whole streams."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.job.rebuild.lake import RebuildingLake, gone_members
from streaming.job.rebuild.plan import Rebuild, begin, new_rows, plan_rebuild, read_plan, write_gap, write_plan
from streaming.job.source.positions import INITIAL
from streaming.tables import DeltaLake, KnownRows, LakeReader, named_to_arrow, table_named
from streaming.times import DAY_MS
from tests.empty_lake import empty_lake
from tests.job.source.fake_reader import FakeReader, both

TODAY = 20_000
NOW = TODAY * DAY_MS + 2_000_000

NOTHING = Rebuild(-1, -1, 10, {}, (), {})


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return empty_lake(tmp_path / "lake")


def rows(table: str, *given: dict[str, Any]) -> pa.Table:
    return named_to_arrow(table_named(table), [{"cluster": "c", "event_date": TODAY, **row} for row in given])


def a_round(number: int, opened: int | None = None, elapsed: int = 0, **more: Any) -> dict[str, Any]:
    time = NOW - 1_000_000 + 1_000 * number
    return {"round": number, "round_time": time, "elapsed_ms": elapsed, "opened_offset": opened or number, **more}


def plan(lake: DeltaLake, begin: int = 0, end: int = 1_000) -> Rebuild:
    return plan_rebuild(lake.root, "c", begin, end)


def written(lake: DeltaLake, made: Rebuild, table: str, new: pa.Table) -> list[dict[str, Any]]:
    known = KnownRows(lake.root, table_named(table), "c")
    return new_rows(table_named(table), new, made, known).to_pylist()


def test_numbers_and_time_continue_where_old_rounds_are_gone(lake: DeltaLake) -> None:
    # The topic was created again once: numbers are 100 above its offsets.
    history = [a_round(104, 4, 5_000), a_round(106, 6, 7_000), a_round(108, 8, 9_000, cluster_id="kafka")]
    lake.append("rounds", rows("rounds", *history), "old", 0)
    made = plan(lake, begin=7, end=12)
    time = history[1]["round_time"]
    assert made.start == INITIAL | {
        "time": time,
        "elapsed": 7_000,
        "base": 100,
        "rounds_of": "kafka",
    }
    assert made.until == 112


def test_a_rounds_topic_that_ends_before_what_the_tables_have_is_refused(lake: DeltaLake) -> None:
    lake.append("rounds", rows("rounds", a_round(8)), "old", 0)
    with pytest.raises(SetupError, match="was created again or cut back while the checkpoint was lost"):
        plan(lake, end=8)


def test_other_clusters_of_the_lake_do_not_count(lake: DeltaLake) -> None:
    both = [a_round(5), a_round(900, cluster="d"), a_round(7), a_round(800, cluster="a")]
    lake.append("rounds", rows("rounds", *both), "old", 0)
    lake.append("lag", rows("lag", {"group_id": "g", "round": 950, "cluster": "d"}), "old", 0)
    made = plan(lake)
    assert (made.newest_round, made.written) == (7, {"rounds": 7})


def test_a_table_that_a_torn_batch_has_reached_has_all_of_its_rounds(lake: DeltaLake) -> None:
    lake.append("lag", rows("lag", {"group_id": "g", "round": 9}), "old", 1)
    lake.append("group_health", rows("group_health", {"group_id": "g", "round": 2, "findings": []}), "old", 0)
    lake.append("rounds", rows("rounds", a_round(3)), "old", 0)
    assert plan(lake).written == {"lag": 9, "group_health": 3, "rounds": 3}


def test_a_row_that_is_there_stays_and_its_other_version_is_dropped(lake: DeltaLake) -> None:
    lake.append("rounds", rows("rounds", a_round(3)), "old", 0)
    there = {"group_id": "g", "decision": 7, "round": 3, "verdict": "drifted"}
    lake.append("drift", rows("drift", there), "old", 0)
    again = rows("drift", {**there, "round": 5, "verdict": "unverified"}, {**there, "decision": 8, "round": 5})
    assert [row["decision"] for row in written(lake, plan(lake), "drift", again)] == [8]


def test_a_table_of_rounds_that_has_lost_a_file_is_judged_row_by_row(lake: DeltaLake) -> None:
    lake.append("rounds", rows("rounds", a_round(3)), "old", 0)
    lake.append("lag", rows("lag", {"group_id": "g", "topic": "t", "partition": 0, "round": 2}), "old", 0)
    again = rows("lag", *({"group_id": "g", "topic": "t", "partition": p, "round": 2} for p in (0, 1)))
    made = plan(lake)
    assert written(lake, made, "lag", again) == []
    lost = msgspec.structs.replace(made, lost=("lag",))
    assert [row["partition"] for row in written(lake, lost, "lag", again)] == [1]


def test_a_plan_survives_its_checkpoint_and_a_broken_one_is_told(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    assert read_plan(checkpoint) is None
    made = msgspec.structs.replace(NOTHING, lost=("lag",))
    write_plan(checkpoint, made)
    assert read_plan(checkpoint) == made
    (tmp_path / "checkpoint" / "rebuild.json").write_text("{", encoding="utf-8")
    with pytest.raises(SetupError, match=r"rebuild\.json cannot be read .* --rebuild-state"):
        read_plan(checkpoint)


def test_a_plan_that_is_there_and_cannot_be_opened_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "rebuild.json").mkdir()
    with pytest.raises(SetupError, match=r"rebuild\.json cannot be read .* right to read"):
        read_plan(str(tmp_path))


def test_a_round_whose_time_no_calendar_has_does_not_stop_a_rebuild(lake: DeltaLake) -> None:
    lake.append("rounds", rows("rounds", a_round(3) | {"round_time": None}), "old", 0)
    assert (plan(lake).newest_round, plan(lake).newest_time) == (3, -1)


@pytest.mark.parametrize(("newest_members", "gone"), [(0, ["left-long-ago"]), (None, [])])
def test_only_a_decision_that_is_known_to_show_all_its_members_shows_who_has_left(
    lake: DeltaLake, newest_members: int | None, gone: list[str]
) -> None:
    def decision(number: int, members: int | None) -> dict[str, Any]:
        return {"cluster": "c", "group_id": "g", "incarnation": 0, "decision": number, "record_time": DAY_MS * number,
                "event_date": number, "members": members}  # fmt: skip

    member = {"cluster": "c", "group_id": "g", "member_id": "left-long-ago", "decision": 1, "ended": False}
    lake.append("members", named_to_arrow(table_named("members"), [member]), "job", 0)
    churn = [decision(1, 1), decision(2, 0), decision(3, newest_members)]
    lake.append("rebalance_churn", named_to_arrow(table_named("rebalance_churn"), churn), "job", 0)

    assert gone_members(lake.root, "c")["member_id"].to_pylist() == gone


def test_a_rebuild_is_done_when_a_batch_follows_one_with_a_round_that_was_opened_after_it_began(
    lake: DeltaLake,
) -> None:
    kept: list[Rebuild] = []
    rebuilding = RebuildingLake(lake, "c", NOTHING, kept.append)
    assert rebuilding.append("rounds", rows("rounds", a_round(9)), "new", 0) == 1
    assert rebuilding.append("rounds", rows("rounds", a_round(10)), "new", 1) == 1
    # The same batch once more, as after a kill before Spark knew of its end: it is judged again.
    assert rebuilding.append("rounds", rows("rounds", a_round(10)), "new", 1) == 0
    assert kept == []
    assert rebuilding.append("rounds", rows("rounds", a_round(11)), "new", 2) == 1
    assert [one.done for one in kept] == [True]
    assert LakeReader(lake.root).count("rounds") == 3


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> FakeReader:
    """A rounds topic with ten records."""
    reader = FakeReader()
    for _ in range(10):
        reader.append("evenkeel.rounds", 0, b"{}")
    # By its name the package has a function.
    monkeypatch.setattr(sys.modules["streaming.job.rebuild.plan"], "kept_readers", lambda *_: both(reader))
    return reader


@pytest.mark.usefixtures("topics")
def test_a_rebuild_begins_with_a_new_checkpoint_and_keeps_the_old_one(lake: DeltaLake, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoints" / "c"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "0").write_text("cut", encoding="utf-8")
    lake.append("rounds", rows("rounds", a_round(3)), "old", 0)
    made = begin(Settings(cluster="c", lake=lake.root), str(checkpoint))
    assert (made.newest_round, made.until) == (3, 10)
    assert made == read_plan(str(checkpoint))
    (aside,) = checkpoint.parent.glob("c.lost-*")
    assert (aside / "offsets" / "0").read_text("utf-8") == "cut"
    # The gap is written once, however often the job starts.
    write_gap(lake, "c", made)
    write_gap(lake, "c", made)
    (gap,) = LakeReader(lake.root).rows("SELECT kind, reason FROM gaps")
    assert gap["kind"] == "state"


@pytest.mark.usefixtures("topics")
def test_a_rebuild_that_is_refused_leaves_the_checkpoint_in_its_place(lake: DeltaLake, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "metadata").touch()
    lake.append("rounds", rows("rounds", a_round(10)), "old", 0)
    with pytest.raises(SetupError, match="was created again or cut back"):
        begin(Settings(cluster="c", lake=lake.root), str(tmp_path / "c"))
    assert (tmp_path / "c" / "metadata").exists()
