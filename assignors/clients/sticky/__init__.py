"""The strategies `sticky` and `cooperative-sticky`: members keep their partitions as far as balance allows."""

from __future__ import annotations

from assignors.clients.sticky.claims import (
    claimed_partitions,
    read_kafka_python,
    read_sticky,
    write_kafka_python,
    write_sticky,
)
from assignors.clients.sticky.java import lists_of_java

__all__ = [
    "claimed_partitions",
    "lists_of_java",
    "read_kafka_python",
    "read_sticky",
    "write_kafka_python",
    "write_sticky",
]
