"""Subscriptions that librdkafka interprets as patterns."""

from __future__ import annotations

from assignors.assignment import Assignment
from assignors.exceptions import CannotTell
from assignors.model import Group
from assignors.strategy import PartitionRacks, Recompute


def without_patterns(recompute: Recompute) -> Recompute:
    """The same leader, but for groups in which a member subscribes to a text that begins with "^": CannotTell.

    No topic name can begin so. A librdkafka leader matches the text against all topics as a regular expression
    (`rd_kafka_topic_partition_match`), while every other leader finds no topic of this name. Clients do not send such
    texts by themselves: they send the topics that matched.
    """

    def checked(group: Group, racks: PartitionRacks | None) -> Assignment:
        if any(topic.startswith("^") for member in group.members for topic in member.topics):
            reason = "a subscription holds a pattern that librdkafka matches by its own rules"
            raise CannotTell(reason)
        return recompute(group, racks)

    return checked
