"""A partition as people type it: TOPIC/NUMBER.

For RocketMQ, which numbers queues by topic and broker, it means the queues of this number on every broker;
"orders@broker-a" in place of the topic means that one alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assignors.explain import PartitionId
from streaming.exceptions import EvenkeelError, SetupError
from streaming.terminal import visible

# Partition numbers are signed 32-bit integers.
_DIGITS = 10


class PartitionError(EvenkeelError):
    """A text is no partition."""


class NoSuchPartitionError(SetupError):
    """A verdict does not have the partition that was asked for."""


def read_partition(text: str) -> PartitionId:
    """Read TOPIC/NUMBER; a topic of Kafka has no slash, and the last one counts.

    Raises:
        PartitionError: The text is not of this form.
    """
    topic, slash, number = text.rpartition("/")
    if not (slash and topic and number.isascii() and number.isdigit() and len(number) <= _DIGITS):
        message = f"A partition is written TOPIC/NUMBER, for example orders/3, and not {visible(text[:100])}."
        raise PartitionError(message)
    return topic, int(number)


def is_on(topic: str | None, partition: PartitionId) -> bool:
    """Whether a verdict on a topic can say something of a partition.

    Args:
        topic: The verdict's topic; None where it is on all topics of the group.
        partition: As `read_partition` gives it.
    """
    # A topic of RocketMQ has no "@" in its name.
    return topic is None or partition[0].partition("@")[0] == topic


def is_meant(row: Mapping[str, Any], partition: PartitionId) -> bool:
    """Whether a partition of `drift.drifted_partitions` (topic, broker, partition) is the one that was typed."""
    named = (row["topic"], f"{row['topic']}@{row.get('broker')}")
    return row["partition"] == partition[1] and partition[0] in named
