"""What each client sends when one of its members is closed.

A member of two that consumes and has not committed yet is closed, with a session timeout that is far away: it leaves if
the group goes on without it at once, and commits if the log has commits of its partitions by then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from streaming.offsets_log import OffsetKey, decode_key
from streaming.records import MembershipRecord
from tests.conftest import Tell
from tests.oracle.members_process import MembersProcess
from tests.real_groups.real_clients import PROGRAMS
from tests.real_groups.real_log import offsets_log, read_on
from tests.real_groups.real_members import Joins, Member, program_starter

pytestmark = [pytest.mark.kafka, pytest.mark.soak]

_PARTITIONS = 4
_SETTLED_S = 60.0
_AT_ONCE_S = 5.0
"""A leave takes a round trip; the session times out after five minutes."""
_SESSION_MS = 300_000
_COMMIT_MS = 240_000
_CONSUMES_S = 3.0
"""Records are there for so long before the close; no client says from outside when it has read them."""

# Whether it leaves, and whether it commits.
_DYNAMIC = {name: (True, name != "kafkajs") for name in PROGRAMS}
_STATIC = {name: (name == "platformatic", True) for name, program in PROGRAMS.items() if program.static}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_closed_member_leaves_and_commits_as_listed_here(name: str, bootstrap: str, unique: str, tell: Tell) -> None:
    program = PROGRAMS[name]
    found = []
    with MembersProcess(program.command()) as process, MembersProcess(program.command()) as stays:
        for instance in (None, "i") if program.static else (None,):
            group = f"{unique}-{instance or 'dynamic'}"
            admin = KafkaAdminClient(bootstrap_servers=bootstrap)
            admin.create_topics([NewTopic(group, _PARTITIONS, 1)])
            admin.close()
            far = {"session_ms": _SESSION_MS, "rejoin_ms": _SESSION_MS, "commit_ms": _COMMIT_MS}
            joins = Joins(bootstrap, group, program.strategies[0], (group,), instance, **far, **program.groups[0])
            found.append(_closes(joins, program_starter(process), program_starter(stays)))
        tell(name, found, *process.failures)
    assert found == [_DYNAMIC[name], *([_STATIC[name]] if program.static else [])]


def _closes(
    joins: Joins, start: Callable[[Joins], Member], start_other: Callable[[Joins], Member]
) -> tuple[bool, bool]:
    """Whether a closed member leaves, and whether it commits."""
    committed: list[int] = []

    def keep(group: str, key: bytes, value: bytes | None, at: int) -> None:
        place = decode_key(key)
        if group == joins.group and isinstance(place, OffsetKey) and value is not None:
            committed.append(place.partition)

    with offsets_log(joins.bootstrap) as log:

        def await_members(count: int, seconds: float) -> MembershipRecord | None:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                for group, record in read_on(log, 100, keep):
                    owning = sum(bool(member.assigned) for member in record.members)
                    if group == joins.group and len(record.members) == owning == count:
                        return record
            return None

        member = start(joins)
        alone = await_members(1, _SETTLED_S)
        assert alone is not None
        other = start_other(replace(joins, instance=None))
        both = await_members(2, _SETTLED_S)
        assert both is not None
        mine = next(of for of in both.members if of.member_id == alone.members[0].member_id)
        owned = {partition for _, partitions in mine.assigned or () for partition in partitions}
        producer = Producer({"bootstrap.servers": joins.bootstrap})
        until = time.monotonic() + _CONSUMES_S
        while time.monotonic() < until:
            for partition in range(_PARTITIONS):
                producer.produce(joins.topics[0], b"", partition=partition)
            producer.flush()
            await_members(0, 0.2)
        committed.clear()
        member.leave()
        leaves = await_members(1, _AT_ONCE_S) is not None
        commits = not owned.isdisjoint(committed)
        other.leave()
        return leaves, commits
