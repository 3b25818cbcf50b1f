"""Members' claims and subscriptions cannot make a verdict or a row arbitrarily expensive; nothing else changes."""

from __future__ import annotations

import struct
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pytest

from assignors import Group, Subscription, assign, at_most
from assignors.clients.sticky.claims import write_sticky
from streaming.groups import GroupConfig
from streaming.groups import context as budget
from streaming.groups.rows import DriftedPartition, DriftRow
from streaming.records import GroupInput, Member, MembershipRecord
from tests.examples import ends
from tests.groups.build import (
    Life,
    counted,
    even,
    make_member,
    make_observation,
    make_record,
    make_topic,
    rows_in_batches,
)
from tests.groups.modern_log import FIRST, SECOND_MEMBER, observation, read
from tests.groups.verdicts import seen_for_long, verdict_of

pytestmark = pytest.mark.turn(6)

PLENTY = 10**12

FAR = 1_300_000


def far_beyond(*, generation: int = 5) -> tuple[Member, ...]:
    """Three members of a sticky group with three partitions of x, the last of them far beyond the count."""
    return tuple(
        make_member(
            name,
            ("x",),
            {"x": (number,)},
            subscription_version=1,  # of Java 2.4 to 3.3, whose oldest leaders take the longest
            user_data=write_sticky((("x", (number,)),), generation),
        )
        for name, number in (("a", 0), ("b", 1), ("c", FAR))
    )


@pytest.mark.parametrize("protocol", ["sticky", "cooperative-sticky", "range", "roundrobin"])
def test_a_partition_far_beyond_what_rounds_have_seen_is_not_recomputed(protocol: str) -> None:
    # This is the first round with the topic: it may have had as many partitions before.
    life = Life.after(make_record(5, far_beyond(), protocol=protocol), make_observation(10, make_topic("x", 3)))
    assert life.rows.drift == [], "a coming round may show so many partitions"
    tracemalloc.start()
    try:
        with at_most(PLENTY) as work:
            life.take(make_observation(5 + 600, make_topic("x", 3)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    row = verdict_of(life)
    assert (row.verdict, row.drifted_partitions) == ("unverified", ())
    assert row.reason == (
        f"it assigns partition {FAR} of topic 'x', of which rounds have seen 3 partitions: too many to recompute"
    )
    assert work.spent < 1_000
    assert peak < 1_000_000


def test_topics_that_are_all_a_little_beyond_are_not_recomputed_either() -> None:
    topics = tuple(f"x{number}" for number in range(200))
    member = make_member("a", topics, dict.fromkeys(topics, (0, 90)))
    life = Life.after(
        make_record(5, [member]),
        make_observation(10, *(make_topic(topic, 1) for topic in topics)),
        make_observation(605, *(make_topic(topic, 1) for topic in topics)),
    )
    row = verdict_of(life)
    assert row.verdict == "unverified"
    assert row.reason == (
        "it assigns partitions as if its topics had 18200 together, and rounds have seen 200: too many to recompute"
    )


def test_a_partition_that_the_topic_surely_never_had_is_still_drift() -> None:
    life = Life()
    seen_for_long(life, ("x", 3))
    life.take(make_record(2000, far_beyond(), protocol="range"), make_observation(2005, make_topic("x", 3)))
    assert life.rows.drift == []
    life.take(make_observation(2600, make_topic("x", 3)))
    row = verdict_of(life)
    assert (row.verdict, row.reason) == ("drifted", "members own partitions that do not exist")
    assert row.drifted_partitions == (DriftedPartition("x", FAR, "misplaced", None, ("c",)),)


def test_a_partition_of_two_members_is_drift_at_once_however_far_it_is() -> None:
    members = [make_member(name, ("x",), {"x": (FAR,)}) for name in "ab"]
    life = Life.after(make_record(5, members), make_observation(10, make_topic("x", 3)))
    assert verdict_of(life).drifted_partitions == (DriftedPartition("x", FAR, "doubly_assigned", None, ("a", "b")),)


def test_a_topic_that_has_grown_a_thousandfold_is_identical_once_a_round_shows_it() -> None:
    life = Life()
    seen_for_long(life, ("x", 3))
    life.take(make_record(2000, even("x", 3_000, "a", "b")), make_observation(2005, make_topic("x", 3)))
    assert life.rows.drift == []
    life.take(make_observation(2015, make_topic("x", 3_000)))
    assert verdict_of(life).verdict == "identical"


@pytest.mark.parametrize(("count", "begins"), [(106, "it fits a partition count of topic 'x'"), (107, "it assigns")])
def test_up_to_twice_what_rounds_have_seen_and_a_hundred_a_leader_is_recomputed(count: int, begins: str) -> None:
    life = Life.after(
        make_record(5, even("x", count, "a", "b")),
        make_observation(10, make_topic("x", 3)),
        make_observation(605, make_topic("x", 3)),
    )
    assert verdict_of(life).verdict == "unverified"
    assert str(verdict_of(life).reason).startswith(begins)


def test_what_members_keep_of_a_topic_that_was_made_again_far_smaller_is_identical() -> None:
    # Java from 3.0 on leaves members partitions that their topic no longer has.
    had = {"a": range(500), "b": range(500, 1_000)}
    subscribed = {"a": ("x",), "b": ("x", "y")}
    told = tuple(
        Subscription(name, subscribed[name], user_data=write_sticky((("x", tuple(numbers)),), 4))
        for name, numbers in had.items()
    )
    given = assign("sticky", Group(told, {"x": 3, "y": 3}), "java:3.7.1")
    assert max(given["b"]["x"]) >= 500
    members = [make_member(m.member_id, m.topics, given[m.member_id], user_data=m.user_data) for m in told]
    life = Life.after(
        make_record(5, members, protocol="sticky"),
        make_observation(10, make_topic("x", 3), make_topic("y", 3)),
        make_observation(605, make_topic("x", 3), make_topic("y", 3)),
    )
    assert verdict_of(life).verdict == "identical"


T100 = tuple(f"t{number:02d}" for number in range(100))


def group_of(members: int, topics: Mapping[str, int], *, kinds: int = 1) -> Group:
    """Members that list all topics; or, with several kinds, all but one in `kinds` of them."""
    names = [f"m{place:04d}-{place * 7919 % 100_003:x}" for place in range(members)]
    return Group(
        tuple(
            Subscription(name, tuple(t for at, t in enumerate(topics) if kinds == 1 or (at + place) % kinds))
            for place, name in enumerate(names)
        ),
        topics,
    )


def members_of(group: Group, strategy: str, had: Mapping[str, Mapping[str, Sequence[int]]]) -> list[Member]:
    """The members with the assignment of a Java leader, given their previous partitions."""
    told = []
    for member in group.members:
        owned = tuple((topic, tuple(numbers)) for topic, numbers in had.get(member.member_id, {}).items())
        data = struct.pack(">i", 4 if owned else -1)
        if strategy == "sticky":
            data, owned = write_sticky(owned, 4), ()
        told.append(
            Subscription(member.member_id, member.topics, owned, 4 if owned else None, None, None, data)
            if "sticky" in strategy
            else member
        )
    given = assign(strategy, Group(tuple(told), group.partitions_per_topic))
    return [
        make_member(
            member.member_id,
            member.topics,
            {topic: tuple(numbers) for topic, numbers in given[member.member_id].items()},
            owned=member.owned,
            generation=member.generation,
            user_data=member.user_data,
        )
        for member in told
    ]


@pytest.mark.parametrize("strategy", ends(["range", "roundrobin", "sticky", "cooperative-sticky"]))
@pytest.mark.parametrize("kinds", [pytest.param(1, marks=pytest.mark.nightly), 5])
def test_a_group_of_a_thousand_members_and_ten_thousand_partitions_is_identical(strategy: str, kinds: int) -> None:
    group = group_of(1_000, dict.fromkeys(T100, 100), kinds=kinds)
    before = assign(strategy, Group(group.members[:-1], group.partitions_per_topic))
    life = Life()
    seen_for_long(life, *group.partitions_per_topic.items())
    with at_most(PLENTY) as work:
        life.take(
            make_record(2000, members_of(group, strategy, before if "sticky" in strategy else {}), protocol=strategy),
            make_observation(2010, *(make_topic(topic, 100) for topic in T100)),
        )
    assert verdict_of(life).verdict == "identical"
    assert work.spent < budget.DECISION


def test_beyond_a_decision_s_budget_the_verdict_names_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "DECISION", 500)
    life = Life()
    # b has all partitions, which no strategy would give: drift, if it could be computed.
    members = [make_member("a", ("x",)), make_member("b", ("x",), {"x": range(1_000)})]
    life.take(make_record(5, members, protocol="cooperative-sticky"), make_observation(10, make_topic("x", 1_000)))
    row = verdict_of(life)
    assert (row.verdict, row.drifted_count, row.candidates) == ("unverified", 0, 0)
    assert row.reason == (
        "too large to recompute: with 2 members, 1,000 partitions and 17 candidates it takes more than the 500 units "
        "of work allowed for one decision"
    )


def storm(decisions: int, first: int = 5) -> list[MembershipRecord]:
    """Generations of one group without a round in between, assigned by range, alternately to two and three members."""
    return [
        make_record(first + number, even("x", 60, *("abc"[: 2 + number % 2])), generation=number + 1)
        for number in range(decisions)
    ]


def told(life: Life) -> list[tuple[int, str]]:
    return [(row.generation, row.verdict) for row in life.rows.drift]


def test_of_a_storm_the_newest_decisions_are_verified_and_the_round_s_budget_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "ROUND", 400)
    life = Life(GroupConfig(cluster="test", what_if_max_size=0))
    life.take(make_observation(1, make_topic("x", 60)), *storm(64))
    with at_most(PLENTY) as work:
        life.take(make_observation(100, make_topic("x", 60)))
    assert work.spent <= 400
    verdicts = [row.verdict for row in sorted(life.rows.drift, key=lambda row: row.generation)]
    known = verdicts.count("identical")
    assert 10 < known < 40
    assert verdicts == ["unverified"] * (64 - known) + ["identical"] * known
    assert life.rows.group_health[-1].verdict == "identical"
    left_out: DriftRow = life.rows.drift[0]
    assert str(left_out.reason).startswith("too large to recompute: with 2 members, 60 partitions and ")
    assert str(left_out.reason).endswith("allowed for all decisions of one round")


def test_what_else_strategies_would_have_done_in_a_storm_stays_within_a_round_s_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "ROUND", 300)
    life = Life.after(make_observation(1, make_topic("x", 60)), *storm(6))
    with at_most(PLENTY) as work:
        life.take(make_observation(100, make_topic("x", 60)))
    assert work.spent <= 600
    by_generation = [[row.reason for row in life.rows.what_if if row.generation == number] for number in range(1, 7)]
    assert by_generation[-1] == [None] * 4
    assert all("units of work allowed for all decisions of one round" in str(of) for of in by_generation[0][1:])


def rows_of(inputs: Sequence[GroupInput], cuts: Sequence[int]) -> dict[str, Counter[object]]:
    return counted(rows_in_batches(inputs, cuts))


def different(record: int, generation: int, *, seed: int) -> MembershipRecord:
    """A generation of members that subscribe to different topics."""
    random = Random(seed)
    listed = [tuple(sorted(random.sample(T100[:20], 8))) for _ in range(8)]
    group = Group(
        tuple(Subscription(f"m{place}", topics) for place, topics in enumerate(listed)), dict.fromkeys(T100[:20], 5)
    )
    given = assign("range", group)
    return make_record(
        record, [make_member(m.member_id, m.topics, given[m.member_id]) for m in group.members], generation=generation
    )


@pytest.mark.nightly
def test_what_a_budget_leaves_out_is_the_same_at_every_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "DECISION", 220)
    monkeypatch.setattr(budget, "ROUND", 500)
    monkeypatch.setattr(budget, "RECORD", 20_000)
    topics = [make_topic(topic, 5) for topic in T100[:20]]
    inputs: list[GroupInput] = [make_observation(1, *topics)]
    inputs += [different(5 + number, number + 1, seed=number) for number in range(12)]
    inputs += [make_observation(40, *topics)]
    inputs += [different(50 + number, number + 13, seed=number % 3) for number in range(5)]
    inputs += [make_observation(90, *topics)]
    whole = rows_of(inputs, ())
    verdicts = Counter(row.verdict for row in whole["drift"])  # type: ignore[attr-defined]
    assert verdicts.keys() == {"identical", "unverified"}, "the budget holds some back, and not all"
    moves = Counter(row.partitions_moved_optimal is None for row in whole["rebalance_churn"])  # type: ignore[attr-defined]
    assert moves.keys() == {True, False}
    for cut in range(1, len(inputs)):
        assert rows_of(inputs, (cut,)) == whole
    assert rows_of(inputs, range(1, len(inputs))) == whole


def test_what_records_cost_between_two_rounds_grows_slower_than_they_come() -> None:
    life = Life.after(make_observation(1, *(make_topic(topic, 5) for topic in T100[:20])))
    costs = []
    for number in range(40):
        with at_most(PLENTY) as work:
            life.take(different(5 + number, number + 1, seed=number))
        costs.append(work.spent)
    assert all(cost <= budget.RECORD // (1 + place) for place, cost in enumerate(costs))
    assert all(row.partitions_moved_optimal is not None for row in life.rows.rebalance_churn), "none of them is large"


def test_the_least_figures_are_not_known_beyond_a_record_s_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "RECORD", 300)
    life = Life()
    topics = [make_topic(topic, 5) for topic in T100[:20]]
    life.take(
        make_observation(1, *topics), different(5, 1, seed=1), different(6, 2, seed=2), make_observation(10, *topics)
    )
    first, second = life.rows.rebalance_churn
    assert (first.partitions_moved_optimal, second.partitions_moved_optimal) == (0, None)
    assert second.partitions_moved is not None
    health = life.rows.group_health[-1]
    assert health.imbalance is not None
    assert health.imbalance_optimal is None


def test_members_that_subscribe_alike_have_least_figures_at_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "RECORD", 300)
    life = Life.after(make_observation(1, make_topic("x", 60)), *storm(2), make_observation(10, make_topic("x", 60)))
    assert [row.partitions_moved_optimal for row in life.rows.rebalance_churn] == [0, 20]
    assert life.rows.group_health[-1].imbalance_optimal == 0.0


class TestGroupsThatTheBrokerAssigns:
    LOG = (*FIRST, *SECOND_MEMBER)

    def test_beyond_a_decision_s_budget_the_verdict_names_the_numbers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(budget, "DECISION", 2)
        life = Life.after(*read(self.LOG), observation(30))
        assert {row.verdict for row in life.rows.drift} == {"unverified"}
        assert life.rows.drift[-1].reason == (
            "too large to recompute: with 2 members and 4 partitions it takes more than the 2 units of work allowed "
            "for one decision"
        )
        reasons = {row.reason for row in life.rows.what_if}
        assert reasons == {"it takes more than the 2 units of work allowed for one decision"}

    def test_of_many_decisions_the_newest_is_verified_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(budget, "ROUND", 8)
        life = Life.after(*read(self.LOG), observation(30))
        assert [row.verdict for row in life.rows.drift] == ["unverified", "identical"]
        assert life.rows.group_health[-1].verdict == "identical"
