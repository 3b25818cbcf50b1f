"""RocketMQ's groups: what each round shows of members and owners, judged by what each client can have seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streaming.groups.classic.kind import CLASSIC
from streaming.groups.classic.membership import close_members
from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, Membership
from streaming.groups.rocketmq.decisions import PROTOCOL_TYPE, follow
from streaming.groups.rocketmq.findings import rocketmq_findings
from streaming.groups.rocketmq.round import RocketMQRound, lag_rules, read, take_commits
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.verdicts import give_up, write_verdicts
from streaming.groups.rocketmq.views import NO_MEMBERS
from streaming.groups.state import GroupState
from streaming.groups.verdicts import NOT_APPLICABLE, PENDING, StandingVerdict
from streaming.records import GroupObservation, each_of

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


def _findings(state: GroupState, seen: RocketMQRound, context: Context) -> list[FindingAtRound]:  # noqa: ARG001
    return rocketmq_findings(_mine(state), seen)


def _membership(state: GroupState, observation: GroupObservation) -> Membership:  # noqa: ARG001
    current, verdict = state.classic.current, state.classic.verdict
    if verdict is None or state.classic.waiting:
        verdict = StandingVerdict(PENDING, _WAITS)
    if current is None:
        if _mine(state).settling is None:
            verdict = StandingVerdict(NOT_APPLICABLE, NO_MEMBERS)  # only its offsets were ever seen
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
