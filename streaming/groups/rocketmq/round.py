"""One round of a RocketMQ group: what it saw to the rows of all tables."""

from __future__ import annotations

from zlib import crc32

import msgspec

from streaming.groups.context import Context
from streaming.groups.health.activity import never_committed, note_commits
from streaming.groups.health.columns import FindingAtRound, Membership
from streaming.groups.health.group_health import end_health, keep_since, write_row
from streaming.groups.health.storm import storm
from streaming.groups.lag import offset_events
from streaming.groups.lag.rows import end_partition
from streaming.groups.lag.totals import Totals
from streaming.groups.rocketmq.broker_members import end_broker_members, write_broker_members
from streaming.groups.rocketmq.decisions import PROTOCOL_TYPE, follow
from streaming.groups.rocketmq.findings import rocketmq_findings
from streaming.groups.rocketmq.gone import gone, named_brokers, unnamed_since
from streaming.groups.rocketmq.lag import as_any_group, as_queue, as_queues, take_commits, write_lag
from streaming.groups.rocketmq.membership import member_rows, record_of
from streaming.groups.rocketmq.places import named
from streaming.groups.rocketmq.state import AGAIN, RocketMQState, Unjudged
from streaming.groups.rocketmq.verdicts import give_up, write_verdicts
from streaming.groups.rocketmq.views import NO_MEMBERS, Views
from streaming.groups.rows import Finding, GroupHealthRow
from streaming.groups.state import GroupState
from streaming.groups.verdicts import NOT_APPLICABLE, PENDING, StandingVerdict
from streaming.records import BROADCASTING, GroupObservation, RocketMQObservation

_WAITS = "a change reaches all members within a minute: it is judged then"


def judge_rocketmq_round(
    state: GroupState, seen: RocketMQObservation, context: Context, passed: int, rounds: int
) -> None:
    """Judge one round.

    Args:
        state: The group's state; its clocks have taken in the round.
        seen: What the round saw.
        context: Rows are written here.
        passed: Elapsed time since the group's previous round, ms.
        rounds: How many rounds this one stands for.
    """
    mine = state.rocketmq = state.rocketmq or RocketMQState()
    current = state.classic.current
    assumed = {member.member_id: member for member in current.record.members} if current is not None else {}
    views = Views(seen, context.config.allocation(context.group), assumed, _listed(mine, seen))
    observation = as_any_group(views, len(views.clients))
    follow(state, mine, views, observation, context)
    _see_views(mine, views)
    write_verdicts(state, mine, views, observation, context)
    write_broker_members(mine, views, observation, context)
    take_commits(state, mine, views)
    note_commits(state, observation)
    totals = write_lag(state, observation, context, passed, rounds, views)
    _write_health(state, mine, views, observation, context, totals)
    mine.seen_at = state.clock.now


def judge_rocketmq_again(state: GroupState) -> None:
    """Let the newest decision, if it is judged, wait once more: the settings say something else of the group now."""
    mine = state.rocketmq
    if mine is not None and mine.unjudged is None and mine.standing is not None:
        mine.unjudged = Unjudged(None, None, AGAIN)


def close_rocketmq_group(state: GroupState, seen: RocketMQObservation, context: Context) -> None:
    """Write the closing rows of a group that is gone, or no longer watched; the clocks have taken in the round."""
    mine = state.rocketmq or RocketMQState()
    observation = as_any_group(Views(seen, context.config.allocation(context.group)), 0)
    give_up(state, mine, observation, context)
    end_broker_members(mine, observation, context)
    current = state.classic.current
    if current is not None:
        nobody = record_of((), observation.round, observation.time, None)
        context.rows.members.extend(member_rows(current.record, nobody, mine.incarnation, context))
    begin = len(context.rows.lag)
    for place, partitions in sorted(state.partitions.items()):
        for number, known in sorted(partitions.items()):
            if known.row is not None or known.commits:
                end_partition(state, known, observation, context, place, number, subscribed=True)
    context.rows.lag[begin:] = [as_queue(row) for row in context.rows.lag[begin:]]
    end_health(state, observation, context)  # (it names no place)


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


def _write_health(
    state: GroupState,
    mine: RocketMQState,
    views: Views,
    observation: GroupObservation,
    context: Context,
    totals: Totals,
) -> None:
    found = rocketmq_findings(mine, views, state.clock.now)
    if views.message_model != BROADCASTING:
        found.extend(never_committed(state, observation))
        found.extend(
            FindingAtRound(one.name, one.since, named(one.detail))
            for one in offset_events.findings_of_offsets(state, state.clock.now, totals.lost)
        )
    if (raging := storm(state.rebalances, state.clock.now)) is not None:
        found.append(raging)
    findings: tuple[Finding, ...] = keep_since(state, found)
    health = len(context.rows.group_health)
    write_row(state, observation, context, totals, _membership(state, mine), findings)
    _name_places(context, health)


def _membership(state: GroupState, mine: RocketMQState) -> Membership:
    current = state.classic.current
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
            {(place, number) for member in members for place, numbers in member.assigned or () for number in numbers}
        ),
        balance=state.classic.balance,
    )


def _name_places(context: Context, begin: int) -> None:
    """Name the places in the rows of `group_health` from this one on: other rooms have written them as topics."""
    context.rows.group_health[begin:] = [_health_row(row) for row in context.rows.group_health[begin:]]


def _health_row(row: GroupHealthRow) -> GroupHealthRow:
    topic = row.time_behind_topic
    return msgspec.structs.replace(
        row,
        time_behind_topic=named(topic) if topic is not None else None,
        loses_data_topic=named(row.loses_data_topic) if row.loses_data_topic is not None else None,
        hot_partitions=as_queues(row.hot_partitions),
    )
