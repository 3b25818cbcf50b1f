"""Groups that the broker assigns: consumer (KIP-848), share and streams."""

from __future__ import annotations

from typing import Final, get_args

from streaming.groups.context import Context
from streaming.groups.kind import Kind
from streaming.groups.modern import owners
from streaming.groups.modern.decisions import follow, pass_over
from streaming.groups.modern.findings import modern_findings
from streaming.groups.modern.members import close_modern_members, standing_modern_members, write_modern_members
from streaming.groups.modern.verdicts import (
    judge_modern_again,
    modern_membership,
    was_met_empty,
    write_modern_verdicts,
)
from streaming.groups.state import GroupState
from streaming.records import GroupObservation, ModernInput, UnreadableModern


def _write_verdicts(state: GroupState, observation: GroupObservation, context: Context) -> None:
    write_modern_members(state, context)
    if was_met_empty(state):
        close_modern_members(state, observation.log_position, observation.time, context)
    write_modern_verdicts(state, observation, context)


def _end(state: GroupState, observation: GroupObservation, context: Context) -> None:
    write_modern_members(state, context)
    write_modern_verdicts(state, observation, context)
    close_modern_members(state, observation.log_position, observation.time, context)


MODERN: Final = Kind(
    records={**dict.fromkeys(get_args(ModernInput), follow), UnreadableModern: pass_over},
    lives=lambda state: state.modern.key_type is not None,
    write_verdicts=_write_verdicts,
    judge_again=judge_modern_again,
    topics=owners.modern_topics,
    owners=owners.modern_owners,
    held=owners.held_by_members,
    consumers=owners.consumers_of,
    assignment=owners.assignment_of,
    topics_of=owners.topics_of,
    standing_members=standing_modern_members,
    membership=modern_membership,
    findings=modern_findings,
    end=_end,
)
"""Groups whose members' targets the broker computes."""
