"""Undecodable records end to end: all of them kept, once, and nothing else changed."""

from __future__ import annotations

import pytest

from streaming.demo.stories.junk import HOSTILE_GROUPS
from streaming.tables import LakeReader
from tests.e2e.conftest import Recorded

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.turn(1),
]


def test_every_junk_record_is_in_quarantine_once(recorded: Recorded) -> None:
    written = recorded.recording.played.lines("junk")
    rows = LakeReader(recorded.lake).rows("SELECT * FROM quarantine_current")
    single = {(row["partition"], row["record_offset"]): row for row in rows if row["kind"] == "undecodable"}
    assert len(single) == sum(row["kind"] == "undecodable" for row in rows)
    sampled = 0
    for record in written:
        row = single.pop((record["partition"], record["offset"]), None)
        if row is None:
            assert record["expected"] in {"unknown_type", "newer_version"}, record
            sampled += 1
        else:
            assert (row["key"].hex(), row["value"].hex()) == (record["key"], record["value"])
    assert single == {}
    assert sampled == sum(row["records"] for row in rows if row["kind"] == "unknown")


def test_a_junk_record_that_the_log_may_not_hold_is_never_passed_over(recorded: Recorded) -> None:
    undecodable = {
        (line["partition"], line["offset"])
        for line in recorded.recording.played.lines("junk")
        if line["expected"] == "undecodable"
    }
    rows = LakeReader(recorded.lake).rows("SELECT partition, record_offset FROM quarantine WHERE kind = 'undecodable'")
    assert undecodable <= {(row["partition"], row["record_offset"]) for row in rows}


def test_groups_with_hostile_names_are_groups_like_any_other(recorded: Recorded) -> None:
    rows = LakeReader(recorded.quiet_lake).rows("SELECT group_id, verdict, lag_total FROM group_health_current")
    found = {row["group_id"]: row for row in rows}
    for group in HOSTILE_GROUPS:
        assert found[group]["verdict"] == "not_applicable"
        assert found[group]["lag_total"] is not None
    # A group that exists only in junk is not a group.
    assert not [group for group in found if group.startswith("junk-")]


def test_the_job_reads_the_whole_log_without_a_gap(recorded: Recorded) -> None:
    assert LakeReader(recorded.lake).rows("SELECT * FROM gaps WHERE kind = 'log'") == []
