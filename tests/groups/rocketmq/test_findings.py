"""Each finding is shown after the time that docs/rocketmq.md gives for it, not a second earlier, since it began."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from streaming.groups.rocketmq.round import Watch
from streaming.groups.rocketmq.state import Watched
from streaming.records import (
    BROADCASTING,
    POP,
    QueuesSeen,
    RocketMQObservation,
    SubscriptionSeen,
)
from tests.groups.rocketmq.world import CIRCLE, ROOM, SECOND, START, TOPIC, A, B, C, Client, World, text, three


def shown_after(world: World, finding: str, longest: int) -> int | None:
    """Seconds from the first round with a fault to the first that shows the finding; None if none does until then.

    Rounds come every second.
    """
    world.interval = SECOND
    began = world.elapsed + SECOND
    while world.elapsed < began + longest * SECOND:
        world.round()
        if finding in world.findings:
            assert world.findings[finding].since == START + began
            return (world.elapsed - began) // SECOND
    return None


def cut_off(world: World) -> None:
    world.lists["broker-b"].remove(C)  # type: ignore[union-attr]


def mix(world: World) -> None:
    world.clients[C].strategy = CIRCLE


def subscribe_to_more(world: World) -> None:
    world.clients[C].topics = (TOPIC, "payments")


def filter_messages(world: World) -> None:
    world.clients[C].more["subscriptions"] = (SubscriptionSeen(TOPIC, "TagA"),)


def broadcast(world: World) -> None:
    world.clients[C].more["message_model"] = BROADCASTING


def hide_a_broker(world: World) -> None:
    world.routes["n2"] = {TOPIC: {"broker-a": 4}}


def freeze(world: World) -> None:
    world.clients[C].answer = "timeout"


def silence_a_broker(world: World) -> None:
    world.lists["broker-b"] = None


def start_twice(world: World) -> None:
    world.lists["broker-b"].append(C)  # type: ignore[union-attr]
    world.addresses[C] = ["10.0.0.3:1", "10.0.0.3:2"]


def hold_twice(world: World) -> None:
    world.clients[A].held[TOPIC] = world.clients[A].held[TOPIC] | {("broker-b", 3)}


def hold_by_nobody(world: World) -> None:
    world.clients[C].held[TOPIC] = world.clients[C].held[TOPIC] - {("broker-b", 3)}


def unlock(world: World) -> None:
    world.clients[C].orderly = True
    world.clients[C].unlocked = {("broker-b", 3)}


def idle(world: World) -> None:
    world.clients[A].held[TOPIC] |= world.clients[C].held[TOPIC]
    world.clients[C].held[TOPIC] = set()


# Seconds after which a finding is shown, its name, and what it says.
SHOWN: dict[Callable[[World], None], tuple[int, str, str]] = {
    cut_off: (
        5,
        "member_lists_differ",
        f"clients that ask there leave members out: {C} is not on the list of broker-b",
    ),
    mix: (5, "mixed_strategies", f"members run different strategies: AVG ({A}, {B}), AVG_BY_CIRCLE ({C})"),
    subscribe_to_more: (
        5,
        "subscriptions_differ",
        "members of one group must subscribe alike: payments (1 of 3)",
    ),
    filter_messages: (
        5,
        "subscriptions_differ",
        "members of one group must subscribe alike: orders by different filters",
    ),
    broadcast: (
        5,
        "subscriptions_differ",
        "members of one group must subscribe alike: CLUSTERING and BROADCASTING",
    ),
    freeze: (
        15,
        "not_answering",
        f"members that brokers list do not answer; nobody else takes their queues: {C} (2 queues)",
    ),
    silence_a_broker: (
        15,
        "broker_not_answering",
        "brokers do not report the group's members: broker-b (no answer). The lag of their queues is not known",
    ),
    hide_a_broker: (
        40,
        "route_differs",
        "name servers report different queues: n2 lacks brokers broker-b of orders",
    ),
    hold_twice: (
        60,
        "doubly_held",
        f"queues that two members hold, which consume the same messages: orders@broker-b 3 by {A}, {C}",
    ),
    hold_by_nobody: (60, "held_by_nobody", "queues that no member holds: orders@broker-b 3 (0 unread)"),
    unlock: (
        60,
        "orderly_not_locked",
        f"orderly members hold queues without the broker's lock, so they consume nothing: orders@broker-b 3 ({C})",
    ),
    idle: (60, "idle_members", f"1 of 3 members hold no queue: {C}"),
    start_twice: (
        150,
        "duplicate_client_id",
        (
            "brokers list a client id twice, and nobody takes the share of the second entry: "
            f"{C} (10.0.0.3:1, 10.0.0.3:2) on broker-b"
        ),
    ),
}


@pytest.mark.parametrize("fault", SHOWN, ids=lambda fault: fault.__name__)
def test_a_finding_says_who_and_what_after_its_time_and_is_gone_at_the_first_round_without_it(
    fault: Callable[[World], None],
) -> None:
    seconds, finding, detail = SHOWN[fault]
    world, healthy = three(), three()
    fault(world)
    assert shown_after(world, finding, 2 * seconds) == seconds
    assert text(world, finding) == detail
    for name in ("clients", "lists", "routes", "addresses"):
        setattr(world, name, getattr(healthy, name))
    world.round()
    assert finding not in world.findings


@pytest.mark.parametrize(("calm_from", "seconds"), [(10, 60), (11, 61), (20, 70), (100, 150), (130, 150)])
def test_owners_are_blamed_after_60_s_if_views_were_calm_for_50_of_them_and_after_150_s_anyway(
    calm_from: int, seconds: int
) -> None:
    # A topic of the group that nobody subscribes to changes its route every second, and then no more.
    world = three()
    hold_twice(world)
    world.interval = SECOND
    began = world.elapsed + SECOND
    while "doubly_held" not in world.findings:
        if world.elapsed + SECOND <= began + calm_from * SECOND:
            world.routes["n1"]["payments"] = {"broker-a": 1 + world.elapsed // SECOND % 2}
        world.round()
        assert world.elapsed - began <= 200 * SECOND
    assert world.elapsed - began == seconds * SECOND


def flip(rounds_with_a_wrong_owner: set[int], rounds: int) -> set[str]:
    """Findings after rounds of a group whose lists differ, and whose owners are wrong in some of the rounds."""
    world = World()
    world.join(*(Client(name) for name in (A, B, C)))
    world.settle()
    cut_off(world)
    rightly = world.clients[A].held[TOPIC]
    for number in range(rounds):
        wrong = {("broker-b", 3)} if number in rounds_with_a_wrong_owner else set()
        world.clients[A].held[TOPIC] = rightly | wrong
        world.round()
    return set(world.findings)


@pytest.mark.parametrize(
    ("wrong", "rounds", "is_split"),
    [
        # Rounds come every 10 s, and lists differ from the first one on: 7 rounds are 60 s.
        ({2, 4, 6}, 7, True),
        ({1, 3, 5}, 6, False),
        ({4, 6}, 7, False),
        # The newest 16 rounds count.
        ({1, 9, 16}, 17, True),
        ({0, 9, 16}, 17, False),
    ],
)
def test_owners_that_are_wrong_in_three_of_16_rounds_beside_views_that_differ_for_60_s_are_a_split_brain(
    wrong: set[int], rounds: int, is_split: bool
) -> None:
    assert flip(wrong, rounds) == {"member_lists_differ"} | ({"split_brain"} if is_split else set())


def test_a_split_brain_names_the_queues_and_the_views_behind_it() -> None:
    world = three()
    cut_off(world)
    hold_twice(world)
    world.clients[B].held[TOPIC] = world.clients[B].held[TOPIC] - {("broker-b", 0)}
    world.round(7)
    assert text(world, "split_brain") == (
        f"{text(world, 'doubly_held')}; {text(world, 'held_by_nobody')}, because members see different groups: "
        f"member_lists_differ ({text(world, 'member_lists_differ')})"
    )
    assert world.findings["split_brain"].since == world.findings["member_lists_differ"].since


def test_a_split_brain_of_long_names_has_a_detail_of_a_thousand_characters() -> None:
    world = World()
    topics = [letter * 200 for letter in "wxyz"]
    world.routes["n1"] = {topic: {"broker-b": 4} for topic in topics}
    world.routes["n2"] = {topics[0]: {"broker-b": 4}}
    world.join(*(Client(name, topics=topics) for name in (A, B, C)))
    world.rebalance()
    world.round(2)
    cut_off(world)
    for topic in topics:
        world.clients[A].held[topic] |= world.clients[C].held[topic]
    world.round(7)
    detail = text(world, "split_brain")
    assert detail.startswith(f"queues that two members hold, which consume the same messages: {topics[0]}@broker-b 3 ")
    assert len(detail) == 1_000


def test_of_a_queue_that_nobody_holds_only_what_brokers_tell_is_said() -> None:
    world = three()
    # Messages 3 to 6 are there, and broker-b does not tell what was committed. broker-a tells nothing of its queues.
    world.consume(TOPIC, "broker-b", 3, end=7, committed=5)
    seen = world.observation

    def told(of: QueuesSeen) -> QueuesSeen:
        if of.broker == "broker-a":
            return QueuesSeen("broker-a", "error")
        return msgspec.structs.replace(of, min=(0, 0, 0, 3), committed=None)

    def observation() -> RocketMQObservation:
        found = seen()
        topics = [msgspec.structs.replace(one, queues=tuple(map(told, one.queues))) for one in found.topics]
        return msgspec.structs.replace(found, topics=tuple(topics))

    world.observation = observation  # type: ignore[method-assign]
    hold_by_nobody(world)
    world.clients[A].held[TOPIC] -= {("broker-a", 0)}
    world.round(7)
    assert text(world, "held_by_nobody") == (
        "queues that no member holds: orders@broker-a 0 (0 unread), orders@broker-b 3 (4 unread)"
    )


def test_what_a_strategy_leaves_out_on_purpose_is_a_fault_only_with_messages_to_read() -> None:
    # MACHINE_ROOM leaves out queues of other rooms.
    world = three(strategy=ROOM)
    hold_by_nobody(world)
    world.consume(TOPIC, "broker-b", 3, end=7, committed=7)
    world.round(10)
    assert world.findings == {}
    world.consume(TOPIC, "broker-b", 3, end=8, committed=7)
    world.round(7)
    assert "orders@broker-b 3 (1 unread)" in text(world, "held_by_nobody")


def test_members_behind_a_proxy_that_cannot_be_asked_are_not_silent() -> None:
    world = three()
    world.broker_more["consume_type"] = POP
    freeze(world)
    world.round(10)
    assert "not_answering" not in world.findings


def test_a_member_that_is_not_asked_because_it_was_silent_is_still_silent() -> None:
    world = three()
    freeze(world)
    world.round()
    began = START + world.elapsed
    world.clients[C].answer = "not_asked"
    world.round(5)
    assert world.findings["not_answering"].since == began
    # One that was not asked for another reason has done nothing wrong.
    world.clients[B].answer = "not_asked"
    world.round(4)
    assert C in text(world, "not_answering")
    assert B not in text(world, "not_answering")


def test_queues_of_retries_and_dropped_ones_need_no_lock() -> None:
    world = World()
    world.routes["n1"]["%RETRY%billing"] = {"broker-a": 1}
    world.join(Client(A, topics=(TOPIC, "%RETRY%billing"), orderly=True))
    world.settle()
    world.clients[A].unlocked = {("broker-a", 0)}
    world.clients[A].held[TOPIC] -= {("broker-a", 0)}
    world.round(10)
    assert "orderly_not_locked" not in world.findings
    world.clients[A].unlocked |= {("broker-a", 1)}
    world.round(10)
    assert "orders@broker-a 1" in text(world, "orderly_not_locked")


def test_members_that_are_idle_beside_queues_of_nobody_are_told_of_as_these_alone() -> None:
    world = three()
    world.clients[C].held[TOPIC] = set()
    world.round(10)
    assert set(world.findings) == {"held_by_nobody"}


LACKS = "name servers report different queues: n2 lacks"


@pytest.mark.parametrize(
    ("n1", "n2", "detail"),
    [
        ({}, {TOPIC: {"broker-a": 4, "broker-b": 3}}, f"{LACKS} queues of orders"),
        ({"a-topic": {"broker-a": 4}}, {TOPIC: {"broker-a": 4}}, f"{LACKS} brokers broker-b of orders"),
        # A topic that nobody subscribes to makes no difference.
        ({"payments": {"broker-a": 4}}, {TOPIC: {"broker-a": 4, "broker-b": 4}}, None),
    ],
)
def test_a_name_server_that_knows_fewer_queues_of_a_subscribed_topic_is_told_of(
    n1: dict[str, dict[str, int]], n2: dict[str, dict[str, int]], detail: str | None
) -> None:
    world = three()
    world.routes["n1"] |= n1
    world.routes["n2"] = n2
    world.round(6)
    assert {name: found.detail for name, found in world.findings.items()} == (
        {} if detail is None else {"route_differs": detail}
    )


def test_a_broadcasting_group_has_no_findings_about_owners() -> None:
    world = three(more={"message_model": BROADCASTING}, strategy=None)
    for fault in (hold_twice, start_twice, mix):
        fault(world)
    world.round(20)
    assert world.findings == {}


def test_a_client_id_that_is_listed_twice_is_told_of_where_brokers_do_not_tell_connections() -> None:
    world = three()
    start_twice(world)
    world.broker_more["channels"] = None
    assert shown_after(world, "duplicate_client_id", 200) == 150


def test_two_clients_of_one_id_on_one_broker_are_told_of_while_they_connect_to_another() -> None:
    world = three()
    start_twice(world)
    assert shown_after(world, "duplicate_client_id", 150) == 150
    world.lists["broker-a"].append(C)  # type: ignore[union-attr]
    world.round()
    assert text(world, "duplicate_client_id").endswith(f"{C} (10.0.0.3:1, 10.0.0.3:2) on broker-a, broker-b")


def test_what_rounds_show_lasts_from_the_first_of_them_until_one_misses_it_or_a_clock_goes_back() -> None:
    kept: dict[str, Watched] = {}
    lasted = []
    for at in (1_000, 1_500, 9_000, None, 10_000, 11_000, 10_500, 10_700):
        watch = Watch(kept, at or 9_500, START)
        if at is not None:
            lasted.append(watch.see("this"))
        kept = watch.kept()
    assert lasted == [-1, 500, 8_000, -1, 1_000, 500, 700]
    assert Watch(kept, 9_000, START).see("this") == -1
