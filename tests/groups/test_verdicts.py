"""`drift.inputs`: every recomputed verdict can be derived from its row alone; nothing large is stored."""

from __future__ import annotations

import json
import zlib
from random import Random

import pytest
from hypothesis import given, settings

from assignors import CustomStrategies, CustomStrategy, Group, Library, Subscription
from streaming.groups import GroupConfig, unpack_inputs
from streaming.groups.rows import DriftRow
from streaming.groups.verdict_inputs import LINE_MAX, PACKED_MAX, ClientInputs, pack_inputs
from tests.examples import examples
from tests.groups.build import Life, even, make_member, make_observation, make_record, make_topic
from tests.groups.modern_log import FIRST, SECOND_JOINS, TOPIC_ID, asking, observation, read, stands, target
from tests.groups.streams import Step, batches, streams
from tests.groups.verdicts import (
    FIRST_TAKES_ALL,
    LIBRDKAFKA,
    judged,
    recompute_all,
    recomputed,
    seen_for_long,
    verdict_of,
)

JAVA = Library("java", (4, 2))


def line_of(row: DriftRow) -> object:
    assert row.inputs is not None
    return json.loads(unpack_inputs(row.inputs))


def test_the_inputs_of_a_verdict_are_a_line_of_evenkeel_assign() -> None:
    a, b = make_member("a", ("orders",), {"orders": (0, 3)}), make_member("b", ("orders",), {"orders": (1, 2)})
    row = judged(a, b, counts={"orders": 4})
    assert (row.verdict, row.reason) == ("unverified", "no known client gives this assignment")
    assert (row.matching_library, row.nearest_library, row.nearest_differing) == (None, "java:3.4", 2)
    assert line_of(row) == {
        "strategy": "range",
        "library": "java:3.4",
        "partitions_per_topic": {"orders": 4},
        "members": {"a": {"topics": ["orders"]}, "b": {"topics": ["orders"]}},
        "leader": "a",
    }
    assert recomputed(row)[0] == {
        "assignment": {"a": [["orders", 0], ["orders", 1]], "b": [["orders", 2], ["orders", 3]]},
    }


def test_the_inputs_of_a_target_have_the_targets_before_it() -> None:
    life = Life.after(*read([*FIRST, *SECOND_JOINS, target("a", 0, 1), target("b", 2, 3), stands(2)]), observation(30))
    assert recompute_all(life.rows) == {"identical": 2}
    assert line_of(life.rows.drift[-1]) == {
        "strategy": "server-uniform",
        "library": "4.0.0",
        "topics": {"orders": {"id": TOPIC_ID, "partitions": 4}},
        "members": {
            "a": {"topics": ["orders"], "target": [[TOPIC_ID, [0, 1, 2, 3]]], "group_instance_id": "i"},
            "b": {"topics": ["orders"]},
        },
    }


@settings(deadline=None, max_examples=examples(100))
@given(streams())
def test_every_verdict_of_any_life_follows_from_its_inputs(steps: list[Step]) -> None:
    life = Life()
    for inputs in batches(steps, ()):
        life.take(*inputs)
    recompute_all(life.rows)


def test_the_orders_in_which_a_broker_may_have_listed_the_topics_are_all_answered() -> None:
    # By hand: x-1 and y-1 have no owner; the first goes to a, whichever topic comes first.
    life = Life()
    seen_for_long(life, ("x", 2), ("y", 2))
    a = make_member("a", ("x", "y"), {"x": (0, 1)}, owned=(("x", (0,)),), **LIBRDKAFKA)
    b = make_member("b", ("x", "y"), {"y": (0, 1)}, owned=(("y", (0,)),), **LIBRDKAFKA)
    life.take(make_record(2000, (a, b), protocol="cooperative-sticky"))
    life.take(make_observation(2010, make_topic("x", 2), make_topic("y", 2)))
    answer, possible = recomputed(verdict_of(life))
    assert answer["error"] == "the result depends on the order in which the broker listed the topics"
    assert len(possible) == 2


def test_a_strategy_of_the_user_s_own_is_found_by_its_name() -> None:
    life = Life(GroupConfig("test", custom=CustomStrategies((CustomStrategy("mine", FIRST_TAKES_ALL),))))
    members = make_member("b"), make_member("a", assigned={"orders": (0, 1, 2)})
    life.take(make_record(5, members, protocol="mine"), make_observation(10, make_topic("orders", 3)))
    row = verdict_of(life)
    assert (row.verdict, row.matching_library) == ("identical", "custom")
    assert "error" in recomputed(row)[0]
    assert recomputed(row, life.config.custom.by_name())[0]["assignment"]["a"] == [["orders", p] for p in range(3)]


def test_what_no_strategy_was_asked_for_has_no_inputs() -> None:
    assert judged(counts={"orders": 3}).inputs is None
    assert judged(*even("orders", 3, "a"), counts={"orders": 3}, protocol="house-blend").inputs is None
    twice = judged(*even("orders", 1, "a"), *even("orders", 1, "b"), counts={"orders": 1})
    assert (twice.verdict, twice.inputs) == ("drifted", None)
    life = Life.after(*read([asking("a", "mine"), *FIRST[1:]]), observation(20))
    assert life.rows.drift[-1].inputs is None


HOSTILE = {
    "a mebibyte of user data": Subscription("a", ("t",), user_data=bytes(1 << 20)),
    "claims without end": Subscription("a", ("t",), owned=(("t", tuple(range(200_000))),)),
    "a long name": Subscription("a" * LINE_MAX, ("t",)),
    "topics without end": Subscription("a", ("t",) * 400_000),
}


@pytest.mark.parametrize("member", HOSTILE.values(), ids=list(HOSTILE))
def test_what_is_too_long_is_not_kept(member: Subscription) -> None:
    assert pack_inputs(ClientInputs("sticky", Group((member,), {"t": 3}), JAVA)) is None


def test_what_does_not_compress_is_kept_up_to_the_limit() -> None:
    data = Random(1).randbytes(500_000)

    def packed(size: int) -> bytes | None:
        group = Group((Subscription("a", ("t",), user_data=data[:size]),), {"t": 3})
        return pack_inputs(ClientInputs("sticky", group, JAVA))

    kept = packed(50_000)
    assert kept is not None
    assert 50_000 < len(kept) <= PACKED_MAX
    assert packed(70_000) is None
    assert packed(500_000) is None


def test_a_thousand_members_with_ten_thousand_partitions_are_kept() -> None:
    random = Random(2)
    names = [f"consumer-orders-{number}-{random.randbytes(16).hex()}" for number in range(1_000)]
    dealt = [(f"orders-{number % 10}", number // 10) for number in range(10_000)]
    random.shuffle(dealt)
    members = tuple(
        Subscription(
            name,
            tuple(f"orders-{number}" for number in range(10)),
            owned=tuple((topic, (partition,)) for topic, partition in dealt[at * 10 : at * 10 + 10]),
            generation=7,
        )
        for at, name in enumerate(names)
    )
    group = Group(members, {f"orders-{number}": 1_000 for number in range(10)})
    packed = pack_inputs(ClientInputs("cooperative-sticky", group, JAVA))
    assert packed is not None
    assert len(json.loads(unpack_inputs(packed))["members"]) == 1_000


def test_a_decision_whose_inputs_are_too_long_is_judged_all_the_same() -> None:
    row = judged(make_member("a", assigned={"orders": (0,)}, group_instance_id="i" * LINE_MAX), counts={"orders": 1})
    assert (row.verdict, row.inputs) == ("identical", None)


@pytest.mark.parametrize(
    "packed", [b"", b"x", b"\x78\x9c", zlib.compress(b"{}")[:-1], zlib.compress(bytes(LINE_MAX + 1)), b"{}"]
)
def test_what_was_never_packed_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"give the whole of drift\.inputs"):
        unpack_inputs(packed)


def test_the_longest_line_is_unpacked() -> None:
    assert unpack_inputs(zlib.compress(bytes(LINE_MAX))) == bytes(LINE_MAX)
