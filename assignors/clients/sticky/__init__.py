"""The strategies `sticky` and `cooperative-sticky`: members keep their partitions as far as balance allows."""

from __future__ import annotations

from assignors.clients.hidden_inputs import with_hidden_inputs
from assignors.clients.sticky import franz_go, java, kafka_python, krafka
from assignors.clients.sticky.java import lists_of_java
from assignors.clients.sticky.librdkafka import LIBRDKAFKA_ERAS
from assignors.clients.sticky.user_data import read_kafka_python, read_sticky, write_kafka_python, write_sticky
from assignors.model import Subscription, TopicPartitions
from assignors.strategy import Strategy

__all__ = [
    "COOPERATIVE_STICKY",
    "STICKY",
    "claimed_partitions",
    "lists_of_java",
    "read_kafka_python",
    "read_sticky",
    "with_hidden_inputs",
    "write_kafka_python",
    "write_sticky",
]


STICKY = Strategy(
    name="sticky",
    eras=(*java.STICKY_ERAS, *kafka_python.STICKY_ERAS, *franz_go.STICKY_ERAS),
    otherwise="this library's sticky is not recomputed",
    gives_unsubscribed=("kafka_client",),
)
COOPERATIVE_STICKY = Strategy(
    name="cooperative-sticky",
    eras=(
        *java.COOPERATIVE_ERAS,
        *LIBRDKAFKA_ERAS,
        *kafka_python.COOPERATIVE_ERAS,
        *franz_go.COOPERATIVE_ERAS,
        *krafka.COOPERATIVE_ERAS,
    ),
    otherwise="this library's cooperative-sticky is not recomputed",
    # (librdkafka leaves partitions that nobody else may have with their owner.)
    gives_unsubscribed=("kafka_client", "librdkafka"),
)


def claimed_partitions(member: Subscription) -> TopicPartitions:
    """Partitions that a member of a sticky group claims to own, in its subscription or in its user data."""
    data = member.user_data
    return (*member.owned, *read_sticky(data)[0].partitions, *read_kafka_python(data).partitions)
