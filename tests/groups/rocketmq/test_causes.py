"""What made a group decide again, where one change brings another with it."""

from __future__ import annotations

from tests.groups.rocketmq.world import A, B, Client, World


def test_a_broker_that_gets_the_topic_gets_the_members_on_its_list_for_that_reason() -> None:
    world = World()
    world.routes = {"n1": {"orders": {"broker-a": 4}}}
    for name in (A, B):
        world.clients[name] = Client(name)
    world.lists = {"broker-a": [A, B], "broker-b": []}
    world.settle()
    world.routes["n1"]["orders"]["broker-b"] = 4
    world.lists["broker-b"] = [A, B]
    world.rebalance()
    world.round(2)
    [churn] = world.rows.rebalance_churn
    assert [(cause.cause, cause.after) for cause in churn.causes or ()] == [("broker_added", "broker-b")]
