"""RocketMQ's groups: what each round shows of members and owners, judged by what each client can have seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Final
from zlib import crc32

import msgspec

from streaming.groups.classic.kind import CLASSIC
from streaming.groups.classic.membership import close_members
from streaming.groups.context import Context
from streaming.groups.health.columns import FindingAtRound, Membership
from streaming.groups.rocketmq.decisions import PROTOCOL_TYPE, follow
from streaming.groups.rocketmq.findings import rocketmq_findings
from streaming.groups.rocketmq.lag import (
    RocketMQRound,
    as_any_group,
    gone,
    lag_rules,
    named_brokers,
    take_commits,
    unnamed_since,
)
from streaming.groups.rocketmq.state import AGAIN, ListRow, RocketMQState, Unjudged
from streaming.groups.rocketmq.verdicts import give_up, write_verdicts
from streaming.groups.rocketmq.views import NO_MEMBERS, Views, is_retry
from streaming.groups.rows import ROCKETMQ, BrokerClient, BrokerMembersRow
from streaming.groups.state import GroupState
from streaming.groups.verdicts import NOT_APPLICABLE, PENDING, StandingVerdict
from streaming.records import NONE, OK, BrokerSeen, GroupObservation, RocketMQObservation
from streaming.times import day_of

MOST_CLIENTS: Final = 2_000
"""Connections that one row names; `connections` counts all."""


def write_broker_members(mine: RocketMQState, views: Views, observation: GroupObservation, context: Context) -> None:
    """Write the rows of a round, and the closing rows of brokers that are not asked any more."""
    elapsed, heartbeat_ms = observation.elapsed_time, context.config.heartbeat_ms
    lacking: dict[str, list[str]] = {}
    for client, brokers in views.missing.items():
        for broker in brokers:
            lacking.setdefault(broker, []).append(client)
    asked = set()
    for seen in views.observation.brokers:
        asked.add(seen.address)
        known = mine.lists.get(seen.address)
        if known is None and seen.answer == NONE and not lacking.get(seen.name):
            continue  # it has never had a client of the group
        row = _list_row(seen, tuple(lacking.get(seen.name, ())) if seen.broker_id == 0 else (), observation, context)
        says = crc32(msgspec.msgpack.encode(msgspec.structs.replace(row, round=0, round_time=0, event_date=0)))
        is_due = known is None or elapsed - known.row_at >= heartbeat_ms or observation.idle
        if known is None or known.says != says or is_due:
            context.rows.broker_members.append(row)
            mine.lists[seen.address] = ListRow(seen.name, seen.broker_id, says, elapsed)
    for address in sorted(mine.lists.keys() - asked):
        _end_list(mine, address, observation, context)


def end_broker_members(mine: RocketMQState, observation: GroupObservation, context: Context) -> None:
    """Write the closing rows of a group that is gone."""
    for address in sorted(mine.lists):
        _end_list(mine, address, observation, context)


def _end_list(mine: RocketMQState, address: str, observation: GroupObservation, context: Context) -> None:
    known = mine.lists.pop(address)
    seen = BrokerSeen(known.broker, known.broker_id, address, NONE)
    row = _list_row(seen, (), observation, context)
    context.rows.broker_members.append(msgspec.structs.replace(row, ended=True))


def _list_row(
    seen: BrokerSeen, missing: tuple[str, ...], observation: GroupObservation, context: Context
) -> BrokerMembersRow:
    is_told = seen.answer in {OK, NONE}
    twice = sorted({one for one, other in pairwise(seen.clients) if one == other})
    return BrokerMembersRow(
        cluster=context.config.cluster,
        group_id=context.group,
        broker=seen.name,
        broker_id=seen.broker_id,
        address=seen.address,
        source=ROCKETMQ,
        round=observation.round,
        round_time=observation.time,
        event_date=day_of(observation.time),
        ended=False,
        answer=seen.answer,
        reason=seen.reason,
        connections=len(seen.clients) if is_told else None,
        clients=_clients(seen) if is_told else None,
        missing=missing[:MOST_CLIENTS] if is_told else None,
        duplicated=tuple(twice) if is_told else None,
        consume_type=seen.consume_type,
        message_model=seen.message_model,
        consume_from=seen.consume_from,
        subscription=None
        if seen.subscriptions is None
        else tuple(one.topic for one in seen.subscriptions if not is_retry(one.topic)),
        broker_version=seen.version,
        consume_enabled=seen.consume_enabled,
    )


def _clients(seen: BrokerSeen) -> tuple[BrokerClient, ...]:
    """The list with what the broker says of each connection, where it tells the same ones."""
    channels: dict[str, list[BrokerClient]] = {}
    for one in seen.channels or ():
        told = BrokerClient(one.client_id, one.address, one.language, one.version)
        channels.setdefault(one.client_id, []).append(told)
    found = []
    for client in seen.clients[:MOST_CLIENTS]:
        of = channels.get(client)
        found.append(of.pop(0) if of else BrokerClient(client, None, None, None))
    return tuple(found)


_WAITS = "a change reaches all members within a minute: it is judged then"


def _read(state: GroupState, seen: RocketMQObservation, context: Context) -> RocketMQRound:
    if seen.gone is not None:
        return as_any_group(Views(seen, context.config.allocation(context.group)), 0)
    mine = state.rocketmq = state.rocketmq or RocketMQState()
    current = state.classic.current
    assumed = {member.member_id: member for member in current.record.members} if current is not None else {}
    views = Views(seen, context.config.allocation(context.group), assumed, _listed(mine, seen))
    return as_any_group(views, len(views.clients))


def _note_round(state: GroupState, observation: RocketMQRound, context: Context) -> None:
    mine, views = _mine(state), observation.views
    follow(state, mine, views, observation, context)
    mine.seen_at = state.clock.now
    _see_views(mine, views)
    take_commits(state, mine, observation, context)


def _write_verdicts(state: GroupState, observation: RocketMQRound, context: Context) -> None:
    write_verdicts(state, _mine(state), observation.views, observation, context)
    write_broker_members(_mine(state), observation.views, observation, context)


def _judge_again(state: GroupState, observation: GroupObservation, context: Context) -> None:  # noqa: ARG001
    mine = _mine(state)
    if mine.unjudged is None and mine.standing is not None:
        mine.unjudged = Unjudged(None, None, AGAIN)


def _end(state: GroupState, observation: RocketMQRound, context: Context) -> None:
    mine = _mine(state)
    give_up(state, mine, observation, context)
    end_broker_members(mine, observation, context)
    close_members(state, observation.round, observation.time, context)


def _mine(state: GroupState) -> RocketMQState:
    return state.rocketmq or RocketMQState()


def _listed(mine: RocketMQState, seen: RocketMQObservation) -> dict[str, tuple[str, ...]]:
    """Lists of clients at the newest decision, of brokers that are not gone; notes whom this round does not name."""
    lists = mine.facts.lists if mine.facts is not None else {}
    mine.unnamed = unnamed_since(mine.unnamed, lists.keys() - named_brokers(seen), seen.elapsed_time)
    left = gone(mine.unnamed, seen.elapsed_time)
    return {name: clients for name, clients in lists.items() if name not in left}


def _see_views(mine: RocketMQState, views: Views) -> None:
    """Note since when nothing has changed that clients decide by, nor what they hold."""
    elapsed = views.observation.elapsed_time
    by = (
        {topic: sorted(of.items()) for topic, of in sorted(views.queues_by_server.items())},
        sorted(views.lists.items()),
    )
    calm = crc32(msgspec.msgpack.encode(by))
    if calm != mine.calm or not 0 <= mine.calm_since <= elapsed:
        mine.calm, mine.calm_since = calm, elapsed
    stands_for = crc32(
        msgspec.msgpack.encode(
            (
                calm,
                [(client, runs.name) for client, runs in sorted(views.runs.items())],
                [(client, sorted(views.subscribed_by(client) or ())) for client in views.clients],
                [(client, sorted((views.held[client] or {}).items())) for client in views.clients],
            )
        )
    )
    if stands_for != mine.views or not 0 <= mine.views_since <= elapsed:
        mine.views, mine.views_since = stands_for, elapsed


def _findings(state: GroupState, observation: RocketMQRound, context: Context) -> list[FindingAtRound]:  # noqa: ARG001
    return rocketmq_findings(_mine(state), observation.views, state.clock.now)


def _membership(state: GroupState, observation: GroupObservation) -> Membership:  # noqa: ARG001
    mine, current = _mine(state), state.classic.current
    record = current.record if current is not None else None
    verdict = mine.standing if mine.unjudged is None else None
    if current is None and mine.settling is None:
        verdict = StandingVerdict(NOT_APPLICABLE, NO_MEMBERS, 0)  # only its offsets were ever seen
    members = record.members if record is not None else ()
    return Membership(
        state="Stable" if members else "Empty",
        verdict=verdict or StandingVerdict(PENDING, _WAITS, 0),
        protocol_type=PROTOCOL_TYPE,
        strategy=record.protocol if record is not None else None,
        incarnation=mine.incarnation if mine.incarnation >= 0 else None,
        generation=None,
        decided=record.record_time if record is not None else None,
        members=len(members),
        assigned=len(
            {(unit, number) for member in members for unit, numbers in member.assigned or () for number in numbers}
        ),
        balance=state.classic.balance,
    )


ROCKETMQ_KIND: Final = replace(
    CLASSIC,
    records={},
    lives=lambda state: state.rocketmq is not None,
    read=_read,
    note_round=_note_round,
    write_verdicts=_write_verdicts,
    judge_again=_judge_again,
    membership=_membership,
    findings=_findings,
    end=_end,
    lag_rules=lag_rules,
    follows_topics=False,
)
"""RocketMQ's groups: each round shows who holds what, kept in the form of a classic record."""
