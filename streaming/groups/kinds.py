"""All kinds of groups, and which of them a record or a round concerns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streaming.groups import compaction
from streaming.groups.classic.kind import CLASSIC
from streaming.groups.commits import fold
from streaming.groups.context import Context
from streaming.groups.kind import Kind
from streaming.groups.modern.kind import MODERN
from streaming.groups.rocketmq.kind import ROCKETMQ_KIND
from streaming.groups.state import GroupState
from streaming.records import CommitWindow, Compacted, GroupObservation, RocketMQObservation

ROUNDS: Final[Mapping[type, tuple[Kind, ...]]] = {
    GroupObservation: (MODERN, CLASSIC),
    RocketMQObservation: (ROCKETMQ_KIND,),
}
"""The kinds of groups that each type of round shows: a group may become another of them."""

RECORDS: Final[Mapping[type, Callable[[GroupState, Any, Context], None]]] = {
    CommitWindow: fold,
    Compacted: compaction.take_in,
    **{record: process for kinds in ROUNDS.values() for kind in kinds for record, process in kind.records.items()},
}
"""How each type of record is processed."""
