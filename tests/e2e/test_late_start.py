"""A log compacted by the real cleaner, and its readers: without a break, after a pause, and for the first time.

`tests.e2e.plain_job.PAST` says which columns are not compared, and why.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streaming.demo.broker import EmbeddedBroker
from streaming.groups import Rows
from tests.e2e.late_start import OVERRIDES, LateStart, play
from tests.e2e.plain_job import present

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.nightly,
    pytest.mark.kafka,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.turn(3),
]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LateStart]:
    folder = tmp_path_factory.mktemp("late-start")
    with EmbeddedBroker(folder / "broker", overrides=OVERRIDES) as broker:
        yield play(broker, folder)


def test_the_cleaner_has_left_a_part_of_the_log(started: LateStart) -> None:
    assert 0 < started.after < started.before / 3


def test_a_job_that_comes_back_after_the_log_was_compacted_sees_the_same_present(started: LateStart) -> None:
    assert present(started.resumed) == present(started.truth)


def test_a_job_that_starts_late_sees_the_same_present(started: LateStart) -> None:
    assert present(started.late) == present(started.truth)


@pytest.mark.parametrize("who", ["resumed", "late"])
def test_nothing_is_claimed_about_rounds_that_the_log_no_longer_tells_of(started: LateStart, who: str) -> None:
    rows: Rows = getattr(started, who)
    true = {(row.group_id, row.topic, row.partition, row.round): row for row in started.truth.lag}
    newest = {
        (group, topic, partition): sorted(r for g, t, p, r in true if (g, t, p) == (group, topic, partition))
        for group, topic, partition, _ in true
    }
    for row in rows.lag:
        place = row.group_id, row.topic, row.partition
        as_of = true[*place, max(r for r in newest[place] if r <= row.round)]
        assert (row.committed_offset, row.lag, row.reason) == (as_of.committed_offset, as_of.lag, as_of.reason), row
        assert row.lag_status in {as_of.lag_status, "ok"}
    generations = {(row.group_id, row.decision): row for row in started.truth.rebalance_churn if row.revision == 1}
    for churn in rows.rebalance_churn:
        real = generations[churn.group_id, churn.decision]
        assert (churn.kind, churn.generation, churn.members) == (real.kind, real.generation, real.members)
        assert churn.partitions_moved in {None, real.partitions_moved}
        assert churn.joined in {None, real.joined}
        assert churn.left in {(), real.left}
    assert {row.verdict for row in rows.drift} <= {"identical", "unverified", "not_applicable"}
    assert [gap for gap in rows.gaps if gap.kind == "log"] == []
    assert rows.quarantine == []


def test_fewer_rounds_are_judged_than_by_the_one_who_was_there(started: LateStart) -> None:
    # Otherwise the comparisons above would prove nothing.
    assert len(started.late.lag) < len(started.resumed.lag) < len(started.truth.lag)


def test_a_late_start_shows_the_lag_and_the_owners_that_kafka_consumer_groups_prints(started: LateStart) -> None:
    ours = {
        key: tuple(
            row[name] for name in ("committed_offset", "high_watermark", "lag", "member_id", "client_host", "client_id")
        )
        for key, row in present(started.late)["lag"].items()
    }
    assert ours == {
        (told.group, told.topic, told.partition): (
            *(told.current_offset, told.log_end_offset, told.lag),
            *(told.consumer_id, told.host, told.client_id),
        )
        for told in started.tool_offsets
    }
    assert {"classic", "static", "modern", "exactly-once", "met-late", "reset", "pinned"} <= {key[0] for key in ours}


def test_a_late_start_shows_the_lag_that_the_admin_client_says(started: LateStart) -> None:
    ours = {
        key: (row["committed_offset"], row["lag"])
        for key, row in present(started.late)["lag"].items()
        if row["committed_offset"] is not None
    }
    assert ours == {
        place: (committed, max(0, started.offsets.ends[place[1:]] - committed))
        for place, committed in started.offsets.committed.items()
    }


def test_a_late_start_shows_the_members_that_the_admin_client_describes(started: LateStart) -> None:
    ours = {
        key: (
            *(row["client_id"], row["client_host"]),
            {(of.topic, partition) for of in row["partitions"] for partition in of.partitions},
        )
        for key, row in present(started.late)["members"].items()
    }
    assert ours == {
        (owner.group, owner.member_id): (owner.client_id, owner.host, owner.assigned) for owner in started.members
    }
