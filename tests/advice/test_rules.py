"""Each rule fires where its figures say so, not one event below, and none contradicts another."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming import advice
from streaming.advice.period import Advice, GroupDay, MemberChange, Period, Produced, Rebalance, Tried
from streaming.advice.rebalances import COOPERATIVE, COOPERATIVE_LEAST, STATIC_LEAST, STRATEGY_LEAST, returns
from streaming.advice.rows import KINDS, advise
from streaming.advice.shape import ABANDONED_LEAST, BEYOND_LEAST, EMPTY_LEAST, HOT_LEAST, UNEXPLAINED_LEAST
from streaming.groups import UNEXPLAINED
from tests.examples import examples

DAY = date(2026, 3, 14)
MINUTE_MS = 60_000


def days(count: int = 7, **changes: Any) -> tuple[GroupDay, ...]:
    """So many days up to `DAY`, all observed and alike."""
    fields: dict[str, Any] = {
        "observed": 86_400.0, "commits": 100, "members_max": 4, "members_mean": 4.0, "members_known": 86_400.0,
        "beyond": 0.0, "beyond_max": 0, "lag_total_max": 5,
    }  # fmt: skip
    return tuple(GroupDay(DAY - timedelta(days=ago), **(fields | changes)) for ago in reversed(range(count)))


def period(**changes: Any) -> Period:
    """An eager group of consumers of the classic protocol."""
    fields: dict[str, Any] = {
        "group_id": "g", "day": DAY, "days": days(), "group_type": "classic", "protocol_type": "consumer",
        "strategy": "range", "partitions": 8,
    }  # fmt: skip
    return Period(**(fields | changes))


def rebalance(decision: int, minute: float = 0, *causes: str, **changes: Any) -> Rebalance:
    return Rebalance(decision, int(minute * MINUTE_MS), "range", "eager", frozenset(causes), **changes)


def member(client_id: str = "app", **changes: Any) -> MemberChange:
    fields: dict[str, Any] = {"is_static": False, "client_id": client_id, "client_host": "/10.0.0.1"}
    return MemberChange(**({"session_timeout_ms": 45_000} | fields | changes))


def restarts(count: int, left: str = "member_left", away_minutes: float = 0.5, every: int = 60) -> dict[str, Any]:
    """Fields of a period in which one member restarts so often: it leaves, and is back, in a rebalance each."""
    told, members = [], {"m0": member()}
    for number in range(count):
        start = number * every
        told.append(rebalance(10 * number, start, left, left=(f"m{number}",)))
        told.append(rebalance(10 * number + 5, start + away_minutes, "member_joined", joined=(f"m{number + 1}",)))
        members[f"m{number + 1}"] = member()
    return {"rebalances": tuple(told), "members": members}


def tried(decisions: int, runs: tuple[str, int, float], *others: tuple[str, int, float]) -> tuple[Tried, ...]:
    """What strategies would have done at each of so many decisions: (strategy, moved, imbalance)."""
    return tuple(
        Tried(number, name, name == runs[0], "java", moved, imbalance)
        for number in range(decisions)
        for name, moved, imbalance in (runs, *others)
    )


def produced(most: int = 60_000, total: int = 100_000, hours: int = 24) -> Produced:
    return Produced(total, "orders", None, 3, most, hours)


def advised(one: Period) -> dict[str, Advice]:
    return {advice.kind: advice for advice in advise(one)}


def stops(count: int) -> dict[str, Any]:
    """Eager rebalances that stopped three partitions and moved one, for two partition-seconds at least."""
    told = (
        rebalance(number, number, "partitions_changed", stopped_unmoved=3, moved=1, unassigned_seconds=2.0)
        for number in range(count)
    )
    return {"rebalances": tuple(told)}


def empty_for(hours: float, retention_hours: float = 20) -> dict[str, Any]:
    """A group whose last member was gone so long before the end of the day."""
    end = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC) + timedelta(days=1)
    since = end - timedelta(hours=hours)
    return {
        "empty_since_ms": int(since.timestamp() * 1000),
        "offsets_retention_minutes": int(60 * retention_hours),
    }


FIRES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "static_membership": (restarts(STATIC_LEAST // 2), restarts(STATIC_LEAST // 2 - 1)),
    "cooperative": (stops(COOPERATIVE_LEAST), stops(COOPERATIVE_LEAST - 1)),
    "strategy": (
        {"tried": tried(STRATEGY_LEAST, ("range", 5, 0.5), ("sticky", 1, 0.5))},
        {"tried": tried(STRATEGY_LEAST - 1, ("range", 5, 0.5), ("sticky", 1, 0.5))},
    ),
    "too_many_members": (
        {"days": (*days(4)[:1], *days(BEYOND_LEAST, beyond=50_000.0, beyond_max=2))},
        {"days": (*days(3)[:1], *days(BEYOND_LEAST - 1, beyond=50_000.0, beyond_max=2))},
    ),
    "hot_partition": ({"produced": produced(hours=HOT_LEAST)}, {"produced": produced(hours=HOT_LEAST - 1)}),
    "offsets_expire": (empty_for(hours=EMPTY_LEAST), empty_for(hours=EMPTY_LEAST - 0.5)),
    "declare_clients": (
        {"judged": 9, "unexplained": UNEXPLAINED_LEAST},
        {"judged": 9, "unexplained": UNEXPLAINED_LEAST - 1},
    ),
    "abandoned": (
        {"days": days(ABANDONED_LEAST, members_max=0, commits=0)},
        {"days": days(ABANDONED_LEAST - 1, members_max=0, commits=0)},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_fires_at_its_number_of_events_and_not_below(kind: str) -> None:
    enough, too_few = FIRES[kind]
    found = advised(period(**enough))
    assert list(found) == [kind]
    assert found[kind].events > 0
    assert advised(period(**too_few)) == {}


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("too_many_members", {"group_type": "share", "protocol_type": "share"}),
        ("too_many_members", {"group_type": "streams", "protocol_type": "streams"}),
        ("hot_partition", {"group_type": "share", "protocol_type": "share"}),
        ("static_membership", {"protocol_type": "connect"}),
    ],
)
def test_what_is_normal_for_a_type_of_groups_is_not_advised_against(kind: str, types: dict[str, str]) -> None:
    assert kind not in advised(period(**FIRES[kind][0], **types))


@pytest.mark.parametrize(
    ("group_type", "tool"),
    [("classic", "kafka-consumer-groups"), ("share", "kafka-share-groups"), ("streams", "kafka-streams-groups")],
)
def test_an_abandoned_group_is_deleted_with_the_tool_of_its_type(group_type: str, tool: str) -> None:
    told = advised(period(days=days(ABANDONED_LEAST, members_max=0, commits=0), group_type=group_type))
    assert f"(`{tool} --delete`)" in told["abandoned"].advice


def test_a_restart_saves_the_rebalance_of_the_leave_and_the_one_of_the_return() -> None:
    told = restarts(3)
    other = rebalance(999, 600, "partitions_changed")
    found = advised(period(rebalances=(*told["rebalances"], other), members=told["members"]))["static_membership"]
    assert (found.events, found.saved, found.unit) == (6, 6.0, "rebalances")
    assert found.evidence.startswith("6 of 7 rebalances would not have happened: 3 times a dynamic member left")
    assert "within the session timeout of 45 s, after at most 30 s" in found.evidence


@pytest.mark.parametrize(
    "spoiled",
    [
        {"away_minutes": 0.8},
        {"left": "member_gone", "every": 5},
    ],
)
def test_a_member_that_is_away_for_longer_or_may_have_been_expired_saves_nothing(spoiled: dict[str, Any]) -> None:
    assert "static_membership" not in advised(period(**restarts(6, **spoiled)))


def test_a_rebalance_with_another_cause_would_have_happened_and_so_its_other_half_does_not_count() -> None:
    told = restarts(3)
    first, *others = told["rebalances"]
    spoiled = replace(first, causes=first.causes | {"partitions_changed"})
    found = advised(period(rebalances=(spoiled, *others), members=told["members"]))["static_membership"]
    assert found.saved == 4


def test_a_member_with_an_instance_id_or_of_another_client_is_no_return() -> None:
    told = restarts(3)
    for change in ({"is_static": True}, {"client_host": "/10.0.0.2"}, {"session_timeout_ms": None}):
        members = {name: member(**change) if name in ("m0", "m2") else one for name, one in told["members"].items()}
        assert len(returns(period(rebalances=told["rebalances"], members=members))) < 3, change


def test_the_handover_after_an_avoided_cooperative_rebalance_would_not_have_happened_either() -> None:
    told = restarts(2)
    handover = rebalance(6, 0.6, "handover", follows=5)
    rebalances = sorted((*told["rebalances"], handover), key=lambda one: one.decision)
    found = advised(period(rebalances=tuple(rebalances), members=told["members"]))["static_membership"]
    assert found.saved == 5


def test_the_seconds_that_cooperative_saves_are_the_unmoved_share_of_the_lower_bounds() -> None:
    found = advised(period(**stops(4)))["cooperative"]
    assert (found.events, found.saved, found.unit) == (4, 4 * 2.0 * 3 / 4, "partition-seconds")
    assert "4 eager rebalances stopped 12 partitions that kept their owner" in found.evidence
    assert "at least 6 partition-seconds" in found.evidence


BETTER = tried(5, ("range", 5, 0.5), ("sticky", 1, 0.5))
WORSE_ONCE = tuple(replace(one, decision=9) for one in tried(1, ("range", 5, 0.5), ("sticky", 1, 0.6)))
QUIET: dict[str, dict[str, Any]] = {
    "nothing happens": {},
    "a strategy is worse at one decision": {"tried": (*BETTER, *WORSE_ONCE)},
    "the better strategy is one of another library": {
        "tried": tuple(replace(one, client="librdkafka") if one.strategy == "sticky" else one for one in BETTER)
    },
    "a cooperative group would go back to an eager strategy": {
        "strategy": COOPERATIVE,
        "tried": tried(5, (COOPERATIVE, 5, 0.5), ("sticky", 1, 0.5)),
    },
    # One of two partitions may have 70 %: members without a partition share nothing.
    "there are fewer partitions than members": {
        "produced": produced(70_000),
        "days": days(members_mean=9.0),
        "partitions": 2,
    },
}


@pytest.mark.parametrize("case", QUIET)
def test_nothing_is_advised_where_it_would_save_nothing(case: str) -> None:
    assert advised(period(**QUIET[case])) == {}


def test_fewer_moves_are_advised_and_better_balance_with_no_more_moves_too() -> None:
    assert advised(period(tried=BETTER))["strategy"].saved == 20
    found = advised(period(tried=tried(5, ("range", 1, 0.5), ("roundrobin", 1, 0.25))))["strategy"]
    assert (found.saved, found.unit) == (0.25, "mean imbalance")


def test_strategy_names_what_cooperative_names_or_is_left_out() -> None:
    both = tried(5, ("range", 5, 0.5), ("sticky", 1, 0.5), (COOPERATIVE, 2, 0.5))
    found = advised(period(**stops(5), tried=both))
    assert dict(found["strategy"].details)["strategy"] == COOPERATIVE
    without = tuple(one for one in both if one.strategy != COOPERATIVE)
    assert list(advised(period(**stops(5), tried=without))) == ["cooperative"]


@pytest.mark.parametrize(("most", "members", "hot"), [(37_000, 4.0, False), (38_000, 4.0, True), (90_000, 1.0, False)])
def test_a_partition_is_hot_beyond_one_and_a_half_fair_shares(most: int, members: float, hot: bool) -> None:
    found = advised(period(produced=produced(most), days=days(members_mean=members)))
    assert ("hot_partition" in found) == hot


def test_lag_that_grows_is_told_of_an_abandoned_group() -> None:
    quiet = days(7, members_max=0, commits=0)
    grown = (*quiet[:-1], replace(quiet[-1], lag_total_max=1_000_000))
    assert "Its lag grew from 5 to 1,000,000 records." in advised(period(days=grown))["abandoned"].evidence
    for changed in ({"commits": 1}, {"members_max": None}, {"observed": 100.0}):
        assert advised(period(days=(*quiet[:3], replace(quiet[3], **changed), *quiet[4:]))) == {}, changed


def test_offsets_expire_a_retention_after_the_last_member_was_gone() -> None:
    found = advised(period(**empty_for(hours=96, retention_hours=168)))["offsets_expire"]
    assert found.advice.startswith(
        "Start a consumer of the group before 2026-03-18 00:00 UTC, or note its offsets down:"
    )
    assert found.evidence == (
        "The last member was gone at 2026-03-11 00:00 UTC, 96 hours before the end of the day. Brokers keep the "
        "offsets of a group without members for 168 hours (`offsets.retention.minutes` = 10080). Its lag was up to 5 "
        "records on that day."
    )
    assert (found.events, found.saved) == (96, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"offsets_retention_minutes": None},
        {"empty_since_ms": None},
        {"protocol_type": ""},  # Without a group protocol offsets expire by the time of each commit.
        {"group_type": "consumer"},  # KIP-848: as well.
        empty_for(hours=83, retention_hours=168),
        empty_for(hours=168, retention_hours=168),
    ],
)
def test_nothing_is_said_of_offsets_whose_end_is_not_known_not_near_or_over(changes: dict[str, Any]) -> None:
    assert advised(period(**{**empty_for(hours=96, retention_hours=168), **changes})) == {}


def in_order(told: list[Rebalance]) -> tuple[Rebalance, ...]:
    return tuple(replace(one, decision=at, time_ms=at * 20_000 + one.time_ms) for at, one in enumerate(told))


CAUSES = ("member_left", "member_gone", "member_joined", "partitions_changed", "handover")
IDS = tuple(f"m{number}" for number in range(8))
SOME_IDS = st.lists(st.sampled_from(IDS), max_size=2, unique=True).map(tuple)
REBALANCES = st.lists(
    st.builds(
        Rebalance,
        decision=st.just(0), time_ms=st.integers(0, 60_000), strategy=st.just("range"),
        protocol=st.sampled_from(("eager", "cooperative", "consumer", None)),
        causes=st.frozensets(st.sampled_from(CAUSES), max_size=2), follows=st.none() | st.integers(0, 20),
        joined=SOME_IDS, left=SOME_IDS, replaced=st.integers(0, 1), moved=st.none() | st.integers(0, 5),
        stopped_unmoved=st.none() | st.integers(0, 5), unassigned_seconds=st.none() | st.floats(0, 100),
    ),
    max_size=20,
)  # fmt: skip
STRATEGIES = ("range", "roundrobin", "sticky", COOPERATIVE, "uniform")
TRIED = st.lists(
    st.builds(
        Tried, decision=st.integers(0, 6), strategy=st.sampled_from(STRATEGIES), runs=st.booleans(),
        client=st.sampled_from(("java", "java", "librdkafka")), moved=st.integers(0, 3),
        imbalance=st.sampled_from((0.0, 0.5, 1.0)),
    ),
    max_size=30,
)  # fmt: skip
MEMBERS = st.fixed_dictionaries(
    {
        name: st.builds(
            member,
            st.sampled_from("ab"),
            is_static=st.booleans(),
            session_timeout_ms=st.sampled_from((None, 10_000, 45_000)),
        )
        for name in IDS
    }
)
DAYS = st.builds(
    days, st.integers(1, 7), commits=st.sampled_from((0, 5)), members_max=st.sampled_from((None, 0, 9)),
    members_mean=st.sampled_from((None, 0.0, 4.0)), beyond=st.sampled_from((None, 0.0, 80_000.0)),
)  # fmt: skip
PERIODS = st.builds(
    period, days=DAYS, strategy=st.sampled_from((*STRATEGIES, None)), partitions=st.none() | st.integers(0, 9),
    rebalances=REBALANCES.map(in_order),
    members=MEMBERS, tried=TRIED.map(tuple), produced=st.none() | st.builds(produced, st.integers(1, 100_000)),
)  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(PERIODS)
def test_no_advice_contradicts_another_whatever_happened(one: Period) -> None:
    found = advised(one)
    assert len(found) == len(advise(one)), "one of each kind at most"
    assert set(found) <= set(KINDS)
    if "abandoned" in found:
        assert list(found) == ["abandoned"]
    if {"cooperative", "strategy"} <= found.keys():
        assert dict(found["strategy"].details)["strategy"] == COOPERATIVE
    for kind, told in found.items():
        if kind == "static_membership":
            assert told.events <= len(one.rebalances) * 2
            assert (told.saved or 0) <= len(one.rebalances)
        assert told.saved is None or told.saved >= 0
        assert (told.saved is None) == (told.unit is None)
    if (named := found.get("strategy")) is not None:
        assert dict(named.details)["strategy"] != one.strategy


def test_the_query_looks_for_the_reason_that_verdicts_have() -> None:
    assert f"'{UNEXPLAINED}'" in (Path(advice.__file__).parent / "groups.sql").read_text(encoding="utf-8")
