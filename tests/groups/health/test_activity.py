"""Findings about what members do not do: a rebalance that does not end, members that own nothing."""

from __future__ import annotations

import pytest

from streaming.records import GroupInput
from tests.groups.build import (
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
    packed,
)
from tests.groups.health.findings import detail, found
from tests.groups.modern_log import FIRST, epoch, metadata, observation, owns, read, stands, target

# The rebalance timeout of `make_member`.
TIMEOUT_S = 300


def watched(*states: tuple[int, str], life: Life | None = None) -> Life:
    """A group of two, with rounds that show these states at these seconds."""
    if life is None:
        life = Life.after(make_record(5, even("x", 2, "a", "b")), make_observation(10, make_topic("x", 2)))
    for at, state in states:
        life.take(make_observation(at, make_topic("x", 2), state=state))
    return life


def test_a_rebalance_within_the_timeout_is_no_finding() -> None:
    life = watched((20, "PreparingRebalance"), (20 + TIMEOUT_S, "PreparingRebalance"))
    assert found(life) == []


@pytest.mark.parametrize(
    ("state", "task"),
    [("PreparingRebalance", "join again"), ("CompletingRebalance", "get their assignments from the leader")],
)
def test_a_phase_that_lasts_longer_than_the_timeout_is_stuck_since_its_first_round(state: str, task: str) -> None:
    life = watched((20, state), (21 + TIMEOUT_S, state))
    assert found(life) == [("stuck_rebalance", 20)]
    assert detail(life) == (
        f"{state}: the members of the last generation (2) have 300 s to {task}, and no generation has followed"
    )


def test_a_second_phase_has_a_timeout_of_its_own() -> None:
    life = watched((20, "PreparingRebalance"), (300, "CompletingRebalance"), (590, "CompletingRebalance"))
    assert found(life) == []
    assert found(watched((601, "CompletingRebalance"), life=life)) == [("stuck_rebalance", 20)]


def test_a_rebalance_that_begins_again_and_again_is_stuck_after_three_timeouts() -> None:
    turns = [(at, ("PreparingRebalance", "CompletingRebalance")[at // 100 % 2]) for at in range(20, 920, 100)]
    life = watched(*turns)
    assert found(life) == []
    assert found(watched((921, "PreparingRebalance"), life=life)) == [("stuck_rebalance", 20)]


def test_rebalances_that_end_between_the_rounds_are_not_one_that_lasts() -> None:
    life = watched((20, "PreparingRebalance"))
    for number, at in enumerate(range(100, 2_000, 100)):
        life.take(make_record(at, even("x", 2, "a", "b"), generation=2 + number))
        watched((at + 10, "PreparingRebalance"), life=life)
        assert found(life) == []


def test_a_stuck_rebalance_ends_with_a_round_that_shows_another_state() -> None:
    life = watched((20, "PreparingRebalance"), (400, "PreparingRebalance"), (410, "Stable"))
    assert found(life) == []
    assert found(watched((420, "PreparingRebalance"), life=life)) == []


def test_while_the_log_is_blocked_nobody_knows_whether_a_generation_has_followed() -> None:
    life = watched((20, "PreparingRebalance"))
    life.take(make_observation(400, make_topic("x", 2), state="PreparingRebalance", held_since=START + 30 * SECOND))
    assert [name for name, _ in found(life)] == ["offsets_blocked"]


def test_while_the_log_is_blocked_a_rebalance_that_was_stuck_stays_so_and_is_watched_on() -> None:
    blocked = {"state": "PreparingRebalance", "held_since": START + 380 * SECOND}
    life = watched((20, "PreparingRebalance"), (370, "PreparingRebalance"))
    assert found(life) == [("stuck_rebalance", 20)]
    life.take(make_observation(390, make_topic("x", 2), **blocked))
    assert found(life) == [("offsets_blocked", 380), ("stuck_rebalance", 20)]
    assert found(watched((400, "PreparingRebalance"), life=life)) == [("stuck_rebalance", 20)]


def test_what_turns_out_to_have_been_one_rebalance_when_the_log_goes_on_is_stuck_at_once() -> None:
    blocked = {"state": "PreparingRebalance", "held_since": START + 30 * SECOND}
    life = watched((20, "PreparingRebalance"))
    life.take(make_observation(400, make_topic("x", 2), **blocked))
    assert [name for name, _ in found(life)] == ["offsets_blocked"]
    assert found(watched((410, "PreparingRebalance"), life=life)) == [("stuck_rebalance", 20)]


def test_of_a_first_rebalance_whose_timeouts_nobody_knows_nothing_is_said() -> None:
    life = Life()
    watched((20, "PreparingRebalance"), (20_000, "PreparingRebalance"), life=life)
    assert found(life) == []


def test_a_rebalance_before_an_outage_and_one_after_it_are_not_one_that_lasts() -> None:
    life = watched()
    for at, elapsed in ((20, 20), (3_620, 50), (3_630, 60)):
        life.take(make_observation(at, make_topic("x", 2), state="PreparingRebalance", elapsed=elapsed * SECOND))
    assert found(life) == []


def test_more_members_than_partitions_leave_some_idle_since_the_decision() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b", "c", "d")), make_observation(10, make_topic("x", 2)))
    assert found(life) == [("idle_members", 5)]
    assert detail(life) == "2 of 4 members own nothing, there are 2 partitions for 4 members: c, d"


def test_a_strategy_that_leaves_members_idle_is_named() -> None:
    life = Life()
    members = (
        make_member("a", ("x", "y"), {"x": (0,), "y": (0,)}),
        make_member("b", ("x", "y"), {}),
    )
    life.take(make_record(5, members), make_observation(10, make_topic("x", 1), make_topic("y", 1)))
    assert detail(life) == "1 of 2 members own nothing, range assigns 2 partitions for 2 members so: b"


def test_members_that_subscribe_to_something_else_do_not_count_as_sharing() -> None:
    life = Life()
    members = (
        make_member("a", ("x",), {"x": (0,)}),
        make_member("b", ("x",), {}),
        make_member("c", ("y",), {"y": (0, 1, 2)}),
    )
    life.take(make_record(5, members), make_observation(10, make_topic("x", 1), make_topic("y", 3)))
    assert detail(life) == "1 of 3 members own nothing, there is 1 partition for 2 members: b"


def test_while_the_leader_has_not_seen_new_partitions_nobody_is_called_idle() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b", "c")), make_observation(10, make_topic("x", 3)))
    assert [name for name, _ in found(life)] == ["stale_metadata"]


def test_a_member_that_subscribes_to_nothing_is_not_called_idle() -> None:
    life = Life()
    members = (make_member("a", ("x",), {"x": (0,)}), make_member("b", (), {}))
    life.take(make_record(5, members), make_observation(10, make_topic("x", 1)))
    assert found(life) == []


def test_a_member_whose_topic_is_not_visible_is_not_called_idle() -> None:
    life = Life()
    members = (make_member("a", ("x",), {"x": (0,)}), make_member("b", ("y",), {}))
    life.take(make_record(5, members), make_observation(10, make_topic("x", 1)))
    assert [name for name, _ in found(life)] == ["topic_not_visible"]


def test_members_that_wait_for_a_handover_are_not_idle() -> None:
    life = Life()

    def generation(at: int, number: int, **owned: tuple[int, ...]) -> None:
        members = [make_member(name, ("x",), {"x": of} if of else {}) for name, of in owned.items()]
        record = make_record(at, members, generation=number, protocol="cooperative-sticky")
        life.take(record, make_observation(at + 1, make_topic("x", 3)))

    generation(5, 1, a=(0, 1, 2))
    generation(15, 2, a=(0, 1), b=())
    assert [name for name, _ in found(life)] == ["partitions_pending_handover"]
    generation(25, 3, a=(0, 1), b=(2,))
    assert found(life) == []


def test_a_member_that_the_broker_gives_nothing_is_idle_once_the_target_is_reached() -> None:
    life = Life.after(*read(FIRST), observation(15))
    second = [metadata("b"), epoch(2), target("a", 0, 1, 2, 3), target("b"), stands(2), owns("a", 2, 0, 1, 2, 3)]
    life.take(*read(second, 15), observation(21))
    assert [name for name, _ in found(life)] == ["reconciling"]
    life.take(*read([owns("b", 2)], 21), observation(22))
    assert found(life) == [("idle_members", 19)]
    assert detail(life) == "1 of 2 members own nothing, the broker assigns 4 partitions for 2 members so: b"


def test_records_that_have_just_come_need_not_be_committed_yet() -> None:
    life = consuming((10, 100), (1_200, 100), (1_210, 150))
    assert found(life) == []
    life.take(make_observation(1_810, make_topic("x", 2, end=150)))
    assert found(life) == [("never_committed", 1_200)]


def test_members_that_have_just_come_back_are_given_their_time() -> None:
    life = consuming((10, 100), (300, 150))
    life.take(make_record(400, (), generation=2), make_record(3_595, even("x", 2, "a", "b"), generation=3))
    life.take(make_observation(3_600, make_topic("x", 2, end=500)))
    assert found(life) == []


def consuming(*ends: tuple[int, int]) -> Life:
    """A group of two that owns x, with rounds that show these high watermarks at these seconds."""
    life = Life.after(make_record(5, even("x", 2, "a", "b")))
    for at, end in ends:
        life.take(make_observation(at, make_topic("x", 2, end=end)))
    return life


def test_members_that_own_partitions_where_records_arrive_and_commit_nothing_are_a_finding_after_ten_minutes() -> None:
    life = consuming((10, 100), (300, 150), (609, 200))
    assert found(life) == []
    life.take(make_observation(610, make_topic("x", 2, end=200)))
    assert found(life) == [("never_committed", 10)]
    assert detail(life) == "records arrive in the group's partitions, and the group has never committed"
    life.take(make_commit(620, 90, topic="x"), make_observation(630, make_topic("x", 2, end=200)))
    assert found(life) == []


def test_a_commit_of_offset_0_is_a_commit() -> None:
    life = consuming((10, 100), (300, 150))
    life.take(make_commit(400, 0, topic="x"), make_observation(2_000, make_topic("x", 2, end=200)))
    assert "never_committed" not in [name for name, _ in found(life)]


def test_a_group_where_nothing_arrives_has_nothing_to_commit() -> None:
    assert found(consuming((10, 100), (300, 100), (2_000, 100))) == []


def test_a_transaction_that_stays_open_is_nothing_that_arrives() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b")))
    for at in (10, 300, 2_000):
        life.take(make_observation(at, make_topic("x", 2, end=150, last_stable_offsets=packed([100, 100]))))
    assert found(life) == []


def test_a_single_offset_that_arrives_may_be_a_transaction_marker() -> None:
    life = Life.after(make_record(5, (make_member("a", ("x",), {"x": (0,)}),)))
    life.take(make_observation(10, make_topic("x", 1, end=100)), make_observation(700, make_topic("x", 1, end=101)))
    assert found(life) == []


def test_a_group_without_members_is_not_asked_for_commits() -> None:
    life = consuming((10, 100), (300, 150))
    life.take(make_record(400, (), generation=2), make_observation(2_000, make_topic("x", 2, end=300)))
    assert found(life) == []


def test_what_may_be_hidden_behind_an_open_transaction_is_not_called_missing() -> None:
    life = consuming((10, 100))
    for at in (300, 700, 900):
        life.take(make_observation(at, make_topic("x", 2, end=at), held_since=START + 20 * SECOND))
    assert [name for name, _ in found(life)] == ["offsets_blocked"]


def test_a_commit_that_may_be_there_unread_keeps_the_finding_away_also_where_records_came_before_the_hold() -> None:
    life = consuming((10, 100), (20, 200))
    for at in (300, 700, 900):
        life.take(make_observation(at, make_topic("x", 2, end=at), held_since=START + 25 * SECOND))
        assert [name for name, _ in found(life)] == ["offsets_blocked"]
    life.take(make_commit(901, 150, topic="x"), make_observation(910, make_topic("x", 2, end=1_000)))
    assert found(life) == []


def rebalancing(*seconds: int) -> list[GroupInput]:
    return [make_record(at, even("x", 2, "a", "b"), generation=at) for at in seconds]


def test_a_storm_is_a_finding_however_the_log_was_cut_and_ends_with_it() -> None:
    burst = rebalancing(5, *range(7_200, 7_260, 10))
    rounds = [make_commit(7_261, 1, topic="x"), make_observation(7_270, make_topic("x", 2))]
    at_once, one_by_one = Life(), Life()
    at_once.take(*burst, *rounds)
    for item in (*burst, *rounds):
        one_by_one.take(item)
    assert found(at_once) == found(one_by_one) == [("rebalance_storm", 7_200)]
    at_once.take(make_observation(7_900, make_topic("x", 2)))
    assert found(at_once) == []


def test_a_group_that_was_created_again_has_no_past_to_compare_with() -> None:
    life = Life.after(*rebalancing(5), make_tombstone(7_000), *rebalancing(*range(7_200, 7_260, 10)))
    life.take(make_commit(7_261, 1, topic="x"), make_observation(7_270, make_topic("x", 2)))
    assert found(life) == []
