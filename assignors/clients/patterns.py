"""Subscriptions that librdkafka reads as patterns."""

from __future__ import annotations

from assignors.exceptions import CannotTell
from assignors.model import Group

__all__ = ["refuse_patterns"]


def refuse_patterns(group: Group) -> None:
    """Pass when no member subscribes to a text that begins with "^".

    No topic's name can; a librdkafka leader matches such a text against all topics as a regular expression
    (`rd_kafka_topic_partition_match`), where every other leader finds no topic of that name. No client sends
    one by itself: they all send the topics that matched.

    Raises:
        CannotTell: A member does.
    """
    if any(topic.startswith("^") for member in group.members for topic in member.topics):
        reason = "a subscription holds a pattern that librdkafka matches by its own rules"
        raise CannotTell(reason)
