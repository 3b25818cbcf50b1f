"""RocketMQ's groups: what each round shows of members and owners, judged by what each client can have seen.

There is no record that says who owns what. A decision is the observation that first showed what members hold now. At
every change some clients have rebalanced and others not yet, for a second or for as long as their views are old, so a
change counts once two rounds in a row have shown the same. Where it never comes to rest it counts after three cycles of
20 s, as it is then. A change that goes back before that was none.

Its causes are what differs between two `DecisionInputs`. Nobody says which of several changes moved a queue, so all of
them are listed, with what shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import msgspec

from assignors import Assignment, AssignorError, moves, optimal_moves
from streaming.groups.causes import TopicChange, cause, causes_in_order, of_members, of_topics
from streaming.groups.classic.kind import CLASSIC
from streaming.groups.classic.membership import close_members, columns_of, write_members
from streaming.groups.classic.state import ClassicDecision, Owned
from streaming.groups.context import Context, of_record
from streaming.groups.health.activity import count_rebalance
from streaming.groups.kind import FindingAtRound, Membership, Ownership
from streaming.groups.rocketmq.findings import rocketmq_findings
from streaming.groups.rocketmq.round import (
    RocketMQRound,
    balance_of,
    group_of,
    held_queues,
    lag_rules,
    members_of,
    read,
    record_of,
    take_commits,
    topics_of,
)
from streaming.groups.rocketmq.state import DecisionInputs, RocketMQState, Routes, Settling
from streaming.groups.rocketmq.verdicts import give_up, write_verdicts
from streaming.groups.rocketmq.views import NO_MEMBERS, Views, grouped
from streaming.groups.rows import Cause, ChurnRow
from streaming.groups.state import GroupState
from streaming.groups.verdicts import NOT_APPLICABLE, PENDING, StandingVerdict
from streaming.records import GroupObservation, Member, MembershipRecord, each_of, holders

CYCLE_MS: Final = 20_000
"""`rocketmq.client.rebalance.waitInterval`: each client rebalances at least this often (4.0 to 5.5)."""

LONGEST_CHANGE_MS: Final = 3 * CYCLE_MS
"""A change that has not come to rest by now counts as it is: each client has rebalanced twice since it began."""

PROTOCOL_TYPE: Final = "rocketmq"

_GONE: Final = "on no broker's list any more: it left, or its connection ended"


_Told = TypeVar("_Told")


def follow(state: GroupState, mine: RocketMQState, seen: RocketMQRound, context: Context) -> None:
    """Take in a round's members and owners, and write a decision's rows once they have come to rest.

    Args:
        state: The group's state; its clock has the round's time.
        mine: The part of it that is RocketMQ's.
        seen: The round.
        context: Rows are written here.
    """
    views, settling, current = seen.views, mine.settling, state.classic.current
    members = members_of(views)
    is_new = bool(members) if current is None else _differs(current.record.members, members, mine, views)
    if not is_new:
        mine.settling = None
        return
    is_settled = settling is not None and _key(settling.members) == _key(members)
    if settling is None or not is_settled:
        now = seen.elapsed_time
        settling = mine.settling = Settling(
            members=members,
            round=seen.round,
            time=state.clock.now,
            began=now if settling is None else settling.began,
            after=mine.seen_at,
            until=max(seen.closed, state.clock.now),
        )
        is_settled = now - settling.began >= LONGEST_CHANGE_MS
    if is_settled:
        mine.settling = None
        give_up(state, mine, seen, context)
        _decide(state, mine, settling, views, context)


def _key(members: Sequence[Member]) -> tuple[object, ...]:
    """What makes a decision another one: who is there, what each holds, what each subscribes to."""
    return tuple((member.member_id, member.assigned, topics_of(member)) for member in members)


def _differs(before: Sequence[Member], after: Sequence[Member], mine: RocketMQState, views: Views) -> bool:
    known = mine.facts or DecisionInputs()
    # A client id that two processes use tells of one or the other, whichever is asked.
    started_again = changed(known.started, views.facts.started) - views.duplicates.keys()
    return _key(before) != _key(after) or bool(started_again or changed(known.strategies, views.strategies))


def _decide(state: GroupState, mine: RocketMQState, settled: Settling, views: Views, context: Context) -> None:
    members, current = settled.members, state.classic.current
    record = record_of(members, settled.round, settled.time, views.strategy)
    facts, have, had, was = _facts(mine, views), held_queues(members), None, None
    if current is None:
        kind, incarnation = "created", context.config.incarnations.of(context.group, record.record)
    else:
        kind, incarnation = "rebalance" if members else "became_empty", current.incarnation
        was = current.record
        had = held_queues(was.members)
        count_rebalance(state, record.record_time)
    before = {member.member_id for member in was.members} if was is not None else set()
    now = {member.member_id for member in members}
    moved, least = _moves(had, have, members, facts)
    context.rows.rebalance_churn.append(
        ChurnRow(
            **columns_of(record, incarnation, context),
            revision=1,
            kind=kind,
            protocol_type=PROTOCOL_TYPE,
            strategy=record.protocol,
            members=len(members),
            partitions=len(holders({member.member_id: member.assigned for member in members})) if have else 0,
            joined=None if was is None else tuple(sorted(now - before)),
            left=tuple(sorted(before - now)),
            partitions_moved=moved,
            partitions_moved_optimal=least,
            causes=() if was is None else rocketmq_causes(mine.facts or facts, facts, was, record),
            # Where the clock was ahead at the look before, nobody knows when that was by the present clock.
            decided_time_min=settled.after if 0 <= settled.after <= settled.until else None,
            decided_time_max=settled.until,
        )
    )
    write_members(state, record, incarnation, context)
    classic = state.classic
    classic.current, classic.verdict = ClassicDecision(record, kind, incarnation), None
    classic.waiting = [msgspec.structs.replace(classic.current, before=had)]
    classic.balance = balance_of(members, facts.routes)
    if not members:
        state.uncommitted = None
    mine.facts = facts


def _facts(mine: RocketMQState, views: Views) -> DecisionInputs:
    """The facts at a decision; of members that do not answer, those at the decision before."""
    now, before = views.facts, mine.facts or DecisionInputs()
    untold = [client for client in views.clients if client not in views.told]

    def kept(new: Mapping[str, _Told], old: Mapping[str, _Told]) -> dict[str, _Told]:
        return {client: old[client] for client in untold if client in old} | dict(new)

    last = {
        name: clients
        for name, clients in before.lists.items()
        if name not in now.lists and not frozenset(views.unseen).isdisjoint(clients)
    }
    return msgspec.structs.replace(
        now,
        lists=dict(sorted({**last, **now.lists}.items())),
        strategies=kept(now.strategies, before.strategies),
        subscriptions=kept(now.subscriptions, before.subscriptions),
        started=kept(now.started, before.started),
    )


def _moves(
    had: Owned | None, have: Owned | None, members: Sequence[Member], facts: DecisionInputs
) -> tuple[int | None, int | None]:
    """Queues that changed hands, and the fewest moves that could have balanced the group; None where unknown."""
    if had is None:
        return None, None
    before: Assignment = {member: dict(units) for member, units in had.items()}
    after: Assignment = {member: dict(units) for member, units in (have or {}).items()}
    try:
        with of_record(0):
            least = optimal_moves(before, group_of(members, facts.routes)) if members else None
        return (None if have is None else moves(before, after)), least
    except AssignorError:
        return None, None


_Value = TypeVar("_Value")


def rocketmq_causes(
    before: DecisionInputs, after: DecisionInputs, was: MembershipRecord, now: MembershipRecord
) -> tuple[Cause, ...]:
    """The causes of a decision.

    Args:
        before: What clients decided by at the decision before.
        after: The same at this one.
        was: The decision before.
        now: This one.
    """
    had = {member.member_id for member in was.members}
    have = {member.member_id for member in now.members}
    found = [
        *of_members("member_joined", sorted(have - had), "on a broker's list of clients now"),
        *of_members("member_gone", sorted(had - have), _GONE),
        *_broker_causes(before.routes, after.routes),
        *_of_queues(before.routes, after.routes),
        *_of_those_who_stay(before, after, sorted(had & have)),
    ]
    if before.poorer != after.poorer:
        evidence = (
            "name servers report different queues" if after.poorer else "name servers report the same queues again"
        )
        found.append(
            cause("name_server_differs", evidence, before=", ".join(before.poorer), after=", ".join(after.poorer))
        )
    return causes_in_order(found or [_unseen(had, have)])


def changed(before: Mapping[str, _Value], after: Mapping[str, _Value]) -> set[str]:
    """Keys that both have, with another value."""
    return {key for key, value in after.items() if before.get(key, value) != value}


def _broker_causes(before: Routes, after: Routes) -> Iterable[Cause]:
    was, now = brokers_of(before), brokers_of(after)
    for broker in sorted(was - now):
        yield cause("broker_down", "in no route of the group's topics any more", before=broker)
    for broker in sorted(now - was):
        yield cause("broker_up", "in a route of the group's topics, and in none at the decision before", after=broker)


def _of_queues(before: Routes, after: Routes) -> Iterable[Cause]:
    """Topics that have other queues on brokers that were there before and are there now."""
    both = brokers_of(before) & brokers_of(after)
    changes = []
    for topic in before.keys() & after.keys():
        old, new = (
            ", ".join(f"{broker} {count}" for broker, count in sorted(routes[topic].items()) if broker in both)
            for routes in (before, after)
        )
        if old != new:
            changes.append(TopicChange(topic, old or "0", new or "0"))
    return of_topics("partitions_changed", changes, "name servers tell other readable queues of it")


def brokers_of(routes: Routes) -> set[str]:
    """Brokers that any of the routes has."""
    return {broker for brokers in routes.values() for broker in brokers}


def _of_those_who_stay(before: DecisionInputs, after: DecisionInputs, staying: list[str]) -> Iterable[Cause]:
    # One that had not told its start time need not have started again.
    started = changed(before.started, after.started)
    again = [client for client in staying if client in started]
    yield from of_members("rejoined", again, "has another start time under the same client id")
    told = [client for client in staying if client in before.subscriptions and client in after.subscriptions]
    resubscribed = [client for client in told if set(before.subscriptions[client]) != set(after.subscriptions[client])]
    yield from of_members("subscription_changed", resubscribed, "subscribe to other topics than before")
    others = changed(before.strategies, after.strategies)
    pairs = [(before.strategies[client], after.strategies[client], client) for client in staying if client in others]
    for (old, new), members in sorted(grouped(((old, new), client) for old, new, client in pairs).items()):
        [found] = of_members("strategy_changed", members, "runs another strategy than before")
        yield msgspec.structs.replace(found, before=old, after=new)
    # Members tell the brokers of their topics that they are there: one that gets a topic, or loses it, has another
    # list for that reason.
    routed = brokers_of(before.routes) & brokers_of(after.routes)
    both = before.lists.keys() & after.lists.keys() & routed
    entries = [(Counter(before.lists[broker]), Counter(after.lists[broker])) for broker in both]
    moved = [client for client in staying if any(old[client] != new[client] for old, new in entries)]
    yield from of_members(
        "member_lists_changed", moved, "on other brokers' lists than before, so that clients see other groups"
    )


def _unseen(had: set[str], have: set[str]) -> Cause:
    """No round has shown a change: clients that decided later than the others, or a change that came and went."""
    if had == have:
        evidence = "no view differs from the decision before: clients rebalance by themselves, every 20 s"
        return cause("settled", evidence)
    return cause("unknown", "nothing that rounds have shown")


_WAITS = "a change reaches all members within a minute: it is judged then"


def _note_round(state: GroupState, seen: RocketMQRound, context: Context) -> None:
    mine = _mine(state)
    follow(state, mine, seen, context)
    mine.seen_at = state.clock.now
    take_commits(state, seen, context)


def _write_verdicts(state: GroupState, seen: RocketMQRound, context: Context) -> None:
    write_verdicts(state, _mine(state), seen, context)


def _end(state: GroupState, seen: RocketMQRound, context: Context) -> None:
    give_up(state, _mine(state), seen, context)
    close_members(state, seen.round, seen.time, context)


def _mine(state: GroupState) -> RocketMQState:
    return state.rocketmq or RocketMQState()


def _findings(
    state: GroupState,
    seen: RocketMQRound,
    context: Context,  # noqa: ARG001
    owners: Ownership,  # noqa: ARG001
) -> list[FindingAtRound]:
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
    held = {queue for member in members for queue in each_of(member.assigned)}
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
