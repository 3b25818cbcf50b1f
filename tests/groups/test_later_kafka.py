"""A later Kafka writes values that this release cannot read: nothing is said by the records before them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.offsets_log import Compactor
from streaming.records import GroupInput
from tests.groups import modern_log
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


def later(record: Written) -> Written:
    """The record with the next version of its value; Kafka 4 writes version 0."""
    key, value = record
    return key, b"\x00\x01" + value[2:]


def follow(life: Life, at: int, *log: Written) -> None:
    """Read records of a group that the broker assigns, written from second `at` on, then a round ten seconds later."""
    life.take(*read(at, log), modern_log.observation(at + 10))


def said(life: Life) -> tuple[str, str | None, list[str]]:
    health = life.rows.group_health[-1]
    return health.verdict, health.verdict_reason, [one.finding for one in health.findings]


UNREAD = "the membership record at offset {} cannot be read (see quarantine): what was decided since is not known"
REASON = "the record at offset {} cannot be read (see quarantine): the group's members and targets are not known"

A_OWNS = {"a": [0]}
ENDS = [*modern_log.gone("a"), *((modern_log.other_key(kind, GROUP), None) for kind in (6, 3))]

# Records by the second from which on they are written, each followed by a round; then the verdict and its reason.
CLASSIC: dict[str, list[tuple[dict[int, list[Written]], tuple[str, str | None]]]] = {
    "the first record of the log": [
        ({0: [membership(1, A_OWNS, later=True)]}, ("unverified", UNREAD.format(0))),
    ],
    "members of an unreadable generation are not asked for commits": [
        (
            {10: [membership(1, {"a": [0, 1]})], 30: [membership(2, A_OWNS, later=True)], 400: [], 800: [], 1_200: []},
            ("unverified", UNREAD.format(30)),
        ),
    ],
    "a tombstone ends what could not be read": [
        (
            {10: [membership(1, A_OWNS), commit(5)], 30: [membership(2, A_OWNS, later=True)]},
            ("unverified", UNREAD.format(30)),
        ),
        (
            {50: [(group_key(GROUP), None)]},
            ("pending", "the group has members, but their assignment has not been seen yet"),
        ),
    ],
}
MODERN: dict[str, list[tuple[dict[int, list[Written]], tuple[str, str | None]]]] = {
    "a current assignment hides what was said of the decision before it": [
        ({10: modern_log.FIRST}, ("identical", None)),
        ({30: [later(modern_log.owns("a", 1, 0))]}, ("unverified", REASON.format(30))),
    ],
    "a group that ends takes along what could not be read of it": [
        ({10: [*modern_log.FIRST, later(modern_log.target("somebody else", 0))]}, ("unverified", REASON.format(15))),
        ({30: [*ENDS, *modern_log.FIRST]}, ("identical", None)),
    ],
}


@pytest.mark.parametrize(("cases", "case"), [(cases, case) for cases in (CLASSIC, MODERN) for case in cases])
def test_of_what_cannot_be_read_there_is_no_verdict_and_no_finding(
    cases: dict[str, list[tuple[dict[int, list[Written]], tuple[str, str | None]]]], case: str
) -> None:
    life = Life()
    for records, expected in cases[case]:
        for at, log in records.items():
            (take if cases is CLASSIC else follow)(life, at, *log)
        assert said(life) == (*expected, [])


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
    assert {row.member_id for row in life.rows.lag if row.round == 60} == {None}
    take(life, 70, membership(5, {"a": [0], "b": [1]}))
    assert (life.rows.group_health[-1].verdict, life.rows.drift[-1].verdict) == ("identical", "identical")


def test_targets_that_cannot_be_read_leave_no_verdict_no_finding_and_no_count_of_moves() -> None:
    life = Life()
    follow(life, 10, *modern_log.FIRST)
    assert said(life) == ("identical", None, [])
    new = (modern_log.target("a", 0, 1), modern_log.target("b", 2, 3))
    follow(life, 30, modern_log.metadata("b"), modern_log.epoch(2), *map(later, new), modern_log.stands(2))
    assert said(life) == ("unverified", REASON.format(32), [])
    for at in (400, 1_000, 2_000):
        follow(life, at)
    assert said(life) == ("unverified", REASON.format(32), [])
    churn = life.rows.rebalance_churn[-1]
    assert (churn.partitions_moved, churn.joined, churn.left) == (None, None, ())
    assert life.rows.drift[-1].verdict == "unverified"
    # Nor is it told who has what: b has no row, and a's is that of the decision before.
    assert {(row.member_id, row.decision) for row in life.rows.members} == {("a", 13)}
    assert {row.member_id for row in life.rows.lag if row.round == 40} == {None}
    # A release that can read them again, or an older broker: one row is not enough.
    follow(life, 2_100, new[0])
    assert said(life) == ("unverified", REASON.format(33), [])
    follow(life, 2_200, new[1])
    assert said(life)[0] != "drifted"
    follow(life, 2_300, modern_log.metadata("c"), modern_log.epoch(3), modern_log.target("c"), modern_log.stands(3))
    assert said(life)[:2] == (
        "unverified",
        "the previous target is not known: earlier records of the group may be missing",
    )
    follow(life, 2_400, modern_log.metadata("d"), modern_log.epoch(4), modern_log.target("d"), modern_log.stands(4))
    assert said(life)[1] is None or "cannot be read" not in said(life)[1]


@pytest.mark.parametrize("cut", range(5))
def test_what_cannot_be_read_of_a_group_does_not_depend_on_where_the_log_was_cut(cut: int) -> None:
    log = [
        modern_log.metadata("b"),
        modern_log.epoch(2),
        later(modern_log.target("b", 2, 3)),
        modern_log.target("b", 2),
    ]
    life = Life()
    follow(life, 10, *modern_log.FIRST)
    life.take(*read(30, log[:cut]))
    life.take(*read(30 + cut, log[cut:]), modern_log.observation(40))
    assert "cannot be read" not in (said(life)[1] or "")


def test_a_static_member_that_returns_has_no_row_while_its_target_cannot_be_read() -> None:
    life = Life()
    follow(life, 10, *modern_log.FIRST)
    before = len(life.rows.members)
    log = [*modern_log.gone("a"), modern_log.metadata("a2", "i"), later(modern_log.target("a2", 0, 1, 2, 3))]
    follow(life, 30, *log)
    assert life.rows.members[before:] == []
    follow(life, 50, modern_log.target("a2", 0, 1, 2, 3))
    assert [(row.member_id, row.ended) for row in life.rows.members[before:]] == [("a", True), ("a2", False)]


def test_rows_that_cannot_be_read_are_kept_by_name_up_to_a_limit_and_as_one_beyond() -> None:
    life = Life()
    follow(life, 10, *modern_log.FIRST, *(later(modern_log.target(f"m{number}", 0)) for number in range(1_500)))
    assert len(life.state.modern.unreadable) == 1_001
    follow(life, 2_000, *(modern_log.target(f"m{number}", 0) for number in range(1_500)))
    assert said(life)[0] == "unverified"
