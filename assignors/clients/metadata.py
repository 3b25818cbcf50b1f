"""Which topics a leader may not have known, although they exist: then nobody gets them, and that is no drift."""

from __future__ import annotations

from collections.abc import Iterable

from assignors.library import Library

__all__ = ["topics_without_metadata"]

# `ConsumerCoordinator._perform_assignment` of kafka-python, all releases to 3.1, asks for the metadata of the
# other members' topics and assigns without waiting for it; "No partition metadata for topic" says its log. Its own
# topics it may not know either: only a subscription by pattern has `poll` wait for metadata before it joins. It joins
# anew when the metadata has come. Java, librdkafka, aiokafka, sarama and franz-go wait for it; Java's leaders sometimes
# in vain: `ConsumerNetworkClient.awaitMetadataUpdate` waits until the metadata's version has changed, and the answer to
# a refresh that was under way changes it, too. Of 4,000 decisions of real groups (3.7.1 and 4.3.1, a
# `metadata.max.age.ms` of 3 s, a loaded machine) 39 lacked topics that the leader itself did not subscribe to; its own
# it can lack in the same way, when it changes its subscription. That is too rare to be expected of a leader, so it is
# no candidate here; drift it is not (streaming/groups/classic/recompute.py).
_DOES_NOT_WAIT = frozenset({"kafka-python"})


def topics_without_metadata(library: Library, subscribed: Iterable[str]) -> frozenset[str]:
    """Subscribed topics that existed and of which a leader of this library may have known nothing.

    The leader treats such a topic as one without partitions: its result is that of a group whose
    `partitions_per_topic` lacks it. The whole topic is missing or the whole topic is there.

    Args:
        library: A candidate for the leader's library.
        subscribed: Topics that any member subscribes to.
    """
    if library.name not in _DOES_NOT_WAIT:
        return frozenset()
    return frozenset(subscribed)
