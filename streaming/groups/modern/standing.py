"""A modern group's membership and verdict for `group_health`."""

from __future__ import annotations

from streaming.groups.health.membership import Membership
from streaming.groups.modern.consumer_group import asked_assignors, state_of
from streaming.groups.modern.verdicts import no_verdict_on, strategy_of
from streaming.groups.state import GroupState
from streaming.groups.verdict import NOT_APPLICABLE, PENDING, StandingVerdict
from streaming.records import SHARE, STREAMS, GroupObservation

__all__ = ["modern_membership", "modern_verdict", "was_met_empty"]


def was_met_empty(state: GroupState) -> bool:
    """Whether a modern group was already empty when its first records were read."""
    group = state.modern.group
    return group is not None and not group.members and group.epoch > (state.modern.epoch or -1)


def modern_membership(state: GroupState, observation: GroupObservation, verdict: StandingVerdict) -> Membership:
    """The membership of a consumer, share or streams group; only its verdict if no record of it was read."""
    modern = state.modern
    group = modern.group
    if group is None:
        return Membership("Unknown", verdict, protocol_type=observation.protocol_type)
    owned = {(t, p) for current in group.currents.values() for t, numbers in current.partitions for p in numbers}
    empty = was_met_empty(state)  # an empty group has no target
    return Membership(
        state_of(group),
        verdict,
        protocol_type=observation.protocol_type,
        strategy=strategy_of(asked_assignors(group)),
        incarnation=modern.incarnation,
        generation=group.epoch if empty else modern.epoch,
        decided=group.decided.record_time if group.decided is not None else None,
        members=len(group.members),
        assigned=len(owned),
        balance=(None, None) if empty or modern.balance is None else modern.balance,
    )


def modern_verdict(state: GroupState, observation: GroupObservation) -> StandingVerdict:
    """The verdict on the newest decision, or why there is none."""
    modern = state.modern
    kind = modern.group.group_type if modern.group is not None else observation.group_type
    if kind in {SHARE, STREAMS}:
        return StandingVerdict(NOT_APPLICABLE, no_verdict_on(kind), 0)
    if was_met_empty(state):
        return StandingVerdict(NOT_APPLICABLE, "the group is empty", 0)
    return modern.verdict or StandingVerdict(PENDING, "no target assignment of the group has been read yet", 0)
