"""Verdicts on groups that the broker assigns (KIP-848): is the target what its assignor gives?

The verdict is about the target, never about what members own at present, which trails behind it. What the coordinator
went by is in the log: members, subscriptions, the target before. Three things are not: its release, the assignor
where no member asks for one, and partition counts (from 4.1). So every assignor and era that is possible is tried,
with the counts that the target itself shows, if a round saw them: the assignors hand out every partition.

`identical` is a fact; that nothing fits is none, as an assignor may be the operator's own. Where keys share a bucket of
the coordinator's maps their order is not recorded: as many of the possible ones are tried as is cheap. What fits none
is `unverified`. `drifted` is said of a partition that two members are to own, or one that does not subscribe to
its topic: no assignor may do that. (The target that an upgraded classic group brings was made by none: the coordinator
takes subscriptions and assignments as they stand, and a static member's return has parted them, kafka.md 2.8.)

Source of the rules: DESIGN.md 3; kafka.md 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from streaming.groups.budget import of_record
from streaming.groups.config import GroupConfig
from streaming.groups.context import Context
from streaming.groups.modern.balance import balance_of_target
from streaming.groups.modern.consumer_group import ModernDecision
from streaming.groups.modern.members import as_it_is, names_at
from streaming.groups.modern.recompute import recompute_target
from streaming.groups.modern.server_inputs import asked_of
from streaming.groups.rows import DriftedPartition, WhatIfRow
from streaming.groups.state import GroupState
from streaming.groups.verdict import DRIFTED, NOT_APPLICABLE, UNVERIFIED, Judged, Verdict, too_many
from streaming.groups.verdicts import standing, write_verdicts
from streaming.groups.what_if.modern import modern_what_if_rows
from streaming.records import CONSUMER, GroupObservation

__all__ = ["judge_modern", "no_verdict_on", "strategy_of", "write_modern_verdicts"]


def write_modern_verdicts(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Judge the decisions since the round before; the topics of this round are taken in."""
    modern = state.modern
    verdicts = write_verdicts(modern.waiting, _Modern(state, observation, context), observation, context)
    modern.verdict = standing(verdicts) or modern.verdict
    if modern.waiting:
        newest = modern.waiting[-1]
        now = None if newest.exact else as_it_is(state, newest)
        if now is not None and now.group_epoch == now.epoch:
            # No target has been written since, so that what is there is the newest one, whole.
            newest = msgspec.structs.replace(now, exact=True)
        with of_record(0):
            modern.balance = balance_of_target(newest, names_at(state, newest))
    modern.waiting = []


@dataclass(frozen=True, slots=True)
class _Modern:
    state: GroupState
    observation: GroupObservation
    context: Context

    def judge(self, decision: ModernDecision, *, later_is_judged: bool) -> Verdict:  # noqa: ARG002  # none waits
        return judge_modern(self.state, decision, self.context.config)

    def judged_of(self, decision: ModernDecision) -> Judged:
        return Judged(
            self.context.group,
            decision.record,
            decision.log_partition,
            decision.record_time,
            decision.incarnation,
            decision.epoch,
            strategy_of(decision.assignors),
        )

    def what_if(self, decision: ModernDecision, judged: Judged, verdict: Verdict, *, crowded: bool) -> list[WhatIfRow]:
        config = self.context.config
        return modern_what_if_rows(self.state, decision, judged, verdict, self.observation, config, crowded=crowded)


def strategy_of(assignors: tuple[str, ...]) -> str | None:
    """The server assignor that members ask for; None where it is the broker's default, or not to be told."""
    return assignors[0] if len(assignors) == 1 else None


def no_verdict_on(group_type: str) -> str:
    """Why share and streams groups get no verdict."""
    return f"assignments of {group_type} groups are shown, not recomputed"


def judge_modern(state: GroupState, decision: ModernDecision, config: GroupConfig) -> Verdict:
    """Judge one decision with what the round after it knows."""
    if decision.became_empty:
        return Verdict(NOT_APPLICABLE, "the group is empty")
    if decision.group_type != CONSUMER:
        return Verdict(NOT_APPLICABLE, no_verdict_on(decision.group_type))
    if decision.dropped:
        return Verdict(UNVERIFIED, too_many(decision.more))
    names = names_at(state, decision)
    broken = _broken(decision, names)
    if broken:
        return Verdict(DRIFTED, "invariants are violated, whatever the assignor", drifted=broken)
    asked = asked_of(state, decision, config)
    return Verdict(UNVERIFIED, asked) if isinstance(asked, str) else recompute_target(decision, asked)


def _broken(decision: ModernDecision, names: dict[str, str]) -> tuple[DriftedPartition, ...]:
    """Partitions of two members, or of one that does not subscribe."""
    if not decision.exact:
        return ()
    owners: dict[tuple[str, int], list[str]] = {}
    for member_id, target in decision.targets.items():
        for topic_id, numbers in target:
            for number in numbers:
                owners.setdefault((topic_id, number), []).append(member_id)
    found = []
    current = decision.group_epoch == decision.epoch and not decision.carried_over
    for (topic_id, number), members in sorted(owners.items()):
        topic = names.get(topic_id, topic_id)
        if len(members) > 1:
            found.append(DriftedPartition(topic, number, "doubly_assigned", None, tuple(members)))
        elif current and topic_id in names:
            subscription = decision.subscriptions.get(members[0])
            if subscription is not None and topic not in subscription:
                found.append(DriftedPartition(topic, number, "not_subscribed", None, tuple(members)))
    return tuple(found)
