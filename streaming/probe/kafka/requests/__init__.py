"""The requests of a round, batched per broker: for topics, for groups, for partitions.

How many a round sends, with B brokers, L of them leading partitions of the offsets log, g watched groups on a
broker and p partitions of their topics on a broker:

    Metadata       2
    ListOffsets    2 L + 3 Σ ceil(p / PARTITIONS_PER_REQUEST)
    ListGroups     B
    DescribeGroups Σ ceil(g / GROUPS_PER_REQUEST)          of the classic groups that may have members
    ConsumerGroupDescribe  the same                        of the groups of the consumer protocol
    ShareGroupDescribe     the same                        of share groups
    StreamsGroupDescribe   the same                        of streams groups
    OffsetFetch    Σ ceil(g / GROUPS_PER_REQUEST)          one per group before Kafka 3.0 (KIP-709)
                                                           all only of groups that the log does not tell: in the
                                                           first round, and as `followed.py` says; without the log each
    DescribeShareGroupOffsets  Σ ceil(g / GROUPS_PER_REQUEST)  of the share groups that `__share_group_state` does not
                                                           tell, or whose topics have no names yet
    Metadata, ListOffsets  1, Ls                           where there are share groups: of that topic, with Ls brokers
                                                           that lead its partitions
    DescribeConfigs  ceil(t / CONFIGS_PER_REQUEST)         t topics, each once per heartbeat, at most TOPICS_A_ROUND
    DescribeConfigs  B                                     once per heartbeat
    DescribeConfigs  ceil(s / CONFIGS_PER_REQUEST)         of s share groups once per heartbeat; without the log of s
                                                           streams groups in each round
    ListOffsets    Σ ceil(q / TIMESTAMPS_PER_REQUEST)  after the round, while records that were there before the first
                                                       one are looked for by timestamp; at most MOST_QUESTIONS q in all,
                                                       and QUESTIONS_PER_PARTITION such rows of requests
    DescribeProducers, ListTransactions                    at most L and B, while it is not known who holds back the log

and for the T topics of the cluster whose turn it is (at most `turns.TOPICS_A_ROUND`), with P partitions on a broker:

    Metadata       1, and 1 more for all topics, once per heartbeat
    ListOffsets    2 Σ ceil(P / PARTITIONS_PER_REQUEST)    of those that no watched group reads
    DescribeLogDirs  Σ ceil(P / PARTITIONS_PER_REQUEST)
    DescribeGroups 1                                       once per heartbeat: whether rights hide groups

Partitions whose leader moved meanwhile are asked for once more (a Metadata, their ListOffsets), and so are groups that
are no longer listed (at most a DescribeGroups per GROUPS_PER_REQUEST and a ListGroups per broker).
"""

from __future__ import annotations

from streaming.probe.kafka.requests.groups import GROUPS_PER_REQUEST, CommittedOffsets, GroupRequests, ShareOffset
from streaming.probe.kafka.requests.partitions import FirstFrom, OffsetKind, PartitionRequests
from streaming.probe.kafka.requests.topics import (
    UNTOLD,
    Metadata,
    MetadataRequests,
    Refused,
    ShareSettings,
    TopicMetadata,
)


class Requests(MetadataRequests, GroupRequests, PartitionRequests):
    """All of them, over the connections of one admin client."""


__all__ = [
    "GROUPS_PER_REQUEST",
    "UNTOLD",
    "CommittedOffsets",
    "FirstFrom",
    "Metadata",
    "OffsetKind",
    "Refused",
    "Requests",
    "ShareOffset",
    "ShareSettings",
    "TopicMetadata",
]
