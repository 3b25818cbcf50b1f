"""Healthy groups that change all the time are never blamed; lasting faults always are, by the right name."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.groups.rocketmq.simulation import Simulation
from tests.groups.rocketmq.world import CIRCLE, SECOND, TOPIC

MINUTES = 10 * 60 * SECOND

TRUE_FOR_A_WHILE = {"member_lists_differ", "broker_not_answering"}
"""While a broker restarts it answers nothing, then it does not know all members for up to 30 s: true, and over soon."""


def churn(seed: int) -> Simulation:
    """A group that somebody joins or leaves every 5 to 40 s for ten minutes, with topics that grow and restarts."""
    life = Simulation(seed)
    chance = life.random
    for _ in range(chance.randint(1, 4)):
        life.join()
    at = 0
    while at < MINUTES:
        at += chance.randint(5, 40) * SECOND
        life.run(at)
        step = chance.random()
        if step < 0.45 or not life.alive:
            life.join()
        elif step < 0.85:
            life.leave(chance.choice(sorted(life.alive)))
        elif step < 0.95:
            life.grow()
        elif None not in life.world.lists.values() and len(life.world.routes["n1"][TOPIC]) > 1:
            life.restart(chance.choice(sorted(life.world.lists)), chance.randint(1, 60))
    return life


def said(life: Simulation) -> list[tuple[int, str, str]]:
    return [
        (row.round, one.finding, one.detail)
        for row in life.world.rows.group_health
        for one in row.findings
        if one.finding not in TRUE_FOR_A_WHILE | {"idle_members", "rebalance_storm"}
    ]


def check_quiet(seed: int) -> None:
    life = churn(seed)
    assert said(life) == []
    drifted = [
        (row.round, row.reason, row.drifted_partitions) for row in life.world.rows.drift if row.verdict == "drifted"
    ]
    assert drifted == []
    # Left alone, it comes to rest, and is as it should be.
    life.run(life.now + 180 * SECOND)
    health = life.world.health
    assert {one.finding for one in health.findings} <= {"idle_members", "rebalance_storm"}
    assert health.verdict == ("identical" if life.alive else "not_applicable")


@pytest.mark.parametrize("seed", range(20))
def test_twenty_churning_groups_are_not_blamed_in_ten_minutes(seed: int) -> None:
    check_quiet(seed)


@pytest.mark.soak
@pytest.mark.turn(2)
@pytest.mark.parametrize("hundred", range(20))
def test_thousands_of_churning_groups_are_not_blamed(hundred: int) -> None:
    for seed in range(1_000 + 100 * hundred, 1_100 + 100 * hundred):
        check_quiet(seed)


def settled(seed: int, members: int = 3) -> Simulation:
    life = Simulation(seed)
    life.world.routes = {"n1": {TOPIC: {"broker-a": 4, "broker-b": 4}}}
    for _ in range(members):
        life.join()
    life.run(120 * SECOND)
    assert life.world.health.findings == ()
    assert life.world.health.verdict == "identical"
    return life


def one(life: Simulation) -> str:
    return life.random.choice(sorted(life.alive))


def mixed(life: Simulation) -> None:
    life.alive[one(life)].client.strategy = CIRCLE


def lost(life: Simulation) -> None:
    name = one(life)
    life.cut.add((name, "broker-b"))
    life._off(name, "broker-b")


def twice(life: Simulation) -> None:
    name = one(life)
    for listed in life.world.lists.values():
        if listed is not None:
            listed.append(name)
    life.world.addresses[name] = ["10.0.0.1:1", "10.0.0.77:2"]


def poorer(life: Simulation) -> None:
    life.world.routes["n2"] = {TOPIC: {"broker-a": 4}}
    life.alive[one(life)].server = "n2"


def frozen(life: Simulation) -> None:
    alive = life.alive[one(life)]
    alive.client.answer, alive.follows = "timeout", False


def other_topic(life: Simulation) -> None:
    life.alive[one(life)].client.topics = ("payments",)
    life.alive[one(life)].client.held.pop(TOPIC, None)
    for alive in life.alive.values():
        if TOPIC not in alive.client.topics:
            alive.client.held.pop(TOPIC, None)


def unlocked(life: Simulation) -> None:
    for alive in life.alive.values():
        alive.client.orderly = True
    client = life.alive[one(life)].client
    client.unlocked = {("broker-a", n) for n in range(9)} | {("broker-b", n) for n in range(9)}


def stuck(life: Simulation) -> None:
    """A client that does not rebalance any more, and holds one queue of somebody else's."""
    alive = life.alive[one(life)]
    alive.follows = False
    alive.client.held[TOPIC] = {("broker-a", n) for n in range(4)}


FAULTS: dict[Callable[[Simulation], None], set[str]] = {
    mixed: {"mixed_strategies", "split_brain"},
    lost: {"member_lists_differ"},
    twice: {"duplicate_client_id", "held_by_nobody", "split_brain"},
    poorer: {"route_differs"},
    frozen: {"not_answering"},
    other_topic: {"subscriptions_differ", "held_by_nobody"},
    unlocked: {"orderly_not_locked"},
    stuck: {"doubly_held"},
}


def check_found(fault: Callable[[Simulation], None], seed: int) -> None:
    life = settled(seed)
    fault(life)
    life.run(life.now + 170 * SECOND)
    found = {one.finding for one in life.world.health.findings}
    assert FAULTS[fault] <= found
    owners = {"split_brain", "doubly_held", "held_by_nobody"}
    assert found <= FAULTS[fault] | owners | {"idle_members"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_lasting_fault_is_found_by_its_name(fault: Callable[[Simulation], None]) -> None:
    for seed in range(5):
        check_found(fault, seed)


@pytest.mark.soak
@pytest.mark.turn(2)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_lasting_fault_is_found_in_hundreds_of_groups(fault: Callable[[Simulation], None]) -> None:
    for seed in range(100, 300):
        check_found(fault, seed)


def test_the_rows_do_not_depend_on_how_rounds_were_cut_into_batches() -> None:
    from streaming.groups import GroupConfig, advance, decode_state, encode_state  # noqa: PLC0415
    from streaming.groups.rows import Rows  # noqa: PLC0415
    from tests.groups.rocketmq.world import GROUP  # noqa: PLC0415

    for seed in range(3):
        life = churn(seed)
        seen, whole = life.world.seen, life.world.rows
        for _ in range(4):
            stored: tuple[int, bytes] | None = None
            rows, at = Rows(), 0
            while at < len(seen):
                step = life.random.randint(1, 15)
                state = decode_state(*stored) if stored is not None else None
                state, new = advance(state, GROUP, list(seen[at : at + step]), GroupConfig("test"))
                stored = encode_state(state) if state is not None else None
                at += step
                for table in new.__struct_fields__:
                    getattr(rows, table).extend(getattr(new, table))
            assert msgspec.msgpack.encode(rows) == msgspec.msgpack.encode(whole)
