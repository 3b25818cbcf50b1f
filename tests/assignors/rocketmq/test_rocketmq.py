"""RocketMQ's strategies by hand: values from the project's own tests and from a live 4.9.8 cluster (the reference)."""

from __future__ import annotations

from typing import Any

import pytest

from assignors import CannotTell, UnknownStrategy
from assignors.jsonl import assign_line
from assignors.rocketmq import (
    BadOption,
    BadQueue,
    CallWouldFail,
    MessageQueue,
    Options,
    allocate,
    allocate_all,
    consistent_hash,
    sorted_clients,
    sorted_queues,
    strategy_named,
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
    told = allocate_all(strategy_named(strategy, options), of, clients)
    result = {}
    for client, dealt in told.items():
        assert isinstance(dealt, tuple)
        letter = [queue.broker.removeprefix("broker-")[0] for queue in dealt]
        result[client] = " ".join(f"{name}{queue.queue}" for name, queue in zip(letter, dealt, strict=True))
    return result


def test_avg_deals_blocks_in_the_order_of_sorted_ids() -> None:
    assert short("AVG", queues(a=4, b=4), IDS) == {
        "10.0.0.100@1@x": "a0 a1 a2",
        "10.0.0.10@1@x": "a3 b0 b1",
        "10.0.0.9@1@x": "b2 b3",
    }


def test_avg_leaves_spare_clients_without_queues() -> None:
    dealt = short("AVG", queues(a=4, b=4), [f"10.6.0.{number:02}" for number in range(1, 11)])

    assert list(dealt.values()) == ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3", "", ""]


def test_avg_with_a_client_twice_leaves_its_second_share_to_nobody() -> None:
    dealt = short("AVG", queues(a=4, b=4), ["172.17.0.1@1", "172.17.0.1@1", "172.17.0.2@1"])

    assert dealt == {"172.17.0.1@1": "a0 a1 a2", "172.17.0.2@1": "b2 b3"}


def test_avg_by_circle_deals_in_turn() -> None:
    assert short("AVG_BY_CIRCLE", queues(a=4, b=4), IDS) == {
        "10.0.0.100@1@x": "a0 a3 b2",
        "10.0.0.10@1@x": "a1 b0 b3",
        "10.0.0.9@1@x": "a2 b1",
    }


def test_config_gives_everybody_the_same_and_checks_nothing() -> None:
    options = Options(message_queue_list=tuple(queues(q=2)))

    assert short("CONFIG", [], ["a", "b"], options) == {"a": "q0 q1", "b": "q0 q1"}
    assert allocate(strategy_named("CONFIG", options), "", [], []) == tuple(queues(q=2))
    assert allocate("CONFIG", "a", queues(a=1), ["a"]) is None


def test_machine_room_appends_the_remainder_from_the_tail() -> None:
    options = Options(consumeridcs=frozenset({"r1", "r2"}))
    given = [
        MessageQueue("T", broker, number)
        for broker, count in (("r1@b", 5), ("r2@b", 2), ("r3@b", 4))
        for number in range(count)
    ]

    dealt = allocate_all(strategy_named("MACHINE_ROOM", options), given, ["c0", "c1", "c2"])

    assert {client: [(q.broker, q.queue) for q in mine] for client, mine in dealt.items()} == {  # type: ignore[union-attr]
        "c0": [("r1@b", 0), ("r1@b", 1), ("r2@b", 1)],
        "c1": [("r1@b", 2), ("r1@b", 3)],
        "c2": [("r1@b", 4), ("r2@b", 0)],
    }


def test_machine_room_without_rooms_throws_only_where_a_broker_has_one() -> None:
    assert allocate("MACHINE_ROOM", "c", [MessageQueue("T", "plain", 0)], ["c"]) == ()
    with pytest.raises(CallWouldFail, match="NullPointerException"):
        allocate("MACHINE_ROOM", "c", [MessageQueue("T", "r@b", 0)], ["c"])


NEARBY = Options(room_separator="-")


def test_nearby_shares_the_rooms_without_clients_among_all() -> None:
    clients = ["C-c1", "C-c2", "C-c3", "C-c4"]

    assert short("MACHINE_ROOM_NEARBY-AVG", rooms(A=3, B=3, C=5), clients, NEARBY) == {
        "C-c1": "C0 C1 A0 B0",
        "C-c2": "C2 A1 B1",
        "C-c3": "C3 A2 B2",
        "C-c4": "C4",
    }


def test_nearby_leaves_other_rooms_to_their_own_clients() -> None:
    assert short("MACHINE_ROOM_NEARBY-AVG", rooms(A=3, B=3, C=5), ["A-c1", "C-c1", "D-c1"], NEARBY) == {
        "A-c1": "A0 A1 A2 B0",
        "C-c1": "C0 C1 C2 C3 C4 B1",
        "D-c1": "B2",
    }


def test_nearby_throws_for_everybody_when_one_client_has_no_room() -> None:
    dealt = allocate_all(strategy_named("MACHINE_ROOM_NEARBY-AVG", NEARBY), rooms(A=1), ["A-c1", "-c2"])

    assert {client: str(thrown) for client, thrown in dealt.items()} == dict.fromkeys(
        ("A-c1", "-c2"), "IllegalArgumentException: Machine room is null for consumer id -c2"
    )


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


class CountingId(str):
    """A client id that counts with how many others it is compared."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountingId.compared += 1
        return str.__eq__(self, other)


def test_the_ring_of_clients_listed_twice_takes_no_look_at_all_nodes_for_each() -> None:
    clients = [CountingId(f"10.3.{i // 250}.{i % 250}@1") for i in range(300)]

    CountingId.compared = 0
    allocate_all("CONSISTENT_HASH", queues(a=4), [*clients, *clients])

    # All nodes for each would be 300 times at least 3,000.
    assert CountingId.compared < 10 * len(clients)


def test_a_client_listed_twice_gets_as_many_further_nodes_after_those_it_still_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`ConsistentHashRouter.addNode`: a node takes the place of another client's at the same hash."""
    places = {"a-0": 1, "a-1": 2, "a-2": 4, "a-3": 7, "b-0": 2, "b-1": 3, "b-2": 5, "b-3": 6}
    places |= {queue.text(): queue.queue for queue in queues(x=7)}
    monkeypatch.setattr(consistent_hash, "ring_hash", places.__getitem__)

    # First a gets 1 and 2, and b takes 2 and 3. Then a has one node left, and gets a-1 and a-2: 2 and 4. b has only
    # 3 left, and gets b-1 and b-2: 3 and 5.
    dealt = allocate_all(
        strategy_named("CONSISTENT_HASH", Options(virtual_node_cnt=2)), queues(x=7), ["a", "b", "a", "b"], presort=False
    )

    assert {client: [queue.queue for queue in mine] for client, mine in dealt.items() if isinstance(mine, tuple)} == {
        "a": [0, 1, 2, 4, 6],
        "b": [3, 5],
    }


def test_without_virtual_nodes_nobody_owns_anything() -> None:
    assert set(short("CONSISTENT_HASH", queues(a=4), IDS, Options(virtual_node_cnt=0)).values()) == {""}


def test_empty_lists_and_ids_throw_in_the_order_of_the_check() -> None:
    for client, of, clients, reason in (
        ("", [], [], "currentCID is empty"),
        ("a", [], [], "mqAll is null or mqAll empty"),
        ("a", queues(a=1), [], "cidAll is null or cidAll empty"),
    ):
        with pytest.raises(CallWouldFail, match=reason):
            allocate("AVG", client, of, clients)


def test_a_client_that_is_not_in_the_list_gets_an_empty_list() -> None:
    assert allocate("AVG", "stranger", queues(a=4), ["a"]) == ()


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
        strategy_named("BY_LUCK")
    with pytest.raises(UnknownStrategy, match="''"):
        strategy_named("MACHINE_ROOM_NEARBY-", NEARBY)
    with pytest.raises(BadOption, match="illegal virtualNodeCnt :-1"):
        strategy_named("CONSISTENT_HASH", Options(virtual_node_cnt=-1))
    with pytest.raises(BadOption, match="room_separator"):
        strategy_named("MACHINE_ROOM_NEARBY-AVG")
    with pytest.raises(BadQueue, match="no int32"):
        allocate("AVG", "a", [MessageQueue("t", "b", 2**31)], ["a"])
    with pytest.raises(CannotTell, match="overflow"):
        allocate_all("AVG", [MessageQueue("t", "b", -1), MessageQueue("t", "b", 2**31 - 1)], ["a"])
    with pytest.raises(CannotTell, match="virtual nodes"):
        allocate(strategy_named("CONSISTENT_HASH", Options(virtual_node_cnt=2**31 - 1)), "a", queues(a=1), ["a"])


def test_a_queue_id_may_be_as_low_as_an_int32_can_be_and_no_lower() -> None:
    lowest = MessageQueue("t", "b", -2_147_483_648)
    assert allocate("AVG", "a", [lowest], ["a"]) == (lowest,)
    with pytest.raises(BadQueue, match="Queue -2147483649 of topic 't' on broker 'b' is no int32"):
        allocate("AVG", "a", [MessageQueue("t", "b", -2_147_483_649)], ["a"])


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
