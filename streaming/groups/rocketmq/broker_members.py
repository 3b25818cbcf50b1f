"""Rows of `broker_members`: each broker's list of a group's clients, whenever it changes and once per heartbeat."""

from __future__ import annotations

from itertools import pairwise
from typing import Final
from zlib import crc32

import msgspec

from streaming.groups.context import Context
from streaming.groups.rocketmq.state import ListRow, RocketMQState
from streaming.groups.rocketmq.views import Views, is_retry
from streaming.groups.rows import ROCKETMQ, BrokerClient, BrokerMembersRow
from streaming.records import NONE, OK, BrokerSeen, GroupObservation
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
        row = _row(seen, tuple(lacking.get(seen.name, ())) if seen.broker_id == 0 else (), observation, context)
        says = crc32(msgspec.msgpack.encode(msgspec.structs.replace(row, round=0, round_time=0, event_date=0)))
        is_due = known is None or elapsed - known.row_at >= heartbeat_ms or observation.idle
        if known is None or known.says != says or is_due:
            context.rows.broker_members.append(row)
            mine.lists[seen.address] = ListRow(seen.name, seen.broker_id, says, elapsed)
    for address in sorted(mine.lists.keys() - asked):
        _end(mine, address, observation, context)


def end_broker_members(mine: RocketMQState, observation: GroupObservation, context: Context) -> None:
    """Write the closing rows of a group that is gone."""
    for address in sorted(mine.lists):
        _end(mine, address, observation, context)


def _end(mine: RocketMQState, address: str, observation: GroupObservation, context: Context) -> None:
    known = mine.lists.pop(address)
    seen = BrokerSeen(known.broker, known.broker_id, address, NONE)
    row = _row(seen, (), observation, context)
    context.rows.broker_members.append(msgspec.structs.replace(row, ended=True))


def _row(
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
