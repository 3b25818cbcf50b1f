"""RocketMQ's groups: what each round shows of members and owners, judged by what each client can have seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from zlib import crc32

import msgspec

from streaming.groups.classic.kind import CLASSIC
from streaming.groups.classic.membership import close_members
from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, Membership
from streaming.groups.rocketmq.decisions import PROTOCOL_TYPE, follow
from streaming.groups.rocketmq.findings import rocketmq_findings
from streaming.groups.rocketmq.round import RocketMQRound, lag_rules, read, take_commits
from streaming.groups.rocketmq.state import ListRow, RocketMQState
from streaming.groups.rocketmq.verdicts import give_up, write_verdicts
from streaming.groups.rocketmq.views import NO_MEMBERS, grouped, is_retry, twice
from streaming.groups.rows import BrokerClient, BrokerMembersRow
from streaming.groups.state import GroupState
from streaming.groups.verdicts import NOT_APPLICABLE, PENDING, StandingVerdict
from streaming.records import NONE, OK, BrokerSeen, GroupObservation

MOST_CLIENTS: Final = 2_000
"""Connections that one row names; `connections` counts all."""


def write_broker_members(mine: RocketMQState, seen: RocketMQRound, context: Context) -> None:
    """Write the rows of a round, and the closing rows of brokers that are not asked any more."""
    lacking = grouped((broker, client) for client, brokers in seen.views.missing.items() for broker in brokers)
    for broker in seen.views.observation.brokers:
        known = mine.lists.get(broker.address)
        missing = lacking.get(broker.name, []) if broker.broker_id == 0 else []
        if known is None and broker.answer == NONE and broker.name not in lacking:
            continue  # it has never had a client of the group
        row = _list_row(broker, tuple(missing), seen, context)
        says = crc32(msgspec.msgpack.encode(msgspec.structs.replace(row, round=0, round_time=0, event_date=0)))
        due_ms = context.config.repeated_after_ms(seen)
        if known is None or known.says != says or seen.elapsed_time - known.row_at >= due_ms:
            context.rows.broker_members.append(row)
            mine.lists[broker.address] = ListRow(broker.name, broker.broker_id, says, seen.elapsed_time)
    asked = {broker.address for broker in seen.views.observation.brokers}
    end_broker_members(mine, mine.lists.keys() - asked, seen, context)


def end_broker_members(mine: RocketMQState, addresses: Iterable[str], seen: RocketMQRound, context: Context) -> None:
    """Write the closing rows of brokers that are not asked any more."""
    for address in sorted(addresses):
        known = mine.lists.pop(address)
        broker = BrokerSeen(known.broker, known.broker_id, address, NONE)
        row = _list_row(broker, (), seen, context)
        context.rows.broker_members.append(msgspec.structs.replace(row, ended=True))


def _list_row(broker: BrokerSeen, missing: tuple[str, ...], seen: RocketMQRound, context: Context) -> BrokerMembersRow:
    is_told = broker.answer in {OK, NONE}
    topics = None if broker.subscriptions is None else [subscription.topic for subscription in broker.subscriptions]
    return BrokerMembersRow(
        **context.of_a_round(seen),
        broker=broker.name,
        broker_id=broker.broker_id,
        address=broker.address,
        ended=False,
        answer=broker.answer,
        reason=broker.reason,
        connections=len(broker.clients) if is_told else None,
        clients=_clients(broker) if is_told else None,
        missing=missing[:MOST_CLIENTS] if is_told else None,
        duplicated=tuple(twice(broker.clients)) if is_told else None,
        consume_type=broker.consume_type,
        message_model=broker.message_model,
        consume_from=broker.consume_from,
        subscription=None if topics is None else tuple(topic for topic in topics if not is_retry(topic)),
        broker_version=broker.version,
        consume_enabled=broker.consume_enabled,
    )


def _clients(broker: BrokerSeen) -> tuple[BrokerClient, ...]:
    """The list with what the broker says of each connection, where it tells the same ones."""
    channels = grouped(
        (channel.client_id, BrokerClient(channel.client_id, channel.address, channel.language, channel.version))
        for channel in reversed(broker.channels or ())
    )
    found = []
    for client in broker.clients[:MOST_CLIENTS]:
        told = channels.get(client)
        found.append(told.pop() if told else BrokerClient(client, None, None, None))
    return tuple(found)


_WAITS = "a change reaches all members within a minute: it is judged then"


def _note_round(state: GroupState, seen: RocketMQRound, context: Context) -> None:
    mine = _mine(state)
    follow(state, mine, seen, context)
    mine.seen_at = state.clock.now
    take_commits(state, seen, context)


def _write_verdicts(state: GroupState, seen: RocketMQRound, context: Context) -> None:
    write_verdicts(state, _mine(state), seen, context)
    write_broker_members(_mine(state), seen, context)


def _end(state: GroupState, seen: RocketMQRound, context: Context) -> None:
    mine = _mine(state)
    give_up(state, mine, seen, context)
    end_broker_members(mine, list(mine.lists), seen, context)
    close_members(state, seen.round, seen.time, context)


def _mine(state: GroupState) -> RocketMQState:
    return state.rocketmq or RocketMQState()


def _findings(state: GroupState, seen: RocketMQRound, context: Context) -> list[FindingAtRound]:  # noqa: ARG001
    return rocketmq_findings(_mine(state), seen)


def _membership(state: GroupState, observation: GroupObservation) -> Membership:  # noqa: ARG001
    current, verdict = state.classic.current, state.classic.verdict
    if verdict is None or state.classic.waiting:
        verdict = StandingVerdict(PENDING, _WAITS, 0)
    if current is None:
        if _mine(state).settling is None:
            verdict = StandingVerdict(NOT_APPLICABLE, NO_MEMBERS, 0)  # only its offsets were ever seen
        return Membership("Empty", verdict, protocol_type=PROTOCOL_TYPE)
    members = current.record.members
    held = {(unit, number) for member in members for unit, numbers in member.assigned or () for number in numbers}
    return Membership(
        state="Stable" if members else "Empty",
        verdict=verdict,
        protocol_type=PROTOCOL_TYPE,
        strategy=current.record.protocol,
        incarnation=current.incarnation,
        generation=None,
        decided=current.record.record_time,
        members=len(members),
        assigned=len(held),
        balance=state.classic.balance,
    )


ROCKETMQ_KIND: Final = replace(
    CLASSIC,
    records={},
    lives=lambda state: state.rocketmq is not None,
    read=read,
    note_round=_note_round,
    write_verdicts=_write_verdicts,
    membership=_membership,
    findings=_findings,
    end=_end,
    lag_rules=lag_rules,
    follows_topics=False,
)
"""RocketMQ's groups: each round shows who holds what, kept in the form of a classic record."""
