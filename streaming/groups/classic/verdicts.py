"""The verdicts that a round makes possible on a classic group's decisions."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.groups.classic.drift import judge
from streaming.groups.classic.state import ClassicDecision
from streaming.groups.context import Context
from streaming.groups.rows import WhatIfRow
from streaming.groups.state import GroupState
from streaming.groups.verdict import Judged, Verdict
from streaming.groups.verdicts import standing, write_verdicts
from streaming.groups.what_if.classic import what_if_rows
from streaming.records import GroupObservation

__all__ = ["write_classic_verdicts"]


def write_classic_verdicts(
    state: GroupState, observation: GroupObservation, context: Context, *, last: bool = False
) -> None:
    """Judge the waiting decisions that can be judged now, or all of them if no more rounds will come (`last`)."""
    classic = state.classic
    verdicts = write_verdicts(classic.waiting, _Classic(state, observation, context, last), observation, context)
    classic.verdict = standing(verdicts) or classic.verdict
    classic.waiting = classic.waiting[len(verdicts) :]


@dataclass(frozen=True, slots=True)
class _Classic:
    state: GroupState
    observation: GroupObservation
    context: Context
    last: bool

    def judge(self, decision: ClassicDecision, *, later_is_judged: bool) -> Verdict | None:
        now = self.state.clock.now
        latest = max(now, self.observation.time)
        return judge(self.state, decision, now, latest, self.context.config, last=self.last or later_is_judged)

    def judged_of(self, decision: ClassicDecision) -> Judged:
        record = decision.record
        return Judged(
            self.context.group,
            record.record,
            self.observation.log_partition,
            record.record_time,
            decision.incarnation,
            record.generation,
            record.protocol,
        )

    def what_if(self, decision: ClassicDecision, judged: Judged, verdict: Verdict, *, crowded: bool) -> list[WhatIfRow]:
        config = self.context.config
        return what_if_rows(self.state, decision, judged, verdict, self.observation, config, crowded=crowded)
