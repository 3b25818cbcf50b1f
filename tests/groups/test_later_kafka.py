"""A later Kafka writes values that this release cannot read: nothing is said by the records before them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.offsets_log import Compactor
from streaming.records import GroupInput
from tests.groups.build import GROUP, SECOND, START, Life, make_observation, make_topic
from tests.offsets_log.written import (
    assignment,
    group_key,
    group_value,
    member,
    offset_key,
    offset_value,
    subscription,
)

Written = tuple[bytes, bytes | None]


def commit(offset: int, *, later: bool = False, partition: int = 0) -> Written:
    """A commit as Kafka 4 writes it, or with the next version of its value."""
    value = offset_value(4, offset)
    return offset_key(GROUP, "x", partition), b"\x00\x05" + value[2:] if later else value


def deleted(partition: int = 0) -> Written:
    return offset_key(GROUP, "x", partition), None


def membership(generation: int, owned: dict[str, list[int]], *, later: bool = False) -> Written:
    """Members that consume x, with what each owns, in the version of Kafka 4 or the next one."""
    members = [
        member(3, member_id=name, subscription=subscription(3, ["x"]), assignment=assignment(3, [("x", partitions)]))
        for name, partitions in owned.items()
    ]
    value = group_value(
        3, members, protocol_type="consumer", generation=generation, protocol="range", leader="a", timestamp=START
    )
    return group_key(GROUP), b"\x00\x04" + value[2:] if later else value


def read(first: int, log: Sequence[Written]) -> list[GroupInput]:
    codec = Compactor(0, 1, [], lambda _: True, lambda _: True)
    for record, (key, value) in enumerate(log, first):
        codec.add(record, START + record * SECOND, key, value)
    return [item for _, items in codec.groups() for item in items]


def take(life: Life, at: int, *log: Written, end: int | None = None) -> None:
    """Read records that are written from second `at` on, then a round ten seconds later; two partitions."""
    life.take(*read(at, log), make_observation(at + 10, make_topic("x", 2, end=at if end is None else end)))


def lag_of(life: Life, partition: int = 0) -> tuple[int | None, str, str | None]:
    row = [row for row in life.rows.lag if row.partition == partition][-1]
    return row.lag, row.lag_status, row.reason


def test_a_group_whose_commits_cannot_be_read_any_more_has_unknown_lag_and_has_not_stopped() -> None:
    life = Life()
    take(life, 10, membership(1, {"a": [0, 1]}))
    for at in range(20, 620, 10):
        take(life, at, commit(at), commit(at, partition=1))
    assert lag_of(life) == (0, "ok", None)
    for at in range(620, 1_220, 10):
        take(life, at, commit(at, later=True), commit(at, partition=1))
    assert lag_of(life) == (None, "unknown", "commit_unreadable")
    assert lag_of(life, 1) == (0, "ok", None)
    health = life.rows.group_health[-1]
    assert (health.lag_status, health.findings) == ("unknown", ())
    assert {row.lag_status for row in life.rows.lag} == {"no_commit", "ok", "unknown"}


@pytest.mark.parametrize(
    ("log", "lag"),
    [
        ((commit(50, later=True), commit(60)), (40, "ok", None)),
        ((commit(60), commit(50, later=True)), (None, "unknown", "commit_unreadable")),
        ((commit(50, later=True), deleted()), (None, "no_commit", "no_commit")),
        ((deleted(), commit(50, later=True)), (None, "unknown", "commit_unreadable")),
    ],
)
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_what_counts_is_the_newest_record_however_the_log_was_cut(
    log: tuple[Written, ...], lag: tuple[int | None, str, str | None], cut: int
) -> None:
    life = Life()
    take(life, 10, membership(1, {"a": [0, 1]}), commit(10), end=100)
    life.take(*read(21, log[:cut]))
    life.take(*read(21 + cut, log[cut:]), make_observation(30, make_topic("x", 2, end=100)))
    assert lag_of(life) == lag


def test_a_partition_whose_every_commit_is_unreadable_is_not_one_without_a_commit() -> None:
    life = Life()
    take(life, 10, commit(10, later=True))
    assert lag_of(life) == (None, "unknown", "commit_unreadable")
    for at in (400, 800, 1_200):
        take(life, at, membership(at, {"a": [0]}), commit(10, later=True))
        assert [one.finding for one in life.rows.group_health[-1].findings] != ["never_committed"]


def test_a_group_that_has_deleted_what_it_committed_unreadably_has_lost_nothing() -> None:
    life = Life()
    take(life, 10, membership(1, {"a": [0]}), commit(10), end=100)
    for at in (20, 40, 60):
        topic = make_topic("x", 1, end=1_000 * at, log_start_offsets=(900 * at).to_bytes(8, "little"))
        life.take(*read(at, [commit(900 * at, later=True)]), make_observation(at + 10, topic))
    assert {row.lost_records for row in life.rows.group_health} == {0}


def test_a_membership_that_cannot_be_read_leaves_no_verdict_and_no_finding_of_the_one_before_it() -> None:
    life = Life()
    take(life, 10, membership(1, {"a": [0], "b": [1]}))
    take(life, 30, membership(2, {"a": [0], "b": [0]}))
    assert life.rows.group_health[-1].verdict == "drifted"
    take(life, 50, membership(3, {"a": [0], "b": [1]}, later=True), membership(4, {"a": [0], "b": [1]}, later=True))
    health = life.rows.group_health[-1]
    reason = "the membership record at offset 50 cannot be read (see quarantine): what was decided since is not known"
    assert (health.verdict, health.verdict_reason) == ("unverified", reason)
    assert (health.drifted_count, health.imbalance, health.findings) == (0, None, ())
    take(life, 70, membership(5, {"a": [0], "b": [1]}))
    assert (life.rows.group_health[-1].verdict, life.rows.drift[-1].verdict) == ("identical", "identical")
