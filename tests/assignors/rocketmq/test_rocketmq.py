"""RocketMQ's strategies by hand: values from the project's own tests and from a live 4.9.8 cluster (the reference)."""

from __future__ import annotations

from typing import Any

import pytest

from assignors import CannotTell, UnknownStrategy
from assignors.jsonl import assign_line
from assignors.rocketmq import (
    AllocateStrategy,
    BadGroup,
    MessageQueue,
    Options,
    allocate_all,
    sorted_clients,
    sorted_queues,
    strategies,
)

IDS = ["10.0.0.9@1@x", "10.0.0.10@1@x", "10.0.0.100@1@x"]


def queues(**counts: int) -> list[MessageQueue]:
    """Queues of TopicA; the names are the last letters of the brokers' names."""
    return [
        MessageQueue("TopicA", f"broker-{name}", number) for name, count in counts.items() for number in range(count)
    ]


def rooms(**counts: int) -> list[MessageQueue]:
    return [MessageQueue("T", f"{name}-b", number) for name, count in counts.items() for number in range(count)]


def short(strategy: str, of: list[MessageQueue], clients: list[str], options: Options | None = None) -> dict[str, str]:
    """Per client "a0 b1": the broker's letter and the queue id."""
    told = allocate_all(AllocateStrategy(strategy, options or Options()), of, clients)
    result = {}
    for client, dealt in told.items():
        assert isinstance(dealt, tuple)
        letter = [queue.broker.removeprefix("broker-")[0] for queue in dealt]
        result[client] = " ".join(f"{name}{queue.queue}" for name, queue in zip(letter, dealt, strict=True))
    return result


NEARBY = Options(room_separator="-")


def test_consistent_hash_takes_the_next_of_ten_virtual_nodes() -> None:
    assert short("CONSISTENT_HASH", queues(a=4, b=4), ["10.3.0.1@1", "10.3.0.2@2", "10.3.0.3@3"]) == {
        "10.3.0.1@1": "a2 b3",
        "10.3.0.2@2": "a0 a3 b0 b2",
        "10.3.0.3@3": "a1 b1",
    }
    assert short("CONSISTENT_HASH", queues(a=4, b=4), IDS) == {
        "10.0.0.100@1@x": "a1 a2 a3 b0",
        "10.0.0.10@1@x": "a0 b1 b2",
        "10.0.0.9@1@x": "b3",
    }


def test_a_client_listed_twice_gets_as_many_further_nodes_after_those_it_still_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`ConsistentHashRouter.addNode`: a node takes the place of another client's at the same hash."""
    places = {"a-0": 1, "a-1": 2, "a-2": 4, "a-3": 7, "b-0": 2, "b-1": 3, "b-2": 5, "b-3": 6}
    places |= {queue.text(): queue.queue for queue in queues(x=7)}
    monkeypatch.setattr(strategies, "ring_hash", places.__getitem__)

    # First a gets 1 and 2, and b takes 2 and 3. Then a has one node left, and gets a-1 and a-2: 2 and 4. b has only
    # 3 left, and gets b-1 and b-2: 3 and 5.
    dealt = allocate_all(
        AllocateStrategy("CONSISTENT_HASH", Options(virtual_node_cnt=2)),
        queues(x=7),
        ["a", "b", "a", "b"],
        presort=False,
    )

    assert {client: [queue.queue for queue in mine] for client, mine in dealt.items() if isinstance(mine, tuple)} == {
        "a": [0, 1, 2, 4, 6],
        "b": [3, 5],
    }


def test_without_a_number_each_client_has_ten_nodes_as_by_the_class_s_constructor() -> None:
    of, clients = queues(a=64, b=64), ["10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1"]
    ten = AllocateStrategy("CONSISTENT_HASH", Options(virtual_node_cnt=10))
    assert allocate_all("CONSISTENT_HASH", of, clients) == allocate_all(ten, of, clients)


def test_lists_count_as_given_where_nobody_sorts_them() -> None:
    given = list(reversed(queues(a=2)))

    assert allocate_all("AVG", given, ["b", "a"], presort=False) == {"b": (given[0],), "a": (given[1],)}


def test_orders_are_javas() -> None:
    assert sorted_clients(IDS) == ("10.0.0.100@1@x", "10.0.0.10@1@x", "10.0.0.9@1@x")
    assert sorted_clients(["\uffee", "\U0001f600"]) == ("\U0001f600", "\uffee")
    named = [MessageQueue("t", broker, number) for broker, number in (("b9", 1), ("b10", 10), ("b10", 2))]
    assert [(q.broker, q.queue) for q in sorted_queues(named)] == [("b10", 2), ("b10", 10), ("b9", 1)]


def test_what_no_class_takes_has_an_error_of_its_own() -> None:
    with pytest.raises(UnknownStrategy, match="'BY_LUCK'"):
        AllocateStrategy("BY_LUCK")
    with pytest.raises(UnknownStrategy, match="''"):
        AllocateStrategy("MACHINE_ROOM_NEARBY-", NEARBY)
    for no_int32 in (-1, 2_147_483_648):
        with pytest.raises(BadGroup, match=f"illegal virtualNodeCnt :{no_int32}"):
            AllocateStrategy("CONSISTENT_HASH", Options(virtual_node_cnt=no_int32))
    with pytest.raises(BadGroup, match="room_separator"):
        AllocateStrategy("MACHINE_ROOM_NEARBY-AVG")
    with pytest.raises(BadGroup, match="no int32"):
        allocate_all("AVG", [MessageQueue("t", "b", 2**31)], ["a"])
    with pytest.raises(CannotTell, match="overflow"):
        allocate_all("AVG", [MessageQueue("t", "b", -1), MessageQueue("t", "b", 2**31 - 1)], ["a"])
    with pytest.raises(CannotTell, match="virtual nodes"):
        allocate_all(AllocateStrategy("CONSISTENT_HASH", Options(virtual_node_cnt=2**31 - 1)), queues(a=1), ["a"])


def test_a_queue_id_may_be_as_low_as_an_int32_can_be_and_no_lower() -> None:
    lowest = MessageQueue("t", "b", -2_147_483_648)
    assert allocate_all("AVG", [lowest], ["a"]) == {"a": (lowest,)}
    with pytest.raises(BadGroup, match="Queue -2147483649 of topic 't' on broker 'b' is no int32"):
        allocate_all("AVG", [MessageQueue("t", "b", -2_147_483_649)], ["a"])


LINE: dict[str, Any] = {
    "strategy": "rocketmq:AVG",
    "queues": [{"topic": "t", "broker": "b", "queue": number} for number in (1, 0)],
    "clients": ["z", ""],
}


def test_a_line_gives_each_client_its_queues_or_its_error() -> None:
    assert assign_line(LINE) == {
        "assignment": {
            "z": [{"topic": "t", "broker": "b", "queue": 1}],
            "": {"error": "IllegalArgumentException: currentCID is empty"},
        }
    }
    assert assign_line(LINE | {"strategy": "rocketmq:CONFIG"}) == {"assignment": {"z": None, "": None}}
    first = LINE | {"presort": False, "clients": ["z", "a"]}
    assert assign_line(first)["assignment"]["z"] == [{"topic": "t", "broker": "b", "queue": 1}]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"strategy": "rocketmq:MINE"}, "RocketMQ strategy 'MINE' is not known"),
        ({"queues": [{"topic": "t", "broker": "b"}]}, "missing required field `queue`"),
        ({"queues": [{"topic": "t", "broker": "b", "queue": True}]}, "got `bool` - at `$.queues[0].queue`"),
        ({"clients": [1]}, "Expected `str`, got `int` - at `$.clients[0]`"),
        ({"presort": "no"}, "Expected `bool`, got `str`"),
        ({"options": {"virtual_nodes": 1}}, "unknown field `virtual_nodes` - at `$.options`"),
        ({"strategy": "rocketmq:CONSISTENT_HASH", "options": {"virtual_node_cnt": -1}}, "illegal virtualNodeCnt :-1"),
        ({"strategy": "rocketmq:MACHINE_ROOM_NEARBY-AVG"}, "room_separator"),
    ],
)
def test_what_is_wrong_with_a_line_is_its_answer(change: dict[str, Any], reason: str) -> None:
    assert reason in assign_line(LINE | change)["error"]
