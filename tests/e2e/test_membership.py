"""Decisions, owners and verdicts, compared with the members' own rebalance listeners and the coordinator."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from streaming.tables import LakeReader
from tests.e2e.conftest import Recorded
from tests.e2e.journal import UNCOUNTED

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.turn(1),
]

_PILED_UP, _STATIC, _COOPERATIVE = "clicks-pile-up", "tills-static", "orders-cooperative"


def test_each_generation_that_a_listener_saw_has_one_churn_row(recorded: Recorded) -> None:
    seen = {(told.group, told.generation) for told in recorded.recording.played.generations}
    rows = LakeReader(recorded.lake).rows(
        "SELECT group_id, generation FROM rebalance_churn WHERE revision = 1 AND kind = 'rebalance'"
    )
    counted = Counter((row["group_id"], row["generation"]) for row in rows)
    assert len(seen) > 20
    assert {generation: counted[generation] for generation in seen} == dict.fromkeys(seen, 1)
    assert set(counted.values()) == {1}


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


def test_a_restart_of_a_static_member_is_a_replacement_and_no_rebalance(recorded: Recorded) -> None:
    restarts = [line["did"] for line in recorded.recording.played.lines("step") if line.get("group") == _STATIC]
    rows = LakeReader(recorded.quiet_lake).rows(
        """SELECT kind, generation, replaced, causes FROM rebalance_churn
           WHERE group_id = ? AND revision = 1 ORDER BY decision""",
        [_STATIC],
    )
    replaced = [row for row in rows if row["kind"] == "static_replacement"]
    assert [f"{row['replaced'][0]['group_instance_id']} was restarted" for row in replaced] == restarts
    last_rebalance = max(row["generation"] for row in rows if row["kind"] == "rebalance")
    assert {row["generation"] for row in replaced} == {last_rebalance}
    assert {cause["cause"] for row in replaced for cause in row["causes"]} == {"static_replacement"}


def test_a_join_into_a_cooperative_group_takes_two_generations_or_more_and_a_move_counts_once(
    recorded: Recorded,
) -> None:
    joins = [
        line
        for line in recorded.recording.played.lines("step")
        if line.get("group") == _COOPERATIVE and "joined" in line["did"]
    ]
    departures = [
        line
        for line in recorded.recording.played.lines("step")
        if line.get("group") == _COOPERATIVE and line["did"] == "a member left"
    ]
    rows = LakeReader(recorded.quiet_lake).rows(
        "SELECT * FROM rebalance_churn WHERE group_id = ? AND revision = 1 ORDER BY decision", [_COOPERATIVE]
    )
    by_follows = {row["follows"]: row for row in rows if row["follows"] is not None}
    joined = [row for row in rows if row["joined"] and row["members"] > len(row["joined"])]
    assert all("handover" in {cause["cause"] for cause in row["causes"]} for row in by_follows.values())
    assert all("member_joined" in {cause["cause"] for cause in row["causes"]} for row in joined)
    # (On a busy machine a member may be late: it is taken out, and joins again.)
    assert len(joined) == len(joins) + sum(len(row["left"] or ()) for row in rows) - len(departures)
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
        (row["group_id"], row["topic"], row["partition"]): (row["member_id"], row["client_id"]) for row in rows
    }


def test_after_the_last_member_has_left_there_are_no_members(recorded: Recorded) -> None:
    reader = LakeReader(recorded.lake)
    assert reader.count("members_current") == 0
    assert {row["members"] for row in reader.rows("SELECT members FROM group_health_current")} == {0}


def test_no_group_drifts_but_the_one_whose_leader_piles_up(recorded: Recorded) -> None:
    rows = LakeReader(recorded.lake).rows("SELECT group_id, verdict, drifted_partitions FROM drift")
    assert {row["group_id"] for row in rows if row["verdict"] == "drifted"} == {_PILED_UP}
    kinds = {of["kind"] for row in rows if row["verdict"] == "drifted" for of in row["drifted_partitions"]}
    assert kinds == {"misplaced"}


def test_every_decision_but_a_replacement_has_one_verdict(recorded: Recorded) -> None:
    reader = LakeReader(recorded.lake)
    decided = reader.rows(
        "SELECT group_id, decision FROM rebalance_churn WHERE revision = 1 AND kind <> 'static_replacement'"
    )
    judged = reader.rows("SELECT group_id, decision FROM drift")
    assert Counter((row["group_id"], row["decision"]) for row in judged) == Counter(
        (row["group_id"], row["decision"]) for row in decided
    )


def test_the_verdicts_of_each_group_are_those_that_its_story_tells(recorded: Recorded) -> None:
    rows = LakeReader(recorded.quiet_lake).rows(
        """SELECT group_id, list(DISTINCT verdict ORDER BY verdict) AS verdicts
           FROM drift WHERE strategy IS NOT NULL GROUP BY ALL"""
    )
    identical, unverified = ["identical"], ["unverified"]
    expected = dict.fromkeys(
        (
            *("orders-range", "orders-java", "billing-roundrobin", _STATIC, "night-batch", "billing-stuck"),
            *("signups-growing", "transfers-exactly-once", "coupons-reader", "orders-retired"),
            *("clicks-sticky", _COOPERATIVE),
            *("reports-stuck-rebalance", "logins-storm", "newsletter-idle", "exports-behind"),
        ),
        identical,
    )
    expected |= dict.fromkeys(("orders-pinned",), unverified)
    found = {row["group_id"]: row["verdicts"] for row in rows}
    assert found.pop(_PILED_UP) in (["drifted", "identical"], ["drifted"])
    assert found == expected
