"""A round's members as a membership record.

RocketMQ writes no record of a decision. The core makes one of what a round saw, so that lag, rates and balance find the
owners where they find those of any group; its partitions are numbered by unit (`rows.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from assignors import AssignorError, Group, Subscription, imbalance, imbalance_optimal
from streaming.groups.classic.membership import CONSUMER
from streaming.groups.classic.state import Owned
from streaming.groups.rocketmq.state import Routes
from streaming.groups.rocketmq.views import Views
from streaming.groups.rows import split, unit_of
from streaming.records import Member, MembershipRecord

_HOSTS = 3
"""Hosts of one client in a row: one is usual, two may be a client id that two processes use."""


def members_of(views: Views) -> tuple[Member, ...]:
    """The round's members, by id, with what each holds; what a member held before, where it does not answer."""
    return tuple(_member(views, client) for client in views.clients)


def _member(views: Views, client: str) -> Member:
    topics, held = views.subscribed_by(client), views.held[client]
    units: set[str] = set()
    for topic in topics or ():
        brokers = views.routes.get(topic)
        units.update((unit_of(topic, broker) for broker in brokers) if brokers else (topic,))
    hosts = sorted({address.rpartition(":")[0] for address in views.addresses_of(client)})
    more = f" and {len(hosts) - _HOSTS} more" if len(hosts) > _HOSTS else ""
    return Member(
        member_id=client,
        group_instance_id=None,
        client_id=client,
        client_host=", ".join(hosts[:_HOSTS]) + more,
        rebalance_timeout=-1,
        session_timeout=-1,
        subscription_version=None,
        topics=None if topics is None else tuple(sorted({*units, *(held or ())})),
        owned=(),
        generation=None,
        rack=None,
        user_data=None,
        assigned=None if held is None else tuple(held.items()),
        undecodable=None if held is not None else "it does not tell which queues it holds",
    )


def record_of(members: tuple[Member, ...], number: int, time: int, strategy: str | None) -> MembershipRecord:
    """A membership record of what a round saw.

    Args:
        members: The members.
        number: The round's number.
        time: Its time, ms.
        strategy: The strategy that most members run; None if unknown.
    """
    return MembershipRecord(
        record=number,
        record_time=time,
        protocol_type=CONSUMER,
        generation=-1,
        protocol=strategy if members else None,
        leader=None,
        state_time=-1,
        members=members,
        value_version=-1,
        seen=True,
    )


def topics_of(member: Member) -> frozenset[str]:
    """Topics of a member; empty if unknown."""
    return frozenset(split(unit)[0] for unit in member.topics or ())


def held_queues(members: Sequence[Member]) -> Owned | None:
    """What members hold, by member and unit; None if it is unknown of one."""
    if any(member.assigned is None for member in members):
        return None
    return {member.member_id: dict(member.assigned or ()) for member in members}


def group_of(members: Sequence[Member], routes: Routes) -> Group:
    """The group as the measures need it: a topic of theirs is a unit, its partitions are the queues on that broker.

    Args:
        members: The members.
        routes: Readable queues by topic and broker; others cannot be assigned.
    """
    counts = {unit_of(topic, broker): count for topic, brokers in routes.items() for broker, count in brokers.items()}
    units = {topic: [unit_of(topic, broker) for broker in brokers] for topic, brokers in routes.items()}
    subscriptions = (
        Subscription(member.member_id, tuple(sorted(chain.from_iterable(units.get(t, ()) for t in topics_of(member)))))
        for member in members
    )
    return Group(tuple(subscriptions), counts)


def balance_of(members: Sequence[Member], routes: Routes) -> tuple[float | None, float | None]:
    """Imbalance of what members hold, and the lowest that any assignment of these queues could have."""
    counts = [sum(len(numbers) for _, numbers in member.assigned or ()) for member in members]
    if not any(counts) or any(member.assigned is None for member in members):
        return None, None
    try:
        return imbalance(counts), imbalance_optimal(group_of(members, routes))
    except AssignorError:
        return imbalance(counts), None
