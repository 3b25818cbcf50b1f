"""Twenty sound groups that change all the time, watched for ten minutes in real time: nothing lasting may be said."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.rocketmq.followed import FollowedGroups
from tests.rocketmq.member import RocketMQMember
from tests.rocketmq.servers import EmbeddedRocketMQ

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(1_800), pytest.mark.turn(0)]

_GROUPS = 20
_SECONDS = float(os.environ.get("SECONDS", "600"))
_STEP_S = 5.0
_CHANGES_A_STEP = 2
"""Each group changes every 50 s on average, some within seconds: often before the last change has settled."""

_MOST_MEMBERS = 4


class _Churn:
    """A group whose members come, leave, die and are replaced; they rebalance as Java's do."""

    def __init__(self, name_servers: tuple[str, ...], group: str, topic: str) -> None:
        self._name_servers, self._group, self._topic = name_servers, group, topic
        self._number = 0
        self.members: list[RocketMQMember] = []

    def join(self) -> None:
        self._number += 1
        member = RocketMQMember(self._name_servers, self._group, f"10.0.0.{self._number}@{self._number}", [self._topic])
        member.start()
        self.members.append(member)

    def change(self, chance: random.Random) -> None:
        ways: list[Callable[[RocketMQMember], None]] = [RocketMQMember.stop, RocketMQMember.vanish]
        if len(self.members) > 1 and chance.random() < 0.5:
            chance.choice(ways)(self.members.pop(chance.randrange(len(self.members))))
        elif len(self.members) < _MOST_MEMBERS:
            self.join()

    def end(self) -> None:
        for member in self.members:
            member.stop()


def test_of_twenty_churning_groups_nothing_lasting_is_said(tmp_path: Path) -> None:
    chance = random.Random(17)
    with EmbeddedRocketMQ(tmp_path) as cluster, ExitStack() as stack:
        names = [f"churn-{number}" for number in range(_GROUPS)]
        with cluster.commands() as commands:
            for name in names:
                commands.create_topic(name, 4)
        groups = {name: _Churn(cluster.addresses, name, name) for name in names}
        for group in groups.values():
            stack.callback(group.end)
            group.join()
            group.join()
        followed = stack.enter_context(FollowedGroups(cluster.addresses, names))
        began = last = time.monotonic()
        while last - began < _SECONDS:
            for name in chance.sample(names, _CHANGES_A_STEP):
                groups[name].change(chance)
            time.sleep(max(0.0, last + _STEP_S - time.monotonic()))
            now = time.monotonic()
            followed.round(step_ms=int((now - last) * 1000))
            last = now
    assert {name: said for name, said in followed.said_of.items() if said} == {}
    decisions = {name: len(rows.rebalance_churn) for name, rows in followed.rows_of.items()}
    assert min(decisions.values()) >= 2, decisions
    verdicts = [row.verdict for rows in followed.rows_of.values() for row in rows.drift]
    assert "drifted" not in verdicts
    assert verdicts.count("identical") > len(verdicts) / 2, (verdicts.count("identical"), len(verdicts))
