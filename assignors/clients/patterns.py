"""Subscriptions that librdkafka interprets as patterns."""

from __future__ import annotations

from assignors.exceptions import CannotTell
from assignors.model import Group


def refuse_patterns(group: Group) -> None:
    """Refuse a group in which a member subscribes to a text that begins with "^".

    No topic name can begin so. A librdkafka leader matches the text against all topics as a regular expression
    (`rd_kafka_topic_partition_match`), while every other leader finds no topic of this name. Clients do not send such
    texts by themselves: they send the topics that matched.

    Raises:
        CannotTell: A member subscribes to one.
    """
    if any(topic.startswith("^") for member in group.members for topic in member.topics):
        reason = "a subscription holds a pattern that librdkafka matches by its own rules"
        raise CannotTell(reason)
