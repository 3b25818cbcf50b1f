"""Every strategy of Kafka's clients: for each library the eras in which its result was computed differently.

A new strategy needs its own file and an entry here.
"""

from __future__ import annotations

from assignors.assignment import Assignment
from assignors.clients import other_clients, roundrobin
from assignors.clients import range as ranges
from assignors.clients.sticky import java, kafka_python, librdkafka, own_algorithms
from assignors.context import is_limited, spend
from assignors.exceptions import UnknownStrategy
from assignors.model import Group, PartitionRacks
from assignors.strategy import JAVA, KAFKA_PYTHON, Era, Library, Release, Strategy, parse_library, refusing


def _of_java(releases: tuple[Release, ...], *, cooperative: bool) -> tuple[Era, ...]:
    return tuple(
        Era(JAVA, java.leader(since, cooperative=cooperative), since=since, before=before)
        for since, before in zip(releases, (*releases[1:], None), strict=True)
    )


RANGE = Strategy(
    name="range",
    eras=(
        Era(JAVA, ranges.java_before_static, since=(0, 9), before=(2, 4)),
        Era(JAVA, ranges.java_before_racks, since=(2, 4), before=(3, 5)),
        Era(JAVA, ranges.java, since=(3, 5)),
        Era("librdkafka", ranges.librdkafka_before_static, since=(0, 9), before=(1, 3)),
        Era("librdkafka", ranges.librdkafka_before_racks, since=(1, 3), before=(2, 2)),
        Era("librdkafka", ranges.librdkafka, since=(2, 2)),
        Era(KAFKA_PYTHON, ranges.kafka_python_before_static, since=(1, 0), before=(2, 3)),
        Era(KAFKA_PYTHON, ranges.kafka_python, since=(2, 3)),
        Era("aiokafka", ranges.kafka_python_before_static, since=(0, 1)),
        Era("franz-go", ranges.franz_go, since=(1, 0)),
        Era("sarama", other_clients.sarama_range_by_hash, since=(1, 19), before=(1, 34, 1)),
        Era("sarama-cluster", other_clients.sarama_cluster_range, since=(2, 0)),
        Era("kafka-go", other_clients.kafka_go_range, since=(0, 1)),
        Era("kafka-php", other_clients.kafka_php, since=(0, 2)),
        Era("sarama", ranges.sarama, since=(1, 34, 1)),
        Era("kafka-node", ranges.java_before_static, since=(1, 0)),
        Era("krafka", ranges.krafka, since=(0, 27)),
    ),
    otherwise="this library's range is not recomputed",
    gives_unsubscribed=("kafka-php", "kafka_client"),
)
ROUNDROBIN = Strategy(
    name="roundrobin",
    eras=(
        Era(JAVA, roundrobin.java_before_static, since=(0, 9), before=(2, 4)),
        Era(JAVA, roundrobin.java, since=(2, 4)),
        Era("librdkafka", roundrobin.librdkafka_before_static, since=(0, 9), before=(1, 3)),
        Era("librdkafka", roundrobin.librdkafka_before_bounds, since=(1, 3), before=(1, 5)),
        Era("librdkafka", roundrobin.librdkafka_asserting, since=(1, 5), before=(1, 5, 2)),
        Era("librdkafka", roundrobin.librdkafka_wrapping, since=(1, 5, 2), before=(1, 5, 3)),
        Era("librdkafka", roundrobin.librdkafka, since=(1, 5, 3)),
        Era(KAFKA_PYTHON, roundrobin.kafka_python_before_static, since=(1, 0), before=(2, 3)),
        Era(KAFKA_PYTHON, roundrobin.kafka_python, since=(2, 3)),
        Era("aiokafka", roundrobin.kafka_python_before_static, since=(0, 1)),
        Era("franz-go", roundrobin.franz_go, since=(1, 0)),
        Era("sarama", other_clients.sarama_roundrobin_by_hash, since=(1, 19), before=(1, 28)),
        Era("sarama-cluster", other_clients.kafka_go_roundrobin, since=(2, 0)),
        Era("kafka-go", other_clients.kafka_go_roundrobin, since=(0, 1)),
        Era("@platformatic/kafka", other_clients.platformatic, since=(1, 17, 1)),
        Era("sarama", roundrobin.sarama, since=(1, 28)),
        Era("kafka-node", roundrobin.kafka_node, since=(1, 0)),
        Era("krafka", roundrobin.krafka, since=(0, 27)),
    ),
    otherwise="this library's roundrobin is not recomputed",
    gives_unsubscribed=("@platformatic/kafka", "kafka_client", "samsa"),
)
STICKY = Strategy(
    name="sticky",
    eras=(
        Era(
            JAVA,
            refusing("Java's sticky before 2.4 is another class, which is not recomputed"),
            since=(0, 11),
            before=(2, 4),
        ),
        *_of_java(java.OF_STICKY, cooperative=False),
        Era(
            KAFKA_PYTHON,
            refusing("kafka-python's sticky before 3.0 is not recomputed"),
            since=(2, 0),
            before=(3,),
        ),
        Era(KAFKA_PYTHON, kafka_python.sticky_before_3_0_12, since=(3,), before=(3, 0, 12)),
        Era(KAFKA_PYTHON, kafka_python.sticky, since=(3, 0, 12)),
        Era("aiokafka", kafka_python.aiokafka, since=(0, 9)),
        Era("franz-go", own_algorithms.franz_go(cooperative=False, aware=False), since=(1, 15, 2), before=(1, 21)),
        Era("franz-go", own_algorithms.franz_go(cooperative=False, aware=True), since=(1, 21)),
    ),
    otherwise="this library's sticky is not recomputed",
    gives_unsubscribed=("kafka_client",),
)
COOPERATIVE_STICKY = Strategy(
    name="cooperative-sticky",
    eras=(
        *_of_java(java.OF_COOPERATIVE, cooperative=True),
        Era(
            "librdkafka",
            refusing("librdkafka before 2.2 has another cooperative-sticky, which is not recomputed"),
            since=(1, 6),
            before=(2, 2),
        ),
        Era("librdkafka", librdkafka.before_2_6_1, since=(2, 2), before=(2, 6, 1)),
        Era("librdkafka", librdkafka.from_2_6_1, since=(2, 6, 1)),
        Era(KAFKA_PYTHON, kafka_python.cooperative_before_3_0_12, since=(3,), before=(3, 0, 12)),
        Era(KAFKA_PYTHON, kafka_python.cooperative, since=(3, 0, 12)),
        Era("franz-go", own_algorithms.franz_go(cooperative=True, aware=False), since=(1, 15, 2), before=(1, 21)),
        Era("franz-go", own_algorithms.franz_go(cooperative=True, aware=True), since=(1, 21)),
        Era("krafka", own_algorithms.krafka_cooperative, since=(0, 27)),
    ),
    otherwise="this library's cooperative-sticky is not recomputed",
    # librdkafka leaves partitions that nobody else may have with their owner.
    gives_unsubscribed=("kafka_client", "librdkafka"),
)
ROUND_ROBIN_ASSIGNER = Strategy(
    name="RoundRobinAssigner",
    eras=(
        Era("kafkajs", other_clients.kafkajs_each_topic, since=(1, 0), before=(1, 13)),
        Era("kafkajs", other_clients.kafkajs, since=(1, 13)),
    ),
    otherwise="only kafkajs has this strategy",
    gives_unsubscribed=("kafkajs",),
)

_OF_KAFKA = (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY)
_STRATEGIES = {strategy.name: strategy for strategy in (*_OF_KAFKA, ROUND_ROBIN_ASSIGNER)}


def known_strategies() -> tuple[str, ...]:
    """Names of the strategies of Kafka's own clients: those that another client could run in a group's place."""
    return tuple(strategy.name for strategy in _OF_KAFKA)


def find_strategy(name: str) -> Strategy | None:
    """The strategy with this protocol name, whichever client has it; None if none is registered."""
    return _STRATEGIES.get(name)


def strategy_named(name: str) -> Strategy:
    """The strategy with this protocol name.

    Raises:
        UnknownStrategy: None is registered under this name.
    """
    strategy = find_strategy(name)
    if strategy is None:
        message = f"Strategy {name!r} is not known: use one of {', '.join(_STRATEGIES)}."
        raise UnknownStrategy(message)
    return strategy


def assign(
    strategy: str | Strategy,
    group: Group,
    library: Library | str | None = None,
    partition_racks: PartitionRacks | None = None,
) -> Assignment:
    """Recompute the assignment of a group's leader.

    Args:
        strategy: Protocol name, for example "range", or a strategy itself, registered or not.
        group: Members and partition counts at the decision.
        library: The leader's library, as a value or as text ("java:3.7.1", "3.7.1"); None means the newest Java.
        partition_racks: Racks of the replicas of each partition by topic; None when unknown.

    Returns:
        Partitions by topic by member id; every member is included. Topics are sorted, unless the strategy's docstring
        says otherwise; compare with `same`.

    Raises:
        UnknownStrategy: The strategy is not registered.
        UnknownLibrary: The text cannot be parsed as a library.
        CannotTell: The result cannot be recomputed exactly; `reason` says why. `TooMuchWork` if the work would exceed a
            limit (`assignors.context`).
        LeaderWouldFail: This library throws on this input, so it did not lead.
    """
    if is_limited():
        spend(_least_work(group))
    of_library = parse_library(library) if isinstance(library, str) else library or Library(JAVA)
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    return chosen.era(of_library).recompute(group, partition_racks)


def _least_work(group: Group) -> int:
    """Units of work that any strategy needs: it walks the members, compares their topics, and deals the partitions."""
    listed = sum(len(member.topics) for member in group.members)
    return len(group.members) + listed // 8 + sum(group.partitions_per_topic.values()) // 4
