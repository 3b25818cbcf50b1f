"""Commits and lag, compared with the committing members, the admin client, and Kafka's own tool."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streaming.tables import LakeReader
from tests.e2e.conftest import Recorded
from tests.e2e.journal import UNCOUNTED, Place

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.turn(1),
]

_LEAST_BRACKETS = 10
"""Rounds under traffic between two readings that even a slow machine gets."""

_AS_OF = """
    SELECT * EXCLUDE (age) FROM (
        SELECT *, row_number() OVER (PARTITION BY group_id, topic, partition ORDER BY round DESC) AS age
        FROM lag WHERE round <= ?
    ) WHERE age = 1 AND NOT ended
"""


def _place(row: dict[str, Any]) -> Place:
    return row["group_id"], row["topic"], row["partition"]


def test_every_commit_is_counted_once(recorded: Recorded) -> None:
    # (After the end: on a busy machine a member may be fenced while all is quiet, and commit again.)
    rows = LakeReader(recorded.lake).rows(
        "SELECT group_id, topic, partition, sum(commits) AS commits FROM lag GROUP BY ALL"
    )
    counted = Counter({_place(row): row["commits"] for row in rows if row["group_id"] not in UNCOUNTED})
    made, uncertain = recorded.recording.played.commits, recorded.recording.played.uncertain
    wrong = {
        place: (counted[place], made[place], uncertain[place])
        for place in counted | made
        # An unanswered commit may have been written, or not.
        if not made[place] <= counted[place] <= made[place] + uncertain[place]
    }
    assert wrong == {}
    assert made.total() > 1_000


def test_the_members_committed_in_every_group_of_the_demo(recorded: Recorded) -> None:
    committed = {group for group, _, _ in recorded.recording.played.commits}
    assert committed | UNCOUNTED >= recorded.recording.groups


def test_when_all_is_quiet_lag_is_what_the_admin_client_says(recorded: Recorded) -> None:
    said = recorded.recording.offsets
    rows = LakeReader(recorded.quiet_lake).rows("SELECT * FROM lag_current WHERE committed_offset IS NOT NULL")
    ours = {_place(row): (row["committed_offset"], row["high_watermark"], row["lag"], row["ahead_by"]) for row in rows}
    assert ours == {
        (group, topic, partition): (
            committed,
            said.ends[topic, partition],
            max(0, said.ends[topic, partition] - committed),
            max(0, committed - said.ends[topic, partition]),
        )
        for (group, topic, partition), committed in said.committed.items()
    }


def test_when_all_is_quiet_lag_is_what_kafka_consumer_groups_prints(recorded: Recorded) -> None:
    rows = LakeReader(recorded.quiet_lake).rows("SELECT * FROM lag_current WHERE committed_offset IS NOT NULL")
    ours = {
        # The tool pads a group's name with spaces, and its output is read as text with one kind of line ending.
        (row["group_id"].rstrip(" ").replace("\r\n", "\n"), row["topic"], row["partition"]): (
            row["committed_offset"],
            row["high_watermark"],
            row["lag"] - row["ahead_by"],
        )
        for row in rows
    }
    assert ours == {
        (printed.group, printed.topic, printed.partition): (
            printed.current_offset,
            printed.log_end_offset,
            printed.lag,
        )
        for printed in recorded.recording.tool_offsets
        if printed.current_offset is not None
    }


def test_under_traffic_offsets_and_lag_lie_between_the_readings_before_and_after_the_round(recorded: Recorded) -> None:
    reader = LakeReader(recorded.quiet_lake)
    outside = []
    compared = moving = 0
    for bracket in recorded.recording.brackets:
        before, after = bracket.before, bracket.after
        rows = {_place(row): row for row in reader.rows(_AS_OF, [bracket.round])}
        for place in before.committed.keys() & after.committed.keys():
            ends = before.ends.get(place[1:]), after.ends.get(place[1:])
            if ends[0] is None or ends[1] is None:
                continue  # the topic was being deleted
            row = rows.get(place)
            compared += 1
            moving += before.committed[place] < after.committed[place] or ends[0] < ends[1]
            least, most = max(0, ends[0] - after.committed[place]), max(0, ends[1] - before.committed[place])
            if (
                row is None
                or not before.committed[place] <= row["committed_offset"] <= after.committed[place]
                or not ends[0] <= row["high_watermark"] <= ends[1]
                # (While a transaction holds the log back lag is unknown, and earlier commits remain.)
                or (row["reason"] != "offsets_blocked" and not least <= row["lag"] <= most)
            ):
                outside.append((bracket.round, place, before.committed[place], after.committed[place], ends, row))
    assert outside == []
    assert len(recorded.recording.brackets) >= _LEAST_BRACKETS
    assert moving > compared / 10  # otherwise no traffic was measured


def test_commits_of_aborted_transactions_show_nowhere(recorded: Recorded) -> None:
    aborted = recorded.recording.played.lines("aborted")
    assert aborted
    far_ahead = min(offset for line in aborted for of in line["offsets"].values() for offset in of.values())
    assert LakeReader(recorded.lake).rows("SELECT * FROM lag WHERE committed_offset >= ?", [far_ahead]) == []


def test_what_was_deleted_is_in_no_current_view(recorded: Recorded) -> None:
    reader = LakeReader(recorded.quiet_lake)
    for group in ("orders-retired", "one-off-report"):
        assert reader.rows("SELECT round FROM lag WHERE group_id = ?", [group])
        for table in ("lag", "group_health", "members", "drift"):
            current = f"SELECT * FROM {table}_current WHERE group_id = ?"
            assert reader.rows(current, [group]) == [], table
    assert reader.rows("SELECT * FROM lag_current WHERE topic = 'coupons' AND committed_offset IS NOT NULL") == []
    assert reader.rows("SELECT * FROM lag_current WHERE group_id = 'coupons-reader' AND topic = 'payments'")
