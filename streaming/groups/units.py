"""Units that members own, named once: a topic's partition in Kafka, a topic's queue on one broker in RocketMQ.

The core keeps partitions by a unit's name and a number. A Kafka topic is named as it is. RocketMQ numbers the queues of
each broker apart, so there the name stands for a topic on a broker: a text that no topic can have as its name. Rows
name topic and broker apart.
"""

from __future__ import annotations

from typing import Final

# Neither topics nor brokers can have it in their names.
_BETWEEN: Final = "\0@\0"


def unit_of(topic: str, broker: str | None) -> str:
    """The name of a topic's queues on a broker; of a topic's partitions where there is none."""
    return topic if broker is None else f"{topic}{_BETWEEN}{broker}"


def split(unit: str) -> tuple[str, str | None]:
    """Topic and broker; no broker where it is a plain topic."""
    topic, between, broker = unit.partition(_BETWEEN)
    return topic, broker if between else None


def for_people(text: str) -> str:
    """A text with names of units in it, as people read them: topic@broker."""
    return text.replace(_BETWEEN, "@")
