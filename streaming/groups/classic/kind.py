"""Classic groups: a member leads, and one record of a generation says who owns what."""

from __future__ import annotations

from typing import Final

from streaming.groups.classic import churn
from streaming.groups.classic.drift import judge_again, write_classic_verdicts
from streaming.groups.classic.findings import classic_findings
from streaming.groups.classic.membership import (
    close_members,
    counts_of,
    generation_column,
    is_consumer,
    owners_in,
    standing_members,
)
from streaming.groups.context import Context
from streaming.groups.health.columns import Membership
from streaming.groups.kind import Kind, Ownership
from streaming.groups.modern.verdicts import modern_verdict
from streaming.groups.state import GroupState
from streaming.groups.verdicts import NOT_APPLICABLE, PENDING, UNVERIFIED, StandingVerdict
from streaming.records import (
    CONSUMER,
    SHARE,
    STREAMS,
    GroupObservation,
    MembershipRecord,
    MembershipTombstone,
    UnreadableMembership,
)


def _note_unreadable(state: GroupState, item: UnreadableMembership, context: Context) -> None:  # noqa: ARG001
    if state.classic.unreadable < 0:
        state.classic.unreadable = item.record


def _end(state: GroupState, observation: GroupObservation, context: Context) -> None:
    write_classic_verdicts(state, observation, context, last=True)
    close_members(state, observation.log_position, observation.time, context)


def _owners(state: GroupState) -> Ownership:
    record = state.live_record()
    return Ownership() if record is None else owners_in(record)


def _membership(state: GroupState, observation: GroupObservation) -> Membership:
    """The membership of a classic group; without a live record, little more than its verdict."""
    record = state.live_record()
    # The broker may report that a group was upgraded before the log has been read that far.
    is_upgraded = observation.group_type in {CONSUMER, SHARE, STREAMS}
    verdict = modern_verdict(state, observation) if is_upgraded else _verdict(state, observation)
    current = state.classic.current
    if record is None or current is None:
        return Membership("Empty", verdict, protocol_type=observation.protocol_type)
    counts = counts_of(record) if is_consumer(record) else None
    return Membership(
        "Stable" if record.members else "Empty",
        verdict,
        protocol_type=record.protocol_type,
        strategy=record.protocol,
        incarnation=current.incarnation,
        generation=generation_column(record),
        decided=record.record_time,
        members=len(record.members),
        assigned=sum(counts) if counts else 0,
        balance=state.classic.balance if counts and state.members_known else (None, None),
    )


def _verdict(state: GroupState, observation: GroupObservation) -> StandingVerdict:
    """The verdict on the newest decision, or why there is none."""
    if state.classic.unreadable >= 0:
        reason = (
            f"the membership record at offset {state.classic.unreadable} cannot be read (see quarantine): what was "
            "decided since is not known"
        )
        return StandingVerdict(UNVERIFIED, reason, 0)
    if state.live_record() is None:
        if observation.state not in {None, "Empty", "Dead"}:
            reason = "the group has members, but no record of its membership has been read yet"
            if observation.seen is not None:
                reason = "the group has members, but no round has seen them with their assignment yet"
            return StandingVerdict(PENDING, reason, 0)
        if not state.partitions:
            reason = "the log has neither a membership nor a committed offset of the group"
            if observation.seen is not None:
                reason = "the group has neither members nor a committed offset"
            return StandingVerdict(PENDING, reason, 0)
        if observation.seen is not None and observation.protocol_type:
            return StandingVerdict(NOT_APPLICABLE, "the group is empty", 0)
        reason = "no membership: offsets are committed without joining the group (assign and commit)"
        return StandingVerdict(NOT_APPLICABLE, reason, 0)
    classic = state.classic
    if classic.waiting or classic.verdict is None:
        return StandingVerdict(PENDING, "no round has judged the newest decision yet", 0)
    return classic.verdict


CLASSIC: Final = Kind(
    records={
        MembershipRecord: churn.decide,
        MembershipTombstone: churn.end_membership,
        UnreadableMembership: _note_unreadable,
    },
    lives=lambda state: state.modern.key_type is None,
    note_round=churn.note_round,
    write_verdicts=write_classic_verdicts,
    judge_again=judge_again,
    owners=_owners,
    standing_members=standing_members,
    membership=_membership,
    findings=classic_findings,
    end=_end,
)
"""Groups of the classic protocol, and those that only commit offsets."""
