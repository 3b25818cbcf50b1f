"""A classic group's membership and verdict for `group_health`."""

from __future__ import annotations

from streaming.groups.classic.membership import counts_of, is_consumer
from streaming.groups.health.membership import Membership
from streaming.groups.state import GroupState
from streaming.groups.verdict import NOT_APPLICABLE, PENDING, StandingVerdict
from streaming.records import GroupObservation

__all__ = ["classic_membership", "classic_verdict"]


def classic_membership(state: GroupState, observation: GroupObservation, verdict: StandingVerdict) -> Membership:
    """The membership of a classic group; without a live record, little more than its verdict."""
    record = state.live_record()
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
        generation=record.generation,
        decided=record.record_time,
        members=len(record.members),
        assigned=sum(counts) if counts else 0,
        balance=state.classic.balance if counts else (None, None),
    )


def classic_verdict(state: GroupState, observation: GroupObservation) -> StandingVerdict:
    """The verdict on the newest decision, or why there is none."""
    if state.live_record() is None:
        if observation.state not in {None, "Empty", "Dead"}:
            reason = "the group has members, but no record of its membership has been read yet"
            return StandingVerdict(PENDING, reason, 0)
        if not state.partitions:
            reason = "the log has neither a membership nor a committed offset of the group"
            return StandingVerdict(PENDING, reason, 0)
        reason = "no membership: offsets are committed without joining the group (assign and commit)"
        return StandingVerdict(NOT_APPLICABLE, reason, 0)
    classic = state.classic
    if classic.waiting or classic.verdict is None:
        return StandingVerdict(PENDING, "no round has judged the newest decision yet", 0)
    return classic.verdict
