"""The events of the cluster's topics, and which groups read them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.probe.kafka.cluster_topics import AskedTopics, ClusterTopic
from streaming.probe.kafka.look import Description, GroupsSeen
from streaming.probe.kafka.memory import Memory
from streaming.probe.kafka.observe import cluster_topic_events
from streaming.records import MOST_READERS, ClusterTopicObservation
from tests.probe.kafka.build import MakeHead, classic, look_at


def told_of(
    make_head: MakeHead, look: GroupsSeen, memory: Memory | None = None, hidden: str | None = None
) -> ClusterTopicObservation:
    asked = AskedTopics({"a": ClusterTopic(end=(1,), start=(0,), leaders=(1,))}, hidden=hidden)
    (event,) = cluster_topic_events(make_head(0, 0), asked, {}, look, memory or Memory())
    assert event.key == "a"
    return event.saw


def test_a_topic_of_the_cluster_names_the_first_of_its_readers(make_head: MakeHead) -> None:
    look = look_at({}, **{f"g{number:02}": ("a",) for number in range(MOST_READERS + 5)}, other=("b",))
    event = told_of(make_head, look)
    assert (event.groups, event.readers) == (MOST_READERS + 5, tuple(f"g{number:02}" for number in range(MOST_READERS)))


def test_readers_may_be_hidden_where_the_topics_of_a_group_are_not_known(make_head: MakeHead) -> None:
    look = replace(look_at({}, g=("b",)), groups={"g": classic("g", "Empty")})
    known = replace(look, committed={"g": 1})
    assert told_of(make_head, known).hidden is None
    assert told_of(make_head, known, hidden="filtered").hidden == "filtered"
    assert told_of(make_head, look).hidden == "undescribed"
    share = replace(classic("g"), group_type="share")
    assert told_of(make_head, replace(known, groups={"g": share})).hidden == "share_groups"


@pytest.mark.parametrize(
    ("state", "complete", "remembered", "hidden"),
    [
        ("Stable", True, False, None),
        ("Stable", False, True, "undescribed"),
        ("PreparingRebalance", False, True, None),
        ("PreparingRebalance", False, False, "undescribed"),
    ],
)
def test_a_rebalance_hides_readers_only_of_a_group_that_was_not_there_before(
    make_head: MakeHead, state: str, complete: bool, remembered: bool, hidden: str | None
) -> None:
    description = Description(state, "consumer", frozenset({"b"}), complete)
    look = replace(
        look_at({}, g=("b",)), groups={"g": classic("g", state)}, descriptions={"g": description}, committed={"g": 1}
    )
    memory = Memory({"g": frozenset({"b"})} if remembered else {})
    assert told_of(make_head, look, memory).hidden == hidden
