"""A group of a real broker whose leader joins again and again and never sends an assignment."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from streaming.config import KafkaSettings
from streaming.probe.clients import Connections, open_admin
from streaming.probe.deadline import Deadline
from tests.real_groups.followed import Followed, until
from tests.real_groups.party import make_topics
from tests.real_groups.raw_members import assignment_bytes, subscription_bytes

pytestmark = pytest.mark.kafka

_TIMEOUT_MS = 6_000
_OK, _MEMBER_ID_REQUIRED = 0, 79
_COORDINATOR_COMES = {14, 15, 16}
"""Loading, not available (the offsets topic is created when somebody asks for a coordinator), not this one."""


class Leader:
    """The only member of a group, request by request."""

    def __init__(self, connections: Connections, group: str, topic: str) -> None:
        self._connections = connections
        self._group = group
        self._topic = topic
        self._joins = 0
        self._assignment = assignment_bytes(topic, [0])
        self._member_id = ""
        self._generation = -1

    def join(self) -> None:
        """Join as the leader of a new generation."""

        def joined() -> bool:
            # A broker repeats its answer to a member that repeats itself; new user data begin a new rebalance.
            self._joins += 1
            metadata = subscription_bytes(self._topic, self._joins.to_bytes(4))
            protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
            answer = self._ask(
                JoinGroupRequest(
                    group_id=self._group,
                    session_timeout_ms=45_000,
                    rebalance_timeout_ms=_TIMEOUT_MS,
                    member_id=self._member_id,
                    group_instance_id=None,
                    protocol_type="consumer",
                    protocols=[protocol],
                    reason=None,
                )
            )
            assert answer.error_code in {_OK, _MEMBER_ID_REQUIRED, *_COORDINATOR_COMES}, answer
            if answer.error_code in _COORDINATOR_COMES:
                self._ask(FindCoordinatorRequest(key=self._group, key_type=0, coordinator_keys=[self._group]))
            self._member_id = answer.member_id or self._member_id
            self._generation = answer.generation_id
            return bool(answer.error_code == _OK)

        until(joined)

    def sync(self) -> None:
        """Send the assignment, which ends the rebalance."""
        mine = SyncGroupRequest.SyncGroupRequestAssignment(member_id=self._member_id, assignment=self._assignment)
        answer = self._ask(
            SyncGroupRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=None,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[mine],
            )
        )
        assert answer.error_code == _OK, answer

    def _ask(self, request: Any) -> Any:
        (answer,) = self._connections.ask([(None, request)], Deadline.after(30))
        return answer


def test_a_leader_that_never_sends_an_assignment_is_a_stuck_rebalance_until_it_does(
    bootstrap: str, unique: str
) -> None:
    make_topics(bootstrap, {unique: 1})
    group = f"{unique}-app"
    admin = open_admin(KafkaSettings(bootstrap_servers=bootstrap))
    try:
        leader = Leader(Connections(admin), group, unique)
        with Followed(bootstrap, unique) as followed:

            def findings() -> list[str]:
                return [finding.finding for finding in followed.health(group).findings]

            leader.join()
            leader.sync()
            followed.round_until(lambda: f"g:{group}" in followed.rows and followed.health(group).state == "Stable")
            assert findings() == []

            seen: list[str] = []

            def turn() -> None:
                leader.join()
                followed.round()
                seen.append(str(followed.health(group).state))

            # Each join begins a generation that has a timeout of its own at the broker; none is ever in force.
            until(lambda: findings() == ["stuck_rebalance"], turn)
            assert set(seen) == {"CompletingRebalance"}
            (finding,) = followed.health(group).findings
            assert followed.health(group).round_time - finding.since > _TIMEOUT_MS

            leader.sync()
            followed.round_until(lambda: followed.health(group).generation > 1)
            assert findings() == []
    finally:
        admin.close()
