"""Groups of Kafka Connect workers: classic groups that assign connectors and tasks in place of partitions.

Their records, churn, cost and members are those of `classic/`; verdicts and findings are their own. What they own are
units (`records.Member`), which have no offsets: such a group has neither lag nor load.
"""

from __future__ import annotations

from typing import Final

from streaming.groups.classic.kind import classic_membership
from streaming.groups.classic.membership import is_connect, standing_members
from streaming.groups.connect.findings import connect_findings
from streaming.groups.connect.verdicts import judge_again, write_connect_verdicts
from streaming.groups.context import Context
from streaming.groups.kind import Kind, Ownership
from streaming.groups.state import GroupState
from streaming.records import GroupObservation


def _lives(state: GroupState) -> bool:
    record = state.live_record()
    return record is not None and is_connect(record)


def _end(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Judge what waits; `classic/` closes the members."""
    write_connect_verdicts(state, observation, context)


CONNECT_GROUPS: Final = Kind(
    lives=_lives,
    write_verdicts=write_connect_verdicts,
    judge_again=judge_again,
    # Nobody: a connector is no topic, even if it has the name of one.
    owners=lambda _state: Ownership(),
    standing_members=standing_members,
    membership=classic_membership,
    findings=connect_findings,
    end=_end,
)
"""Groups of Kafka Connect workers as the core judges them."""
