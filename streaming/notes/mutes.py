"""Mutes: for a while nothing is sent about a group, a rule or a team's groups. Pure.

A mute hides no transition, only its delivery: what still fires when the mute ends is delivered then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from streaming.config import fits
from streaming.times import DAY_MS

GROUP: Final = "group"
RULE: Final = "rule"
OWNER: Final = "owner"

KINDS: Final = (GROUP, RULE, OWNER)

LONGEST_MS: Final = 366 * DAY_MS
"""A mute for longer is a rule that should be removed; rows of mutes are kept for 400 days."""


@dataclass(frozen=True, slots=True)
class Mute:
    """One mute.

    Attributes:
        mute_id: Its id.
        cluster: Whose alerts.
        kind: GROUP, RULE or OWNER.
        name: Name of the group, rule or team; of groups also a regular expression between slashes.
        reason: Why, as written.
        made_by: User and host.
        since: When it began, ms.
        until: When it ends, ms.
    """

    mute_id: str
    cluster: str
    kind: str
    name: str
    reason: str
    made_by: str
    since: int
    until: int

    @property
    def compiles(self) -> bool:
        """Whether its name is one, or a regular expression that compiles."""
        try:
            fits("", self.name)
        except ValueError:
            return False
        return True

    def covers(self, rule: str, group: str | None, owner: str | None) -> bool:
        """Whether it mutes an alert of a rule about a group (None: the cluster) that a team owns (None: nobody)."""
        if self.kind == RULE:
            return self.name == rule
        if self.kind == OWNER:
            return owner is not None and self.name == owner
        # (A pattern in the table may be anybody's: one that does not compile matches nothing.)
        try:
            return group is not None and fits(group, self.name)
        except ValueError:
            return False


def muting(mutes: Iterable[Mute], now: int, rule: str, group: str | None, owner: str | None) -> Mute | None:
    """The mute that holds back an alert now (ms), the last to end where several do; None when there is none."""
    holding = (mute for mute in mutes if mute.since <= now < mute.until and mute.covers(rule, group, owner))
    return max(holding, key=lambda mute: mute.until, default=None)


def whole(mute: Mute) -> str:
    """What a mute is about: "group billing"."""
    return f"{mute.kind} {mute.name}"
