"""A partition as people type it: TOPIC/NUMBER."""

from __future__ import annotations

from assignors.explain import PartitionId
from streaming.exceptions import EvenkeelError
from streaming.terminal import visible

# Partition numbers are signed 32-bit integers.
_DIGITS = 10


class PartitionError(EvenkeelError):
    """A text is no partition."""


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
