"""Queues as partitions: the core's other rooms number partitions by topic, RocketMQ numbers queues by topic and broker.

A **place** stands for a topic on one broker. It is a text that no topic can have as its name, and takes the topic's
place wherever the lag, the rates and a membership are kept; rows name topic and broker apart.
"""

from __future__ import annotations

from typing import Final

# Neither topics nor brokers can have it in their names.
_BETWEEN: Final = "\0"

_RETRY: Final = "%RETRY%"
_DEAD: Final = "%DLQ%"


def place_of(topic: str, broker: str) -> str:
    """The place of a topic on a broker."""
    return f"{topic}{_BETWEEN}{broker}"


def split(place: str) -> tuple[str, str | None]:
    """Topic and broker of a place; no broker where it is a plain topic."""
    topic, between, broker = place.partition(_BETWEEN)
    return topic, broker if between else None


def named(text: str) -> str:
    """A place, or a text with places in it, for people: topic@broker."""
    return text.replace(_BETWEEN, "@")


def is_retry(topic: str) -> bool:
    """Whether a topic has messages that are delivered again: every push consumer of the group subscribes to it."""
    return topic.startswith(_RETRY)


def is_dead_letters(topic: str) -> bool:
    """Whether a topic has messages that were given up: no member subscribes to it, so it has no lag and no owner."""
    return topic.startswith(_DEAD)
