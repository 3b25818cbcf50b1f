"""Questions to a consumer for partitions' offsets, with the error that kafka-python does not name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafka import TopicPartition
from kafka.errors import KafkaError


def ask_offsets(
    question: Callable[..., dict[TopicPartition, int]], partitions: Sequence[TopicPartition], timeout_ms: int
) -> dict[TopicPartition, int]:
    """Ask for one offset of each partition; for none of them nothing is asked.

    Args:
        question: `beginning_offsets` or `end_offsets` of a consumer.
        partitions: Which.
        timeout_ms: Limit for the answer. Nothing can end this wait early.

    Raises:
        KafkaError: A partition has no leader, or the brokers did not answer in time.
    """
    if not partitions:
        return {}
    try:
        return question(list(partitions), timeout_ms=timeout_ms)
    except KeyError as error:
        # kafka-python 3.0.12 leaves a partition without a leader out of the answers of the others, and then fails on
        # its own lookup (Fetcher.beginning_or_end_offset). Where none of them has a leader, it waits for one.
        named = [f"partition {tp.partition} of {tp.topic}" for tp in partitions if tp in error.args]
        message = f"{named[0] if named else 'a partition'} has no leader at the moment"
        raise KafkaError(message) from error
