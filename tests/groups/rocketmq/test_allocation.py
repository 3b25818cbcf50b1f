"""Which strategy a client runs, by its class, its release and the configuration, and what is sure of it."""

from __future__ import annotations

import pytest

from streaming.groups.context import Allocation, queue_list
from streaming.groups.rocketmq.allocation import name_of, runs
from streaming.records import OK, MemberSeen
from tests.groups.rocketmq.world import AVG, CIRCLE, CONFIG, HASH, NEARBY, ROOM, A, three

NOTHING = Allocation()
ROOMS = Allocation(consumeridcs=frozenset({"east"}))
NODES = Allocation(virtual_node_cnt=20)
LIST = Allocation(message_queue_list=queue_list([("orders", "broker-a", 0)]))
SEPARATED = Allocation(room_separator="-")


def test_a_strategy_is_named_by_its_class_in_either_package() -> None:
    # `getName()` of each class, apache/rocketmq 5.5.0.
    for class_name, name in (
        (AVG, "AVG"),
        (CIRCLE, "AVG_BY_CIRCLE"),
        (CONFIG, "CONFIG"),
        (ROOM, "MACHINE_ROOM"),
        (HASH, "CONSISTENT_HASH"),
        (NEARBY, "MACHINE_ROOM_NEARBY-AVG"),
    ):
        assert name_of(class_name, NOTHING) == name
        old = class_name.replace("org.apache.rocketmq", "com.alibaba.rocketmq")
        assert name_of(old, NOTHING) == name
    assert name_of(NEARBY, Allocation(nearby_delegate="AVG_BY_CIRCLE")) == "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE"


@pytest.mark.parametrize(
    "class_name", ["AllocateMessageQueueAveragely", "com.acme.AllocateMessageQueueAveragely", f"{AVG}2"]
)
def test_a_class_of_somebody_else_has_its_own_name_and_is_not_computed(class_name: str) -> None:
    assert name_of(class_name, NOTHING) == class_name
    found = runs(MemberSeen(A, OK, strategy=class_name), NOTHING)
    assert (found.name, found.strategy, found.is_sure) == (class_name, None, False)
    assert found.why_not == f"strategy {class_name} is not one of RocketMQ's: it cannot be recomputed"


@pytest.mark.parametrize(("language", "word"), [("GO", "GO"), (None, "such")])
def test_a_client_that_tells_no_strategy_is_tried_with_avg_and_believed_only_where_it_fits(
    language: str | None, word: str
) -> None:
    found = runs(MemberSeen(A, OK, language=language), NOTHING)
    assert found.name == "AVG"
    assert found.strategy is not None
    assert (found.is_sure, found.why_not) == (False, f"{word} clients do not tell their strategy")


SURE = (True, True, None)


@pytest.mark.parametrize(
    ("class_name", "allocation", "expected"),
    [
        (AVG, NOTHING, SURE),
        (CIRCLE, NOTHING, SURE),
        (CONFIG, NOTHING, (False, False, "the queue list of CONFIG is not configured")),
        (CONFIG, LIST, SURE),
        (ROOM, NOTHING, (False, False, "the rooms of MACHINE_ROOM are not configured")),
        (ROOM, ROOMS, SURE),
        # The class's own default is computed; a difference proves nothing.
        (
            HASH,
            NOTHING,
            (
                True,
                False,
                "the number of virtual nodes of CONSISTENT_HASH is not configured, and 10 do not give this",
            ),
        ),
        (HASH, NODES, SURE),
        (NEARBY, NOTHING, (False, False, "the rule for rooms of MACHINE_ROOM_NEARBY is not configured")),
        (NEARBY, SEPARATED, SURE),
        (
            NEARBY,
            Allocation(room_separator="-", nearby_delegate="CONFIG"),
            (False, False, "the queue list of CONFIG is not configured"),
        ),
    ],
)
def test_what_is_sure_of_a_strategy_depends_on_what_is_configured(
    class_name: str, allocation: Allocation, expected: tuple[bool, bool, str | None]
) -> None:
    found = runs(MemberSeen(A, OK, strategy=class_name, version="V5_5_0"), allocation)
    assert (found.strategy is not None, found.is_sure, found.why_not) == expected


@pytest.mark.parametrize(
    ("class_name", "allocation", "client", "version", "is_sure"),
    [
        # apache/rocketmq#2477, in 4.8.0
        (ROOM, ROOMS, A, "V4_7_1", False),
        (ROOM, ROOMS, A, "V4_7_1_SNAPSHOT", False),
        (ROOM, ROOMS, A, "4.7.1", False),
        (ROOM, ROOMS, A, "V3_9_9", False),
        (ROOM, ROOMS, A, "V4_8_0", True),
        (ROOM, ROOMS, A, "V5_0_0", True),
        (NEARBY, Allocation(None, None, frozenset({"a"}), "-", "MACHINE_ROOM"), A, "V4_7_1", False),
        (NEARBY, Allocation(None, None, frozenset({"a"}), "-", "MACHINE_ROOM"), A, "V4_8_0", True),
        (NEARBY, SEPARATED, A, "V4_7_1", True),
        (AVG, NOTHING, A, "V4_7_1", True),
        # f23fdbe016, in 5.0.0
        (HASH, NODES, "größe@1", "V4_9_8", False),
        (HASH, NODES, A, "V4_9_8", True),
        (HASH, NODES, "größe@1", "V5_0_0", True),
        (AVG, NOTHING, "größe@1", "V4_9_8", True),
        # What cannot be read is a new one: all of today are.
        (ROOM, ROOMS, A, None, True),
        (ROOM, ROOMS, A, "511", True),
        (ROOM, ROOMS, A, "V4_7_RC", True),
        (ROOM, ROOMS, A, "V4_7_1000", True),
        (ROOM, ROOMS, A, "V4_7_999", False),
    ],
)
def test_what_a_release_did_otherwise_is_not_sure(
    class_name: str, allocation: Allocation, client: str, version: str | None, is_sure: bool
) -> None:
    found = runs(MemberSeen(client, OK, strategy=class_name, version=version), allocation)
    assert found.is_sure == is_sure
    assert found.strategy is not None
    assert (found.why_not is None) == is_sure


def test_two_connections_that_do_not_last_are_no_second_client() -> None:
    # Seen with Java 5.5.0: two connections to one broker at the start; the broker gives the idle one up after 120 s.
    world = three()
    listed = world.lists["broker-a"]
    listed.append(A)
    world.round(14)
    listed.remove(A)
    world.round(20)
    assert not [found for row in world.rows.group_health for found in row.findings]
