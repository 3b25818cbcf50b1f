"""The demo's stories, played once on a broker of their own: what the tables say, beside what independent witnesses say.

The witnesses are the members with their listeners, the coordinator through the admin client, Kafka's own
`kafka-consumer-groups`, and a plain consumer of the offsets log.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from streaming.demo.evidence import Evidence, Timed, every_generation_and_commit
from streaming.demo.stage import Story
from streaming.tables import LakeReader
from tests.e2e.conftest import Recorded
from tests.e2e.journal import OTHER_KINDS, UNCOUNTED, Place
from tests.e2e.recording import STORIES

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.java,
    pytest.mark.spark,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.turn(1),
]

_ROOT = Path(__file__).parents[2]
_COOPERATIVE = "orders-cooperative"

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


# The recording itself: else the comparisons below would prove nothing.


def _text(raw: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", raw, at)
    return raw[at + 2 : at + 2 + size].decode(), at + 2 + size


def _log(bootstrap: str) -> Iterator[Any]:
    """Read the present offsets log, committed records only, with kafka-python's plain consumer."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level="read_committed")
    partitions = [TopicPartition("__consumer_offsets", partition) for partition in range(50)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    consumer.seek_to_beginning(*partitions)
    while any(consumer.position(partition) < ends[partition] for partition in partitions):
        for records in consumer.poll(1_000).values():
            yield from records
    consumer.close()


def _commits_in_the_log(bootstrap: str) -> Counter[Place]:
    commits: Counter[Place] = Counter()
    for record in _log(bootstrap):
        if record.key[:2] == b"\0\1" and record.value and b"junk-" not in record.key:
            try:
                group, at = _text(record.key, 2)
                topic, at = _text(record.key, at)
                (partition,) = struct.unpack_from(">i", record.key, at)
            except (struct.error, UnicodeDecodeError):
                continue  # junk
            commits[group, topic, partition] += 1
    return commits


def test_no_story_failed_and_all_members_settled(recorded: Recorded) -> None:
    played = recorded.recording.played
    assert [played.lines(what) for what in ("failed", "junk refused", "uncertain")] == [[], [], []]
    assert [line["unsettled"] for line in played.lines("quiet")] == [0]
    assert len(played.lines("end")) == 1


def test_the_journal_counts_exactly_the_commits_of_every_group_that_the_log_has(recorded: Recorded) -> None:
    # Junk that happens to have the form of a key does not name a group of a story.
    counted = {group for story in STORIES for group in story.groups} - UNCOUNTED
    log = _commits_in_the_log(recorded.recording.bootstrap)
    made = recorded.recording.played.commits
    assert dict(made) == {key: count for key, count in log.items() if key[0] in counted}
    assert made.total() > 1_000
    assert {group for group, _, _ in made} | UNCOUNTED >= recorded.recording.groups


# The stories.


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.number)
def test_the_tables_say_what_a_story_expects(recorded: Recorded, story: Story) -> None:
    evidence = Evidence(LakeReader(recorded.quiet_lake), recorded.recording.journal)
    assert [said for check in story.checks for said in check(evidence) if not isinstance(said, Timed)] == []


def test_each_generation_of_a_listener_has_one_churn_row_and_each_commit_counts_once(recorded: Recorded) -> None:
    # After the end: on a busy machine a member may be fenced while all is quiet, and commit again.
    evidence = Evidence(LakeReader(recorded.lake), recorded.recording.journal)
    assert list(every_generation_and_commit(evidence)) == []


def test_every_junk_record_is_kept_with_its_bytes_and_the_log_is_read_without_a_gap(recorded: Recorded) -> None:
    reader = LakeReader(recorded.lake)
    written = {(r["partition"], r["offset"]): r for r in recorded.recording.played.lines("junk")}
    rows = reader.rows("SELECT * FROM quarantine WHERE kind = 'undecodable'")
    assert rows
    for row in rows:
        record = written[row["partition"], row["record_offset"]]
        assert (row["key"].hex(), row["value"].hex()) == (record["key"], record["value"])
    assert reader.rows("SELECT * FROM gaps WHERE kind = 'log'") == []


# Decisions and owners.


def test_each_rebalance_that_lasted_was_seen_by_a_listener(recorded: Recorded) -> None:
    seen = {(told.group, told.generation) for told in recorded.recording.played.generations}
    # No listener may see a generation that is replaced at once; and members that leave one after the other do not wait
    # for the generations in between, so only a part of the end is seen: hence the quiet lake.
    rows = LakeReader(recorded.quiet_lake).rows(
        """SELECT group_id, generation FROM (
               SELECT *, lead(record_time) OVER (PARTITION BY group_id ORDER BY decision) AS next_time
               FROM rebalance_churn WHERE revision = 1
           ) WHERE kind = 'rebalance' AND coalesce(next_time - record_time > INTERVAL 5 SECOND, true)"""
    )
    found = {(row["group_id"], row["generation"]) for row in rows if row["group_id"] not in UNCOUNTED}
    assert len(found) > 15
    assert found - seen == set()


def test_a_join_into_a_cooperative_group_takes_two_generations_or_more_and_a_move_counts_once(
    recorded: Recorded,
) -> None:
    steps = [line["did"] for line in recorded.recording.played.lines("step") if line["story"] == 9]
    joins, departures = sum(did in {"joined: b", "joined: c"} for did in steps), steps.count("left: b")
    rows = LakeReader(recorded.quiet_lake).rows(
        "SELECT * FROM rebalance_churn WHERE group_id = ? AND revision = 1 ORDER BY decision", [_COOPERATIVE]
    )
    by_follows = {row["follows"]: row for row in rows if row["follows"] is not None}
    joined = [row for row in rows if row["joined"] and row["members"] > len(row["joined"])]
    assert all("handover" in {cause["cause"] for cause in row["causes"]} for row in by_follows.values())
    assert all("member_joined" in {cause["cause"] for cause in row["causes"]} for row in joined)
    # On a busy machine a member may be late: it is taken out, and joins again.
    assert len(joined) == joins + sum(len(row["left"] or ()) for row in rows) - departures
    given = defaultdict(int)
    for told in recorded.recording.played.generations:
        if told.group == _COOPERATIVE:
            given[told.generation] += len(told.assigned)
    for row in joined:
        assert (len(row["joined"]), row["partitions_moved"]) == (1, 0)
        # One more generation completes it, or two: a member that is late gives its partitions up a generation later.
        before = row
        while before["partitions_pending_handover"]:
            after = by_follows.pop(before["decision"])
            assert after["generation"] == before["generation"] + 1
            # The partitions that listeners got in this generation are those that changed hands.
            moved = before["partitions_pending_handover"] - after["partitions_pending_handover"]
            assert moved == after["partitions_moved"] == given[after["generation"]]
            before = after
        assert before is not row
    assert by_follows == {}


def test_owners_are_those_that_the_coordinator_describes(recorded: Recorded) -> None:
    rows = LakeReader(recorded.quiet_lake).rows("SELECT * FROM members_current")
    ours = {
        (row["group_id"], row["member_id"]): (
            row["client_id"],
            row["client_host"],
            {(of["topic"], partition) for of in row["partitions"] for partition in of["partitions"]},
        )
        for row in rows
        if row["group_id"] not in OTHER_KINDS
    }
    assert ours == {
        (owner.group, owner.member_id): (owner.client_id, owner.host, owner.assigned)
        for owner in recorded.recording.owners
    }


def test_lag_names_the_owner_of_each_partition(recorded: Recorded) -> None:
    owner_of = {
        (owner.group, *partition): (owner.member_id, owner.client_id)
        for owner in recorded.recording.owners
        for partition in owner.assigned
    }
    rows = LakeReader(recorded.quiet_lake).rows("SELECT * FROM lag_current WHERE member_id IS NOT NULL")
    assert owner_of == {
        (row["group_id"], row["topic"], row["partition"]): (row["member_id"], row["client_id"])
        for row in rows
        if row["group_id"] not in OTHER_KINDS
    }


def test_after_the_last_member_has_left_there_are_no_members(recorded: Recorded) -> None:
    reader = LakeReader(recorded.lake)
    assert reader.count("members_current") == 0
    assert {row["members"] for row in reader.rows("SELECT members FROM group_health_current")} == {0}


def test_every_decision_but_a_replacement_has_one_verdict(recorded: Recorded) -> None:
    reader = LakeReader(recorded.lake)
    decided = reader.rows(
        "SELECT group_id, decision FROM rebalance_churn WHERE revision = 1 AND kind <> 'static_replacement'"
    )
    judged = reader.rows("SELECT group_id, decision FROM drift")
    assert Counter((row["group_id"], row["decision"]) for row in judged) == Counter(
        (row["group_id"], row["decision"]) for row in decided
    )


# Offsets and lag.


def test_when_all_is_quiet_lag_is_what_the_admin_client_says(recorded: Recorded) -> None:
    said = recorded.recording.offsets
    rows = LakeReader(recorded.quiet_lake).rows("SELECT * FROM lag_current WHERE committed_offset IS NOT NULL")
    ours = {
        _place(row): (row["committed_offset"], row["high_watermark"], row["lag"], row["ahead_by"])
        for row in rows
        if row["group_id"] not in OTHER_KINDS
    }
    assert ours == {
        (group, topic, partition): (
            committed,
            said.ends[topic, partition],
            max(0, said.ends[topic, partition] - committed),
            max(0, committed - said.ends[topic, partition]),
        )
        for (group, topic, partition), committed in said.committed.items()
        if group not in OTHER_KINDS
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
        if row["group_id"] not in OTHER_KINDS
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
                # While a transaction holds the log back lag is unknown, and earlier commits remain.
                or (row["reason"] != "offsets_blocked" and not least <= row["lag"] <= most)
            ):
                outside.append((bracket.round, place, before.committed[place], after.committed[place], ends, row))
    assert outside == []
    assert len(recorded.recording.brackets) >= _LEAST_BRACKETS
    assert moving > compared / 10  # otherwise no traffic was measured
