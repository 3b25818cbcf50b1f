"""Properties of every strategy for every group, tested with hypothesis."""

from __future__ import annotations

from itertools import product

from hypothesis import given, note, settings
from hypothesis import strategies as st

from assignors import Assignment, CannotTell, Group, LeaderWouldFail, Subscription, assign, violations

_TOPICS = ("a", "b", "c", "ä", "\U0001d400", "\uff21")
_LIBRARIES = (
    "java:2.3.1", "java:3.4.1", "java:4.3.1", "librdkafka:1.2", "librdkafka:2.16", "kafka-python:2.2.15",
    "kafka-python:3.0.12", "aiokafka:0.14", "franz-go:1.21", "sarama:1.60.1",
)  # fmt: skip


@st.composite
def groups(draw: st.DrawFn) -> Group:
    ids = draw(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=6, unique=True))
    members = tuple(
        Subscription(
            member_id,
            tuple(draw(st.lists(st.sampled_from(_TOPICS), max_size=6))),
            group_instance_id=f"i{number}" if draw(st.booleans()) else None,
        )
        for number, member_id in enumerate(ids)
    )
    return Group(members, draw(st.dictionaries(st.sampled_from(_TOPICS), st.integers(0, 9))))


@given(group=groups())
@settings(max_examples=100, deadline=None)
def test_each_partition_has_exactly_one_owner_where_there_is_a_subscriber(group: Group) -> None:
    for strategy, library in product(("range", "roundrobin"), _LIBRARIES):
        note(f"{strategy} of {library}")
        try:
            result = assign(strategy, group, library)
        except (CannotTell, LeaderWouldFail):
            continue
        _each_has_one_owner(result, strategy, library, group)


def _each_has_one_owner(result: Assignment, strategy: str, library: str, group: Group) -> None:
    subscribed = {member.member_id: member.topics for member in group.members}

    assert set(result) == set(subscribed)
    assert violations(result, subscribed, group.partitions_per_topic) == ()
    loses_blocks = library.startswith(("kafka-python", "aiokafka"))
    if not (loses_blocks and strategy == "range" and any(len(set(t)) < len(t) for t in subscribed.values())):
        assigned = sum(len(partitions) for topics in result.values() for partitions in topics.values())
        wanted = {topic for topics in subscribed.values() for topic in topics}
        assert assigned == sum(group.partitions_per_topic.get(topic, 0) for topic in wanted)
