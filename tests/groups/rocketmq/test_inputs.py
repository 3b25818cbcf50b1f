"""`drift.inputs` of a RocketMQ group: a line of `evenkeel assign` that gives the owners which the verdict compared."""

from __future__ import annotations

import json

from assignors.jsonl import assign_line
from streaming.groups import unpack_inputs
from tests.groups.rocketmq.world import A, B, C, Client, World


def test_the_inputs_of_a_verdict_give_its_owners_again() -> None:
    world = World()
    world.join(*(Client(name) for name in (A, B, C)))
    world.rebalance()
    world.round(2)
    [drift] = world.rows.drift
    assert drift.verdict == "identical"
    assert drift.inputs is not None
    answer = assign_line(json.loads(unpack_inputs(drift.inputs)))
    given = {
        client: {(queue["broker"], queue["queue"]) for queue in queues}
        for client, queues in answer["assignment"].items()
    }
    assert given == {client: world.clients[client].held["orders"] for client in (A, B, C)}
