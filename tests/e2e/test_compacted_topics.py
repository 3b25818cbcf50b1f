"""Recorded topics, compacted anywhere by Kafka's rule: the present is the same, and no past is invented."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.groups import Rows
from streaming.groups.rows import LagRow
from tests.e2e.compacting import RECORDS, ROUNDS, CompactedTopics, job_on
from tests.e2e.plain_job import present

ALARMING = {"rewound", "falling_behind", "stalled", "stopped"}


@cache
def truth() -> Rows:
    """The rows without any compaction."""
    job = job_on(CompactedTopics(RECORDS), 60)
    job.run()
    return job.rows


@st.composite
def cleanings(draw: st.DrawFn, topics: CompactedTopics) -> dict[int, int]:
    return {partition: draw(st.integers(0, end)) for partition, end in topics.log_ends().items() if end}


class _AsOf:
    """Rows of `lag` as of any round."""

    def __init__(self, rows: list[LagRow]) -> None:
        self._rows: dict[tuple[str, str, int], list[LagRow]] = defaultdict(list)
        for row in sorted(rows, key=lambda r: r.round):
            self._rows[row.group_id, row.topic, row.partition].append(row)

    def __call__(self, row: LagRow) -> LagRow | None:
        of_place = [r for r in self._rows[row.group_id, row.topic, row.partition] if r.round <= row.round]
        return of_place[-1] if of_place else None


def assert_nothing_is_made_up(rows: Rows) -> None:
    as_of = _AsOf(truth().lag)
    rewound = {(row.group_id, row.topic, row.partition) for row in truth().lag if row.rewound_by}
    for row in rows.lag:
        true = as_of(row)
        assert _lag_facts(row) == _lag_facts(true)
        assert row.lag_status not in ALARMING or row.lag_status == true.lag_status
        assert row.rewound_by == 0 or (row.group_id, row.topic, row.partition) in rewound
    # By generation: its only remaining record may be that of a static member's return, which got no verdict.
    verdicts = {(r.group_id, r.generation): r.verdict for r in truth().drift}
    for drift in rows.drift:
        if drift.verdict in {"drifted", "identical"}:
            assert verdicts[drift.group_id, drift.generation] == drift.verdict
    changes = {(r.group_id, r.decision): r for r in truth().rebalance_churn if r.revision == 1}
    for churn in rows.rebalance_churn:
        real = msgspec.structs.asdict(changes[churn.group_id, churn.decision])
        said: dict[str, Any] = msgspec.structs.asdict(churn)
        for name in (
            "kind",
            "generation",
            "strategy",
            "leader",
            "members",
            "partitions",
            "record_time",
            "join_completed_time",
        ):
            assert said[name] == real[name], name
        for name in (
            "joined",
            "partitions_moved",
            "partitions_moved_optimal",
            "follows",
            "unassigned_partition_seconds_min",
        ):
            assert said[name] in (None, real[name]), name
        for name in ("left", "replaced"):
            assert said[name] in ((), real[name]), name
    told = {(r.group_id, r.decision) for r in rows.members}
    assert told <= {(r.group_id, r.decision) for r in truth().members}
    assert [gap for gap in rows.gaps if gap.kind == "log"] == []


def _lag_facts(row: LagRow) -> tuple[object, ...]:
    return row.committed_offset, row.high_watermark, row.lag, row.reason, row.subscribed, row.member_id, row.ended


@settings(deadline=None, max_examples=8)
@given(st.data())
def test_a_job_that_starts_late_sees_the_same_present_and_claims_nothing_else_of_the_past(data: st.DataObject) -> None:
    topics = CompactedTopics(RECORDS)
    topics.compact_log(data.draw(cleanings(topics)), tombstones=data.draw(st.booleans()))
    if data.draw(st.booleans()):
        topics.cut_rounds(data.draw(st.integers(0, 2 * ROUNDS - 4)))
    late = job_on(topics, data.draw(st.integers(1, 60)))
    late.run()
    assert present(late.rows) == present(truth())
    assert_nothing_is_made_up(late.rows)


@pytest.mark.nightly
@settings(deadline=None, max_examples=8)
@given(st.data())
def test_a_job_that_comes_back_sees_the_same_present_and_claims_nothing_else_of_the_past(data: st.DataObject) -> None:
    topics = CompactedTopics(RECORDS)
    resumed = job_on(topics, data.draw(st.integers(1, 60)))
    resumed.run(data.draw(st.integers(1, ROUNDS - 1)))
    topics.compact_log(data.draw(cleanings(topics)), tombstones=True)
    resumed.run()
    assert present(resumed.rows) == present(truth())
    assert_nothing_is_made_up(resumed.rows)


@pytest.mark.nightly
@settings(deadline=None, max_examples=8)
@given(st.data())
def test_the_cut_into_batches_makes_no_difference_on_a_compacted_log(data: st.DataObject) -> None:
    topics = CompactedTopics(RECORDS)
    topics.compact_log(data.draw(cleanings(topics)), tombstones=data.draw(st.booleans()))
    rows = []
    for each in (ROUNDS, data.draw(st.integers(1, ROUNDS // 2))):
        job = job_on(topics, each)
        job.run()
        rows.append({table: sorted(map(repr, getattr(job.rows, table))) for table in Rows.__struct_fields__})
    assert rows[0] == rows[1]
