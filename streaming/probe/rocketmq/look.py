"""What a round saw of a RocketMQ cluster, by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.records import BrokerSeen, MemberSeen, TopicSeen


@dataclass(frozen=True, slots=True)
class GroupParts:
    """What a round saw of one group.

    Attributes:
        brokers: As in its event, as are members, topics and cut.
        is_there: A broker has a client, an offset or a setting of it.
    """

    brokers: tuple[BrokerSeen, ...]
    members: tuple[MemberSeen, ...] = ()
    topics: tuple[TopicSeen, ...] = ()
    cut: tuple[str, ...] = ()
    is_there: bool = True


@dataclass(frozen=True, slots=True)
class RocketMQLook:
    """What a round saw.

    Attributes:
        groups: Watched groups, and those that the caller knows; those whose turn it was not are missing.
        waiting: Groups that are known to be there and were not looked at, because it was not their turn.
        brokers: Names of the brokers that name servers know.
        whole: Every name server and every broker has answered: what nobody told is not there.
    """

    groups: Mapping[str, GroupParts]
    waiting: frozenset[str]
    brokers: frozenset[str]
    whole: bool
