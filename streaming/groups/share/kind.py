"""Share groups: their members are shown, their targets are not judged."""

from __future__ import annotations

from typing import Final

from streaming.groups.context import Context
from streaming.groups.kind import Ownership
from streaming.groups.modern.group import ModernDecision
from streaming.groups.modern.members import named_target, ownership_version
from streaming.groups.modern.rules import TypeRules
from streaming.groups.state import GroupState
from streaming.groups.verdicts import NOT_APPLICABLE, Verdict
from streaming.records import SHARE


def _judge(_state: GroupState, _decision: ModernDecision, _context: Context) -> Verdict:
    return Verdict(NOT_APPLICABLE, "assignments of share groups are shown, not recomputed")


def _owners(state: GroupState) -> Ownership:
    """Nobody: a partition may have several members."""
    group = state.modern.group
    assert group is not None  # noqa: S101  # it has members
    return Ownership((), ownership_version(group))


SHARE_GROUPS: Final = TypeRules(
    group_type=SHARE,
    judge=_judge,
    findings=lambda _state, _observation, _context: [],
    owners=_owners,
    named_target=named_target,
    moves=lambda _decision: None,
    least_moves=lambda _decision, _names: None,
    balance=lambda _decision, _names: (None, None),
)
"""Share groups as the core judges them."""
