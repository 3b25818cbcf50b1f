"""Findings about the topics of a group that the broker assigns: what nobody sees, and what its target lacks."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups import GroupConfig
from streaming.records import CONSUMER, Compacted, GroupInput, GroupObservation, KnownTopics, ModernMember
from tests.groups.build import GROUP, LOG_PARTITION, SECOND, START, Life, make_observation, make_topic
from tests.groups.coordinator import Written
from tests.groups.health.findings import detail, found
from tests.groups.modern_log import FIRST, TOPIC_ID, asking, epoch, metadata, owns, read, stands, target
from tests.offsets_log.written import member_metadata, other_key, regular_expression

GRACE_S = 600

# The rebalance timeout of `member_metadata`.
TIMEOUT_S = 300

NAMES: dict[str, str] = {"orders": TOPIC_ID}


def shows(at: int, **topics: int | None) -> GroupObservation:
    """A round that shows these topics with these partition counts."""
    seen = [make_topic(name, count, topic_id=NAMES.get(name, f"id-of-{name}")) for name, count in topics.items()]
    return make_observation(at, *seen, state=None, group_type="consumer")


def assigned(*rounds: GroupObservation, log: list[Written] = FIRST) -> Life:
    """A group with this log, then rounds."""
    life = Life.after(*read(log))
    for one in rounds:
        life.take(one)
    return life


def member_of(topics: list[str], regex: str | None = None) -> Written:
    return other_key(5, GROUP, "a"), member_metadata(topics, regex=regex, assignor="uniform")


def matches(regex: str, *topics: str) -> Written:
    return other_key(16, GROUP, regex), regular_expression(list(topics), 7, 8)


def test_partitions_that_one_round_shows_may_be_in_a_target_that_it_has_not_read() -> None:
    assert found(assigned(shows(20, orders=6))) == []
    life = assigned(shows(20, orders=6))
    second = [epoch(2), target("a", *range(6)), stands(2), owns("a", 2, *range(6))]
    life.take(*read(second, 21), shows(30, orders=6))
    assert found(life) == []


def test_new_partitions_are_stale_metadata_from_the_second_round_that_shows_them_on() -> None:
    life = assigned(shows(15, orders=4), shows(20, orders=6), shows(30, orders=6))
    assert found(life) == [("stale_metadata", 20)]
    assert detail(life) == "new partitions that the coordinator's target does not have: orders (4 to 6 partitions)"


def test_a_topic_that_is_not_watched_hides_no_other() -> None:
    log = [member_of(["aside", "orders"]), *FIRST[1:]]
    life = Life(GroupConfig("test", watches_topic=lambda topic: topic != "aside"))
    life.take(*read(log))
    for at in (15, 20, 30):
        life.take(shows(at, orders=4 if at == 15 else 6))
    assert found(life) == [("stale_metadata", 20)]


def test_stale_metadata_becomes_unassigned_after_the_grace() -> None:
    life = assigned(shows(20, orders=6), shows(30, orders=6), shows(20 + GRACE_S - 1, orders=6))
    assert found(life) == [("stale_metadata", 20)]
    life.take(shows(20 + GRACE_S, orders=6))
    assert found(life) == [("unassigned", 20)]
    assert detail(life) == "partitions without an owner: orders (4 to 6 partitions)"


def test_a_new_target_begins_the_grace_anew() -> None:
    life = assigned(shows(20, orders=6), shows(30, orders=6))
    life.take(*read([epoch(2), stands(2), owns("a", 2, *range(4))], 500))
    life.take(shows(510, orders=6), shows(20 + GRACE_S, orders=6))
    assert found(life) == [("stale_metadata", 510)]


def test_a_topic_that_was_created_again_is_new_to_the_coordinator_however_long_its_name_is_known() -> None:
    life = assigned(*(shows(at, orders=4) for at in range(20, 2_000, 300)))
    for at in (2_010, 2_020):
        life.take(make_observation(at, make_topic("orders", 4, topic_id="another"), state=None, group_type="consumer"))
    assert ("stale_metadata", 2_010) in found(life)
    assert "unassigned" not in {name for name, _ in found(life)}


def test_a_topic_that_a_member_has_just_subscribed_to_is_not_called_stale_while_the_target_is_made() -> None:
    log = [*FIRST, (other_key(5, GROUP, "a"), member_metadata(["orders", "old"], assignor="uniform")), epoch(2)]
    life = assigned(shows(30, orders=4, old=3), shows(40, orders=4, old=3), log=log)
    assert found(life) == []
    life.take(shows(30 + GRACE_S, orders=4, old=3))
    assert ("unassigned", 30) in found(life)


def test_a_target_with_holes_is_unassigned_after_the_members_timeout() -> None:
    holes = [metadata("a", "i"), epoch(1), target("a", 0, 3), stands(1), owns("a", 1, 0, 3)]
    life = assigned(shows(20, orders=4), shows(13 + TIMEOUT_S, orders=4), log=holes)
    assert found(life) == []
    life.take(shows(14 + TIMEOUT_S, orders=4))
    assert found(life) == [("unassigned", 13)]
    assert detail(life) == "partitions without an owner: orders (2 partitions)"


def test_a_member_that_is_gone_leaves_holes_until_the_next_target_which_has_its_time() -> None:
    both = [*FIRST, asking("b", "uniform"), epoch(2), target("a", 0, 1), target("b", 2, 3), stands(2)]
    left = [(other_key(key, GROUP, "b"), None) for key in (8, 7, 5)]
    life = assigned(shows(40, orders=4), log=[*both, owns("a", 2, 0, 1), owns("b", 2, 2, 3), *left, epoch(3)])
    life.take(shows(40 + GRACE_S - 1, orders=4))
    assert "unassigned" not in {name for name, _ in found(life)}
    life.take(shows(40 + GRACE_S, orders=4))
    assert found(life) == [("unassigned", 40)]
    assert detail(life) == "partitions without an owner: orders (2 partitions)"


def test_the_longest_timeout_of_the_members_counts() -> None:
    two = [*FIRST[:1], asking("b", "uniform"), epoch(1), target("a", 0), target("b", 3), stands(1)]
    inputs = [*read([*two, owns("a", 1, 0), owns("b", 1, 3)])]
    for at, timeout in ((0, 10), (1, 400)):
        member = inputs[at]
        assert isinstance(member, ModernMember)
        inputs[at] = msgspec.structs.replace(member, rebalance_timeout=timeout * SECOND)
    # A target that nobody is sure to be the first one is not judged: another follows.
    life = Life.after(*inputs, *read([epoch(2), stands(2), owns("a", 2, 0), owns("b", 2, 3)], 20))
    life.take(shows(30, orders=4), shows(421, orders=4))
    assert "unassigned" not in {name for name, _ in found(life)}
    life.take(shows(422, orders=4))
    assert ("unassigned", 21) in found(life)


def test_the_record_of_an_older_broker_tells_how_many_partitions_it_knew() -> None:
    known = KnownTopics(9, START, CONSUMER, LOG_PARTITION, ((TOPIC_ID, "orders", 6),))
    life = Life.after(known, *read(FIRST), shows(20, orders=8), shows(30, orders=8))
    assert detail(life) == "new partitions that the coordinator's target does not have: orders (6 to 8 partitions)"


@pytest.mark.parametrize("seen", [{"orders": 4}, {"orders": 4, "lost": None}])
def test_a_topic_subscribed_by_name_is_not_visible_from_the_second_round_on(seen: dict[str, int | None]) -> None:
    log = [member_of(["lost", "orders"]), *FIRST[1:]]
    assert found(assigned(shows(20, **seen), log=log)) == []
    life = assigned(shows(20, **seen), shows(30, **seen), log=log)
    assert found(life) == [("topic_not_visible", 20)]
    assert detail(life) == "subscribed, but not visible: lost"
    life.take(shows(40, orders=4, lost=1), shows(50, orders=4, lost=1))
    assert found(life) == [("stale_metadata", 40)]


def test_a_deleted_topic_may_stay_among_those_of_a_regular_expression_for_ever() -> None:
    log = [member_of([], "o.*"), matches("o.*", "orders", "old"), *FIRST[1:]]
    rounds = [shows(20, orders=4, old=2), shows(30, orders=4), shows(40 + GRACE_S, orders=4), shows(9_000, orders=4)]
    assert found(assigned(*rounds[1:], log=log)) == []

    assert [name for name, _ in found(assigned(*rounds, log=log))] == []


def test_a_topic_of_a_regular_expression_that_the_target_has_and_no_round_shows_is_found_after_the_grace() -> None:
    log = [member_of([], "o.*"), matches("o.*", "old", "orders"), *FIRST[1:]]
    for first in ([shows(20, orders=4)], []):
        life = assigned(*first, shows(30), shows(40), shows(30 + GRACE_S - 1), log=log)
        assert found(life) == []
        life.take(shows(30 + GRACE_S))
        assert [name for name, _ in found(life)] == ["topic_not_visible"]
        # Of a topic whose id no round has shown nobody knows whether it is old or orders that the target has.
        names = "orders" if first else "old, orders"
        assert detail(life) == f"subscribed, but not visible: {names}"


def test_of_a_regular_expression_that_is_not_resolved_nothing_is_said() -> None:
    log = [member_of([], "o.*"), *FIRST[1:]]
    assert found(assigned(shows(20, orders=4), shows(2_000, orders=4), log=log)) == []


def test_a_topic_that_the_filters_leave_out_is_not_missed() -> None:
    life = Life(GroupConfig("test", watches_topic=lambda topic: topic != "lost"))
    life.take(*read([member_of(["lost", "orders"]), *FIRST[1:]]), shows(20, orders=4), shows(2_000, orders=4))
    assert found(life) == []


def test_while_the_log_is_blocked_nobody_knows_whether_there_is_a_new_target() -> None:
    blocked: list[GroupInput] = [
        make_observation(
            at,
            make_topic("orders", 6, topic_id=TOPIC_ID),
            state=None,
            group_type="consumer",
            held_since=START + 15 * SECOND,
        )
        for at in (20, 30, 2_000)
    ]
    life = Life.after(*read(FIRST), *blocked)
    assert [name for name, _ in found(life)] == ["offsets_blocked"]


def test_what_a_target_lacked_before_the_log_was_blocked_it_lacks_still() -> None:
    life = assigned(shows(20, orders=6), shows(30, orders=6))
    assert [name for name, _ in found(life)] == ["stale_metadata"]
    topic = make_topic("orders", 6, topic_id=TOPIC_ID)
    blocked = {"state": None, "group_type": "consumer", "held_since": START + 35 * SECOND}
    life.take(make_observation(40, topic, **blocked), make_observation(2_000, topic, **blocked))
    assert [name for name, _ in found(life)] == ["offsets_blocked", "stale_metadata"]
    life.take(shows(2_010, orders=6))
    assert [name for name, _ in found(life)] == ["unassigned"]


def test_after_compaction_has_removed_records_a_target_shows_first_who_is_still_there() -> None:
    life = assigned(shows(15, orders=4))
    life.take(Compacted(16, 20), shows(30, orders=6), shows(40, orders=6), shows(2_000, orders=6))
    assert found(life) == []
    life.take(*read([epoch(2), stands(2), owns("a", 2, *range(4))], 2_001))
    life.take(shows(2_010, orders=6), shows(2_020, orders=6))
    assert found(life) == [("stale_metadata", 2_010)]


def test_a_group_without_members_lacks_nothing() -> None:
    gone = [(other_key(key, GROUP, "a"), None) for key in (8, 7, 5)]
    assert found(assigned(shows(30, orders=9), shows(2_000, orders=9), log=[*FIRST, *gone, epoch(2)])) == []


def test_thousands_of_topics_that_do_not_exist_do_not_make_the_state_larger_without_end() -> None:
    topics = [f"t{number}" for number in range(5_000)]
    life = assigned(shows(20, orders=4), shows(30, orders=4), log=[member_of(topics), *FIRST[1:]])
    assert detail(life) == "subscribed, but not visible: t0, t1, t10 and 97 more"
    assert life.state is not None
    assert len(life.state.findings) <= 101


def test_members_without_partitions_are_not_called_idle_while_a_topic_of_theirs_is_missing() -> None:
    two = [*FIRST, (other_key(5, GROUP, "b"), member_metadata(["lost"])), epoch(2), target("b"), stands(2)]
    life = assigned(shows(30, orders=4), shows(40, orders=4), log=[*two, owns("a", 2, *range(4)), owns("b", 2)])
    assert found(life) == [("topic_not_visible", 30)]


def test_topics_that_the_target_has_whole_cost_no_memory() -> None:
    life = assigned(shows(20, orders=4), shows(30, orders=4))
    assert life.state is not None
    assert life.state.findings == {}
