"""A group that moves from the classic protocol to the new one and back is one group with one history, in two rows.

The records and their order are those of a 4.3.1 broker (`ConsumerGroup.fromClassicGroup`, `createConsumerGroupRecords`,
`ClassicGroup.fromConsumerGroup`); tests/real_groups/test_real_modern_groups.py sees a broker write them.
"""

from __future__ import annotations

from collections.abc import Sequence

from streaming.groups.rows import ChurnRow
from streaming.records import GroupInput, Member
from tests.groups.build import (
    GROUP,
    Life,
    churn_of,
    even,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
    rows_in_batches,
)
from tests.groups.coordinator import Written
from tests.groups.modern_log import TOPIC_ID, epoch, gone, metadata, owns, read, stands, target
from tests.offsets_log.written import member_metadata, other_key


def classic(name: str, instance: str | None = None, topics: Sequence[str] = ("orders",)) -> Written:
    return other_key(5, GROUP, name), member_metadata(topics, instance_id=instance, protocols=["range"])


# The records of a classic group of generation 3 when a consumer of the new protocol joins it.
CARRIED = [classic("a"), classic("b"), epoch(3), target("a", 0, 1), target("b", 2, 3), stands(3)]
CARRIED += [owns("a", 3, 0, 1), owns("b", 3, 2, 3)]
JOINED = [metadata("n"), epoch(4), target("n", 3), target("b", 2), stands(4), owns("n", 4)]


def downgrade(first: int, *members: str) -> list[GroupInput]:
    """The last member of the new protocol has left: the group's tombstones."""
    tombstones = [(other_key(key_type, GROUP, name), None) for key_type in (8, 7) for name in members]
    tombstones += [(other_key(6, GROUP), None), *((other_key(5, GROUP, name), None) for name in members)]
    return read([*tombstones, (other_key(4, GROUP), None), (other_key(3, GROUP), None)], first)


def before() -> list[GroupInput]:
    """A classic group, and a round that has named its topic."""
    return [make_record(5, even("orders", 4, "a", "b"), generation=3), named(6), make_tombstone(9)]


def named(position: int) -> GroupInput:
    return make_observation(position, make_topic("orders", 4, topic_id=TOPIC_ID))


def churn(*inputs: GroupInput) -> list[ChurnRow]:
    return sorted(churn_of(*inputs), key=lambda row: row.decision)


def test_an_upgrade_is_a_row_at_the_target_that_the_classic_group_brought() -> None:
    start, migration, joined = churn(*before(), *read(CARRIED + JOINED))
    assert (migration.kind, migration.decision, migration.protocol_type) == ("migration", 15, "consumer")
    assert (migration.generation, migration.previous_generation, migration.generations_skipped) == (3, 3, 0)
    assert (migration.joined, migration.left, migration.members, migration.partitions) == ((), (), 2, 4)
    # There was no decision, so there is no optimum to compare with.
    assert (migration.partitions_moved, migration.partitions_moved_optimal) == (0, None)
    assert (joined.kind, joined.generation, joined.previous_generation) == ("rebalance", 4, 3)
    assert (joined.joined, joined.left, joined.partitions_moved, joined.partitions_moved_optimal) == (("n",), (), 1, 1)
    assert start.incarnation == migration.incarnation == joined.incarnation == 5


def test_what_the_first_target_takes_from_an_owner_of_the_classic_group_has_moved() -> None:
    # b had 2 and 3.
    taken = [target("a", 0, 1, 2) if record == target("a", 0, 1) else record for record in CARRIED]
    taken = [target("b", 3) if record == target("b", 2, 3) else record for record in taken]
    assert churn(*before(), *read(taken))[-1].partitions_moved == 1


def test_moves_of_an_upgrade_are_null_where_no_round_has_named_the_topic() -> None:
    _, migration = churn(make_record(5, even("orders", 4, "a", "b"), generation=3), make_tombstone(9), *read(CARRIED))
    assert (migration.kind, migration.partitions_moved, migration.joined) == ("migration", None, ())


def test_no_assignor_of_the_broker_is_held_to_what_a_classic_group_brought() -> None:
    life = Life.after(*before(), *read(CARRIED))
    rows = life.take(
        make_observation(30, make_topic("orders", 4, topic_id=TOPIC_ID), state=None, group_type="consumer")
    )
    (verdict,) = [row for row in rows.drift if row.decision == 15]
    assert (verdict.verdict, verdict.reason, verdict.candidates) == (
        "unverified",
        "the group was upgraded from the classic protocol: this is the assignment it had",
        0,
    )


def test_a_static_member_that_came_back_with_other_topics_is_no_drift_when_the_group_is_upgraded() -> None:
    # The record of its return has the new subscription beside the old assignment, and the upgrade takes over both.
    topics = make_topic("orders", 4, topic_id=TOPIC_ID), make_topic("bills", 2)
    stays = make_member("b", assigned={"orders": (2, 3)})
    was = make_member("a", assigned={"orders": (0, 1)}, group_instance_id="i")
    back = make_member("a2", ("bills",), {"orders": (0, 1)}, group_instance_id="i")
    carried = [classic("a2", "i", ["bills"]), classic("b"), epoch(3), target("a2", 0, 1), target("b", 2, 3), stands(3)]
    life = Life.after(make_record(5, (was, stays), generation=3), make_observation(6, *topics))
    life.take(make_record(7, (back, stays), generation=3), make_tombstone(9), *read(carried))
    rows = life.take(make_observation(30, *topics, state=None, group_type="consumer"))
    assert [(row.verdict, row.drifted_partitions) for row in rows.drift] == [("unverified", ())]


def test_the_first_target_after_an_upgrade_is_judged_with_what_the_group_brought() -> None:
    # Uniform, by hand: four on three; a keeps its two, b one of its two, and n gets the other.
    life = Life.after(*before(), *read(CARRIED + JOINED))
    rows = life.take(
        make_observation(30, make_topic("orders", 4, topic_id=TOPIC_ID), state=None, group_type="consumer")
    )
    verdict = rows.drift[-1]
    assert (verdict.generation, verdict.verdict, verdict.reason) == (4, "identical", None)


def test_a_first_target_is_not_judged_where_one_member_may_have_brought_partitions_that_no_record_shows() -> None:
    # The last record of the classic group has no members; c came with the classic protocol after it, n did not.
    log = [classic("c"), metadata("n"), epoch(5), target("c", 0, 1), target("n", 2, 3), stands(5)]
    life = Life.after(make_record(6, generation=4), named(7), make_tombstone(9), *read(log))
    rows = life.take(
        make_observation(30, make_topic("orders", 4, topic_id=TOPIC_ID), state=None, group_type="consumer")
    )
    migration = life.rows.rebalance_churn[-1]
    assert (migration.kind, migration.generation, migration.partitions_moved_optimal) == ("migration", 5, None)
    reason = "the previous target is not known: earlier records of the group may be missing"
    assert (rows.drift[-1].verdict, rows.drift[-1].reason) == ("unverified", reason)


def test_the_upgrade_of_an_empty_group_begins_a_new_run_of_epochs() -> None:
    log = [metadata("n"), epoch(2), target("n", 0, 1, 2, 3), stands(2), owns("n", 2, 0, 1, 2, 3)]
    empty = make_record(6, generation=4)
    _, _, migration = churn(make_record(5, even("orders", 4, "a"), generation=3), empty, make_tombstone(9), *read(log))
    assert (migration.kind, migration.incarnation, migration.joined) == ("migration", 13, ("n",))
    assert (migration.generation, migration.previous_generation) == (2, None)


def test_a_group_of_the_new_protocol_made_after_a_classic_one_was_deleted_is_another() -> None:
    rows = churn(
        make_record(5, even("orders", 4, "a")),
        make_tombstone(9),
        *read([metadata("n"), epoch(1), target("n", 0), stands(1)], 12),
        make_observation(20),
    )
    assert [row.kind for row in rows] == ["rebalance", "rebalance"]
    assert rows[0].incarnation != rows[1].incarnation


def test_a_group_ends_with_its_first_tombstone_and_what_follows_a_second_is_another() -> None:
    rows = churn(
        make_record(5, even("orders", 4, "a")),
        make_tombstone(9),
        make_tombstone(11),
        *read([metadata("n"), epoch(1), target("n", 0), stands(1)], 12),
        make_observation(20),
    )
    assert [row.kind for row in rows] == ["rebalance", "rebalance"]


def test_a_classic_group_whose_past_is_compacted_away_has_not_joined_when_it_is_upgraded() -> None:
    # Only the tombstone of the classic group is left; epoch and one member look like a new group's.
    rows = churn(*read([classic("a"), epoch(1), target("a", 0, 1), stands(1)]))
    assert (rows[0].joined, rows[0].partitions_moved) == (None, None)


def back() -> list[GroupInput]:
    """Back from the upgraded group of a, b and n: n leaves, and a and b continue as a classic group."""
    members = (make_member("a", assigned={"orders": (0, 1)}), make_member("b", assigned={"orders": (2,)}))
    last = make_record(40, even("orders", 4, "a", "b"), generation=5)
    return [*downgrade(24, "a", "b", "n"), make_record(36, members, generation=4), last]


def test_a_downgrade_is_a_row_that_tells_who_left_and_what_waits_for_its_next_owner() -> None:
    inputs = back()
    *_, migration, rebalance = churn(*before(), *read(CARRIED + JOINED), *inputs)
    assert (migration.kind, migration.decision, migration.incarnation) == ("migration", 36, 5)
    assert (migration.generation, migration.previous_generation, migration.generations_skipped) == (4, 4, 0)
    assert (migration.joined, migration.left, migration.partitions_moved, migration.partitions_pending_handover) == (
        (),
        ("n",),
        0,
        1,
    )
    assert (rebalance.kind, rebalance.follows, rebalance.previous_generation) == ("rebalance", 36, 4)
    # Partition 3 moves from n to b, counted once: from the first owner to the last.
    assert (rebalance.partitions_moved, rebalance.left, rebalance.incarnation) == (1, (), 5)


def test_a_handover_that_an_upgrade_cut_short_is_forgotten_by_the_time_of_a_downgrade() -> None:
    def members(*of_a: int) -> tuple[Member, ...]:
        return make_member("a", assigned={"orders": of_a}), make_member("b", assigned={"orders": (2,)})

    # Partition 3 waits for its next owner when the group is upgraded, and nobody owns it under the new protocol.
    classic_time = [
        make_record(4, even("orders", 4, "a", "b"), generation=2, protocol="cooperative-sticky"),
        make_record(5, members(0, 1), generation=3, protocol="cooperative-sticky"),
    ]
    carried = [classic("a"), classic("b"), epoch(3), target("a", 0, 1), target("b", 2), stands(3)]
    *before_it, migration = churn(
        *classic_time,
        named(6),
        make_tombstone(9),
        *read(carried),
        *downgrade(20, "a", "b"),
        make_record(29, members(0, 1, 3), generation=4),
    )
    assert [row.partitions_pending_handover for row in before_it] == [0, 1, 0]
    assert (migration.kind, migration.previous_generation, migration.partitions_moved) == ("migration", 3, 0)


def test_a_classic_group_that_begins_where_an_empty_one_of_the_new_protocol_ends_is_no_migration() -> None:
    log = [metadata("n"), epoch(1), target("n", 0, 1, 2, 3), stands(1), *gone("n"), epoch(2)]
    log += [(other_key(6, GROUP), None), (other_key(3, GROUP), None)]
    rows = churn(*read(log), make_record(10 + len(log), even("orders", 4, "a"), generation=1))
    assert [row.kind for row in rows] == ["rebalance", "became_empty", "rebalance"]
    assert (rows[2].joined, rows[2].incarnation) == (("a",), 10 + len(log))


def test_of_a_downgrade_whose_last_decision_was_not_read_nothing_is_compared() -> None:
    # The only record left from the time under the new protocol is not a target.
    log = [*read([metadata("a"), epoch(40)], 22), *downgrade(24, "a")]
    rows = churn(*log, make_record(30, even("orders", 4, "c"), generation=40), make_record(40, even("orders", 4, "c")))
    assert [(row.kind, row.incarnation) for row in rows] == [("migration", 30), ("rebalance", 40)]
    migration = rows[0]
    assert (migration.generation, migration.previous_generation, migration.generations_skipped) == (40, None, None)
    assert (migration.joined, migration.left, migration.partitions_moved) == (None, (), None)


def test_a_downgrade_is_not_verified_and_the_decision_after_it_is_again() -> None:
    life = Life.after(*before(), *read(CARRIED + JOINED), *back(), named(50))
    assert [(row.generation, row.verdict, row.reason) for row in life.rows.drift][-2:] == [
        (4, "unverified", "the group was downgraded from the KIP-848 protocol: the broker made this assignment"),
        (5, "identical", None),
    ]


def test_a_classic_group_made_right_after_a_consumer_group_was_deleted_is_created() -> None:
    log = [metadata("n"), epoch(1), target("n", 0, 1, 2, 3), stands(1), *gone("n"), epoch(2)]
    log += [(other_key(6, GROUP), None), (other_key(3, GROUP), None)]
    rows = churn(*read(log), make_record(10 + len(log), generation=0, protocol_type=""))
    assert [row.kind for row in rows] == ["rebalance", "became_empty", "created"]


def test_a_migrated_group_shows_nothing_of_its_classic_time() -> None:
    life = Life.after(
        *before(), *read([classic("a"), classic("b"), epoch(3)]), make_observation(20, group_type="consumer")
    )
    row = life.rows.group_health[-1]
    assert (row.verdict, row.state, row.strategy, row.generation) == ("pending", "Stable", None, None)


def test_of_a_downgrade_whose_topics_have_no_names_moves_are_null_and_members_are_told() -> None:
    inputs = [item for item in before() if item != named(6)]
    *_, migration, _ = churn(*inputs, *read(CARRIED + JOINED), *back())
    assert (migration.kind, migration.partitions_moved, migration.partitions_pending_handover) == ("migration", None, 0)
    assert (migration.left, migration.previous_generation) == (("n",), 4)


def test_lag_and_commits_go_on_under_the_same_group_through_both_migrations() -> None:
    life = Life()
    topic = make_topic("orders", 4, topic_id=TOPIC_ID, end=100)
    life.take(*before(), make_commit(7, 90), make_observation(8, topic))
    life.take(*read(CARRIED + JOINED), make_observation(24, topic, group_type="consumer"))
    life.take(*back(), make_commit(41, 95), make_observation(42, topic))
    partition = [row for row in life.rows.lag if row.partition == 0]
    assert [(row.committed_offset, row.member_id, row.ended) for row in partition][-1] == (95, "a", False)
    assert not any(row.ended for row in life.rows.lag)
    assert not any(row.ended for row in life.rows.group_health)


def test_a_migration_says_the_same_wherever_it_is_read_in_parts() -> None:
    inputs = [*before(), *read(CARRIED + JOINED), *back()]
    whole = rows_in_batches(inputs)
    for cut in range(1, len(inputs)):
        assert rows_in_batches(inputs, [cut]) == whole, cut
