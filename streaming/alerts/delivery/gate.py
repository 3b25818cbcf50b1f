"""Whether a message may leave now: a target's view of routing, mutes, quiet hours, maintenance and the first start.

The decision is pure (`streaming/alerts/routing`); here lies only what is known now, replaced as a whole by the alerter
and read by the delivery queues' threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.alerts.decisions import TransitionRow
from streaming.alerts.judging.firing import FIRING
from streaming.alerts.routing.routes import FIRST_START, HoldReason, Routing
from streaming.notes import Mute


@dataclass(frozen=True, slots=True)
class Present:
    """What holds messages back now.

    Attributes:
        mutes: Mutes of the cluster.
        waits: The first start on a cluster was not accepted yet.
        accepted: Decisions up to this number were accepted with the summary of the first start, and are not sent.
        always: Rules about Evenkeel itself, which no first start holds back.
    """

    mutes: tuple[Mute, ...] = ()
    waits: bool = False
    accepted: int = 0
    always: frozenset[str] = frozenset()


class Gate:
    """What a target gets, and when. `present` may be replaced at any time; the rest never changes."""

    def __init__(self, routing: Routing, target: str, *, reads_ends: bool) -> None:
        """Prepare.

        Args:
            routing: Who gets which alert.
            target: Name of the target.
            reads_ends: An end disturbs people there: in quiet hours it waits as well.
        """
        self._routing = routing
        self._target = target
        self._reads_ends = reads_ends
        self.present = Present()

    def refusal(self, decided: TransitionRow) -> str | None:
        """Why this target never gets a transition; None when it does."""
        present = self.present
        if decided.decision and decided.decision <= present.accepted and decided.rule not in present.always:
            return "it was in the accepted summary of the first start"
        targets = self._routing.targets_of(decided)
        if self._target not in targets:
            return f"it is routed to {', '.join(targets) or 'nobody'}"
        return None

    def repeat_ms(self, decided: TransitionRow) -> int | None:
        """After how long an alert that still fires is sent again, ms; None for never."""
        return self._routing.targets_of(decided).get(self._target)

    def hold(self, decided: TransitionRow, now: int) -> HoldReason | None:
        """What holds a transition back now (ms); None when it may be sent."""
        if decided.state != FIRING:
            quiet = self._routing.quiet(decided.severity, self._target, now) if self._reads_ends else []
            return max(quiet, key=lambda hold: hold.until or 0, default=None)
        present = self.present
        if present.waits and decided.rule not in present.always:
            return HoldReason(FIRST_START, "the first start was not accepted yet (evenkeel alert --accept)", None)
        return self._routing.hold(decided, self._target, now, present.mutes)

    def hold_notice(self, now: int) -> HoldReason | None:
        """What holds back a report or a summary now (ms)."""
        return next(iter(self._routing.quiet("info", self._target, now)), None)
