"""aiokafka's own sticky class, with this process's hash seed, compared with ours: the same, or CannotTell.

1,000 decisions; the environment variable CASES sets another number: 20,000 in `make test-all`.
"""

from __future__ import annotations

import logging
import os
from random import Random
from types import SimpleNamespace

import pytest

from assignors import Assignment, CannotTell, Group, assign, from_topics, same
from tests.assignors.sticky_chains import chain
from tests.oracle.java_assignors import Case

pytestmark = pytest.mark.nightly

_sticky = pytest.importorskip("aiokafka.coordinator.assignors.sticky.sticky_assignor")

CASES = int(os.environ.get("CASES", "1000"))


def test_every_decision_in_a_chain_is_that_of_aiokafka_s_own_class() -> None:
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    random = Random("aiokafka sticky")
    done = told = 0

    def decide(case: Case) -> Assignment | None:
        nonlocal done, told
        done += 1
        try:
            ours = assign("sticky", case.group, "aiokafka:0.14")
        except CannotTell:
            return None
        assert same(ours, aiokafka(case.group)), case
        told += 1
        return ours

    while done < CASES:
        for _ in chain(random, "sticky", decide, tidy=random.random() < 0.3):
            pass
    assert told > done * 0.8


def aiokafka(group: Group) -> Assignment:
    """The result of the installed aiokafka's class."""
    subscribed = {topic for member in group.members for topic in member.topics}
    known = {topic: count for topic, count in group.partitions_per_topic.items() if count and topic in subscribed}
    cluster = SimpleNamespace(
        topics=lambda: set(known),
        partitions_for_topic=lambda topic: set(range(known[topic])) if topic in known else None,
    )
    members = {
        member.member_id: _sticky.ConsumerProtocolMemberMetadata(0, list(member.topics), member.user_data or b"")
        for member in group.members
    }
    made = _sticky.StickyPartitionAssignor.assign(cluster, members)
    return from_topics(
        {member_id: [(topic, tuple(parts)) for topic, parts in of.assignment] for member_id, of in made.items()}
    )
