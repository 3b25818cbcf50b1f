"""Inputs of a leader's decision that the group's record does not contain, by the leader's library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from assignors.model import Group
from assignors.strategy import JAVA, KAFKA_PYTHON, Library

# `ConsumerCoordinator._perform_assignment` of kafka-python, all releases to 3.1, requests the metadata of the other
# members' topics and assigns without waiting for it; its log says "No partition metadata for topic". It may not know
# its own topics either: `poll` waits for metadata before it joins only with a subscription by pattern. It rejoins when
# the metadata has arrived. Java, librdkafka, aiokafka, sarama and franz-go wait for it, but in Java leaders this
# sometimes fails: `ConsumerNetworkClient.awaitMetadataUpdate` waits until the metadata's version has changed, and the
# answer to an earlier refresh changes it, too. In 39 of 4,000 decisions of real groups (3.7.1 and 4.3.1, a
# `metadata.max.age.ms` of 3 s, a loaded machine) topics were missing that the leader itself did not subscribe to; its
# own topics can be missing in the same way when it changes its subscription. This is too rare to expect of a leader, so
# Java is not listed here, but it is not drift either (streaming/groups/classic/recompute.py).
_DOES_NOT_WAIT = frozenset({KAFKA_PYTHON})

_KNOWS_OTHER_TOPICS = frozenset({KAFKA_PYTHON, "aiokafka"})

_STICKY = frozenset({"sticky", "cooperative-sticky"})

# From this release on `AbstractStickyAssignor.maxGeneration` is kept between decisions.
_REMEMBERS = (3, 0)

# Above every generation that a record can contain.
_ABOVE_ALL = (1 << 31) - 1


def topics_without_metadata(library: Library, subscribed: Iterable[str]) -> frozenset[str]:
    """Existing subscribed topics that a leader of this library may not have known: unassigned, which is not drift.

    The leader treats such a topic as one without partitions: its result is that of a group whose `partitions_per_topic`
    lacks it. A topic is missing completely or not at all.

    Args:
        library: A candidate for the leader's library.
        subscribed: Topics with at least one subscriber.
    """
    if library.name not in _DOES_NOT_WAIT:
        return frozenset()
    return frozenset(subscribed)


def with_hidden_inputs(strategy: str, group: Group, library: Library) -> Iterator[tuple[Group, str | None]]:
    """Yield other groups that a leader of this library may have seen, consistent with the record.

    A Java leader may remember a generation above all of the members', for instance if the group was deleted and created
    again while the leader's process lived on. This is rare, so an assignment that fits only then is not attributed to
    that leader. A leader of kafka-python or aiokafka may know topics that nobody subscribes to, which is common.

    Returns:
        Groups to try besides the given one, each with the reason why a fit does not prove the candidate; None where it
        does.
    """
    if strategy not in _STICKY:
        return
    if library.name == JAVA and (library.release is None or library.release >= _REMEMBERS):
        reason = "it fits only a leader that remembers a higher generation than any member's"
        yield replace(group, remembered_generation=_ABOVE_ALL), reason
    if library.name in _KNOWS_OTHER_TOPICS:
        yield replace(group, other_topics_known=True), None
