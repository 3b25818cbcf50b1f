"""Retention waits where nobody can tell which groups live, and only there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from streaming.job.rebuild import Rebuild, write_plan
from streaming.maintain import Maintainer, NotMaintainedError
from streaming.tables import ALL_TABLES, DeltaLake, LakeReader
from streaming.times import DAY_MS
from tests.maintain.build import KEEP, NOW, SMALL, Writer, maintain, row

pytestmark = pytest.mark.turn(6)

OF_GROUPS = ("rebalance_churn", "drift", "what_if")


KEEPS = {table.name: KEEP for table in ALL_TABLES}


def decisions(writer: Writer, day: int, number: int, cluster: str = "c", group: str = "g") -> None:
    """A decision, with its verdict and what another strategy would have done."""
    for name in OF_GROUPS:
        writer.append(name, row(name, day, number, cluster=cluster, group_id=group, strategy="range"))


def left(lake: DeltaLake, cluster: str = "c") -> dict[str, int]:
    """Rows of a cluster in the tables of decisions."""
    reader = LakeReader(lake.root)
    sql = "SELECT count(*)::INT AS n FROM {} WHERE cluster = '{}'"
    return {name: reader.rows(sql.format(name, cluster))[0]["n"] for name in OF_GROUPS}


def told_by(lake: DeltaLake) -> str:
    with pytest.raises(NotMaintainedError) as told:
        maintain(lake)
    return str(told.value)


def test_without_group_health_no_decision_is_deleted_and_one_sentence_says_what_to_do(
    lake: DeltaLake, writer: Writer
) -> None:
    decisions(writer, -40, 1)
    writer.append("group_health", row("group_health", 0, 50))
    writer.round(0, 50)
    shutil.rmtree(lake.path("group_health"))
    assert told_by(lake) == (
        "Retention of rebalance_churn, drift, what_if waits, because it cannot tell which groups live (the table "
        "group_health is not there): restore that table, or stop the job and run evenkeel run --rebuild-state, which "
        "fills it again."
    )
    assert left(lake) == dict.fromkeys(OF_GROUPS, 1)


def test_what_needs_no_groups_is_done_while_retention_waits(lake: DeltaLake, writer: Writer) -> None:
    decisions(writer, -40, 1)
    for number in range(2, 6):
        decisions(writer, 0, number, group="another")
    writer.append("lag", row("lag", -40, 1, topic="t", partition=0, ended=True))
    writer.round(0, 50)
    told: list[tuple[str, str]] = []
    done: set[tuple[str, str]] = set()
    maintainer = Maintainer(lake.root, KEEPS, SMALL, now=lambda: NOW, told=lambda *one: told.append(one))
    with pytest.raises(NotMaintainedError):
        done.update((one.table, one.what) for one in maintainer.work())
    assert {(name, "compaction") for name in OF_GROUPS} | {("lag", "retention")} <= done
    assert len(told) == 1, "one sentence for the three tables"
    assert left(lake) == dict.fromkeys(OF_GROUPS, 5)


def test_a_cluster_of_which_group_health_has_no_row_keeps_its_decisions(lake: DeltaLake, writer: Writer) -> None:
    decisions(writer, -40, 1)
    decisions(writer, -40, 1, cluster="other")
    # (As a rebuild begins, after the table was lost; the job of the other cluster has filled it already.)
    writer.append("group_health", row("group_health", 0, 50, cluster="other"))
    writer.round(0, 50)
    assert "which groups of c live (the table group_health has no row of them)" in told_by(lake)
    assert left(lake) == left(lake, "other") == dict.fromkeys(OF_GROUPS, 1)


def plan(*, done: bool) -> Rebuild:
    return Rebuild(1, 1, 1, {}, {}, {}, {}, {}, None, done)


def test_while_the_state_is_rebuilt_no_decision_of_its_cluster_is_deleted(lake: DeltaLake, writer: Writer) -> None:
    decisions(writer, -40, 1)
    # The table is being filled: it has one group already, and not yet the one whose decision is old.
    writer.append("group_health", row("group_health", 0, 50, group_id="first"))
    writer.round(0, 50)
    checkpoint = f"{lake.root}/_checkpoints/c"
    write_plan(checkpoint, plan(done=False))
    assert f"which groups of c live (the state of its job is being rebuilt ({checkpoint}/rebuild.json))" in told_by(
        lake
    )
    assert left(lake) == dict.fromkeys(OF_GROUPS, 1)
    write_plan(checkpoint, plan(done=True))
    maintain(lake)
    assert left(lake) == dict.fromkeys(OF_GROUPS, 0)


def test_a_checkpoint_elsewhere_is_looked_at_too(lake: DeltaLake, writer: Writer, tmp_path: Path) -> None:
    decisions(writer, -40, 1)
    writer.append("group_health", row("group_health", 0, 50, group_id="first"))
    writer.round(0, 50)
    elsewhere = str(tmp_path / "elsewhere")
    write_plan(elsewhere, plan(done=False))
    maintainer = Maintainer(lake.root, KEEPS, SMALL, now=lambda: NOW, checkpoints={"c": elsewhere})
    with pytest.raises(NotMaintainedError, match=r"is being rebuilt \(\S+/elsewhere/rebuild.json\)"):
        list(maintainer.work())
    assert left(lake) == dict.fromkeys(OF_GROUPS, 1)


def test_a_rebuild_of_another_cluster_holds_nothing_up(lake: DeltaLake, writer: Writer) -> None:
    decisions(writer, -40, 1)
    writer.append("group_health", row("group_health", 0, 50, group_id="first"))
    writer.round(0, 50)
    write_plan(f"{lake.root}/_checkpoints/other", plan(done=False))
    maintain(lake)
    assert left(lake) == dict.fromkeys(OF_GROUPS, 0)


def test_a_cluster_that_is_gone_for_good_holds_nothing_up(lake: DeltaLake, writer: Writer) -> None:
    decisions(writer, -40, 1, cluster="gone")
    writer.append("rounds", row("rounds", -40, 2, cluster="gone"))
    decisions(writer, -40, 1)
    writer.append("group_health", row("group_health", 0, 50))
    writer.round(0, 50)
    maintain(lake)
    assert left(lake, "gone") == dict.fromkeys(OF_GROUPS, 0)
    assert left(lake) == dict.fromkeys(OF_GROUPS, 1)


def test_a_cluster_without_groups_that_is_still_watched_holds_nothing_up(lake: DeltaLake, writer: Writer) -> None:
    decisions(writer, -40, 1)
    # (Since the table was created, which was today or, past midnight, a day later.)
    writer.round(2, 50)
    maintain(lake, now=NOW + 2 * DAY_MS)
    assert left(lake) == dict.fromkeys(OF_GROUPS, 0)
