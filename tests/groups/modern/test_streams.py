"""Streams groups: tasks are shown as the partitions that they read, as far as log and rounds tell which these are."""

from __future__ import annotations

from streaming.groups.rows import TopicAssignment
from streaming.records import (
    STREAMS,
    CurrentAssignment,
    GroupEpoch,
    GroupInput,
    ModernMember,
    StreamsTopology,
    TargetAssignment,
    TargetEpoch,
)
from tests.groups.build import LOG_PARTITION, SECOND, START, Life, make_commit, make_observation, make_topic

Sources = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def lived(*subtopologies: Sources, tasks: tuple[tuple[str, tuple[int, ...]], ...]) -> list[GroupInput]:
    """The records of a group of one member, in the order of a 4.3.1 broker, from offset 10 on."""
    at = [(offset, START + offset * SECOND, STREAMS, LOG_PARTITION) for offset in range(10, 16)]
    return [
        ModernMember(*at[0], "a", None, None, "client", "/10.0.0.1", ()),
        StreamsTopology(*at[1], 1, subtopologies),
        GroupEpoch(*at[2], 1),
        TargetAssignment(*at[3], "a", tasks),
        TargetEpoch(*at[4], 1),
        CurrentAssignment(*at[5], "a", 1, 0, 0, tasks),
    ]


def told(*inputs: GroupInput) -> tuple[tuple[TopicAssignment, ...] | None, int | None, str | None]:
    life = Life()
    topics = make_topic("orders", 3), make_topic("bills", 2)
    (row,) = life.take(*inputs, make_observation(20, *topics, state=None, group_type="streams")).members
    return row.partitions, row.partition_count, row.undecodable


def test_a_task_is_told_as_the_partition_that_it_reads() -> None:
    inputs = lived(("0", ("orders",), (), ()), ("1", (), (), ("counted",)), tasks=(("0", (0, 2)), ("1", (1,))))
    assert told(*inputs) == ((TopicAssignment("counted", (1,)), TopicAssignment("orders", (0, 2))), 3, None)


def test_members_subscribe_to_what_their_topology_reads() -> None:
    life = Life()
    inputs = lived(("0", ("orders",), (), ()), ("1", ("bills",), (), ("counted",)), tasks=(("0", (0,)),))
    (row,) = life.take(*inputs, make_observation(20, make_topic("orders", 3), state=None, group_type="streams")).members
    assert row.subscription == ("bills", "orders")
    (row,) = Life().take(*lived(tasks=()), make_observation(20, state=None, group_type="streams")).members
    assert row.subscription is None


def test_a_task_reads_of_each_topic_of_its_subtopology_what_there_is() -> None:
    inputs = lived(("0", ("bills", "orders"), (), ()), tasks=(("0", (0, 1, 2)),))
    assert told(*inputs)[0] == (TopicAssignment("bills", (0, 1)), TopicAssignment("orders", (0, 1, 2)))


def test_what_a_task_reads_is_not_guessed() -> None:
    reason = "the partitions that its tasks read are not known"
    assert told(*lived(("0", (), ("or.*",), ()), tasks=(("0", (0,)),))) == (None, 1, reason)
    assert told(*lived(("0", ("orders", "unseen"), (), ()), tasks=(("0", (0,)),))) == (None, 1, reason)
    assert told(*lived(tasks=(("0", (0,)),))) == (None, 1, reason)


def test_lag_names_the_member_whose_task_reads_the_partition() -> None:
    life = Life()
    commits = [make_commit(16, 90, partition=0), make_commit(17, 90, partition=1)]
    topic = make_topic("orders", 3, end=100)
    inputs = lived(("0", ("orders",), (), ()), tasks=(("0", (0,)),))
    rows = life.take(*inputs, *commits, make_observation(20, topic, state=None, group_type="streams"))
    assert [(row.partition, row.lag, row.member_id, row.subtopology) for row in rows.lag] == [
        (0, 10, "a", "0"),
        (1, 10, None, "0"),
        (2, None, None, "0"),
    ]


def test_each_member_is_named_for_the_partitions_of_its_own_tasks() -> None:
    first = lived(("0", ("orders",), (), ()), tasks=(("0", (0,)),))
    at = [(offset, START + offset * SECOND, STREAMS, LOG_PARTITION) for offset in range(16, 21)]
    tasks = (("0", (1, 2)),)
    second = [
        ModernMember(*at[0], "b", None, None, "client", "/10.0.0.1", ()),
        GroupEpoch(*at[1], 2),
        TargetAssignment(*at[2], "b", tasks),
        TargetEpoch(*at[3], 2),
        CurrentAssignment(*at[4], "b", 2, 0, 0, tasks),
    ]
    topic = make_topic("orders", 3, end=100)
    commits = [make_commit(25 + p, 90, partition=p) for p in range(3)]
    rows = Life().take(*first, *second, *commits, make_observation(30, topic, state=None, group_type="streams"))
    assert [(row.partition, row.member_id) for row in rows.lag] == [(0, "a"), (1, "b"), (2, "b")]
