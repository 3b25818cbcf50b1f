"""What a round reports of groups whose log is not read: membership and committed offsets, when they have changed.

A round repeats neither unless it differs from what was sent last, or a heartbeat has passed, so that a reader who lost
its past gets it again. What is too large for a record, or for a round, stays out; then the round says that it has not
looked, and the next one begins with other groups.

Pure, as `observe.py`. A new probe reports everything once; readers compare with what they know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from streaming.records import (
    ADMIN,
    Seen,
    SeenClassic,
    SeenCommits,
    SeenModern,
)

MOST_TOLD: Final = 4 * 1024 * 1024
"""Bytes of one group's membership in one round. Larger ones are only counted (`more`): 2,000 members with 2 KB each
still fit."""

MOST_A_ROUND: Final = 48 * 1024 * 1024
"""Bytes of membership in one round. Ordinary groups change now and then and have some kilobytes; this bounds the first
round of a probe on a cluster of large groups, and a client that changes many subscriptions at once."""

MOST_OFFSETS: Final = 100_000
"""Offsets of one group in one round: some 2.5 MB."""

SeenOffsets = Mapping[tuple[str, int], int]
"""Committed offsets by topic and partition."""


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """Members of a group as their coordinator told them.

    Attributes:
        mark: Hash of the answer: equal as long as nothing has changed.
        read: Returns them as a round tells them; their bytes are decoded only where they are news.
    """

    mark: int
    read: Callable[[], SeenClassic | SeenModern]


@dataclass(frozen=True, slots=True)
class SeenGroup:
    """What a round saw of one group.

    Attributes:
        looked: Its membership was seen.
        membership: The members; None where there are none to tell: the group is empty or rebalances, or was not
            looked at.
        offsets: Its committed offsets; None where they were not seen.
    """

    looked: bool
    membership: GroupMembers | None = None
    offsets: SeenOffsets | None = None


@dataclass(frozen=True, slots=True)
class LastReport:
    """What was last reported of a group.

    Attributes:
        membership: Hash of its members; None when none was reported.
        offsets: Its committed offsets; None when none were reported.
    """

    membership: int | None = None
    offsets: SeenOffsets | None = None


@dataclass(frozen=True, slots=True)
class SeenRound:
    """What a round reports, by group, and what has been reported with it."""

    telling: Mapping[str, Seen] = field(default_factory=dict)
    told: Mapping[str, LastReport] = field(default_factory=dict)


def report(
    number: int,
    seen: Mapping[str, SeenGroup],
    told: Mapping[str, LastReport],
    whole: Iterable[str],
    silent: Iterable[str],
) -> SeenRound:
    """What a round reports of the groups.

    Args:
        number: The round's number; where to begin, if not all can be reported.
        seen: What it saw, by group.
        told: What was reported before, by group.
        whole: Groups to report whole, changed or not.
        silent: Groups of which this round reports nothing.
    """
    due, unheard = frozenset(whole), frozenset(silent)
    names = sorted(seen)
    first = number % len(names) if names else 0
    telling: dict[str, Seen] = {}
    now: dict[str, LastReport] = {}
    left = MOST_A_ROUND
    for name in (*names[first:], *names[:first]):
        before = told.get(name, LastReport())
        if name in unheard:
            now[name] = before
            continue
        group = seen[name]
        looked, mark = group.looked, before.membership
        members: SeenClassic | SeenModern | None = None
        if group.membership is None:
            mark = None if looked else mark
        elif group.membership.mark != mark or name in due:
            members, size = _fitted(group.membership.read())
            if size > left:
                looked, members = False, None
            else:
                left -= size
                mark = group.membership.mark
        commits, offsets = None, before.offsets
        if group.offsets is not None:
            commits, offsets = _commits(group.offsets, before.offsets, whole=name in due)
        telling[name] = Seen(
            ADMIN,
            looked,
            classic=members if isinstance(members, SeenClassic) else None,
            modern=members if isinstance(members, SeenModern) else None,
            commits=commits,
        )
        now[name] = LastReport(mark, offsets)
    return SeenRound(telling, now)


def _fitted(members: SeenClassic | SeenModern) -> tuple[SeenClassic | SeenModern, int]:
    size = len(msgspec.json.encode(members))
    if size <= MOST_TOLD:
        return members, size
    return msgspec.structs.replace(members, members=(), more=len(members.members)), 0


def _commits(
    offsets: SeenOffsets, before: SeenOffsets | None, *, whole: bool
) -> tuple[SeenCommits | None, SeenOffsets | None]:
    """The committed offsets to report, and what has been reported with them."""
    if before is None or whole:
        news = dict(offsets)
        all_of_them = len(news) <= MOST_OFFSETS
    else:
        news = {tp: offset for tp, offset in offsets.items() if before.get(tp) != offset}
        news |= dict.fromkeys(before.keys() - offsets.keys(), -1)
        all_of_them = False
        if not news:
            return None, before
    if len(news) > MOST_OFFSETS:
        told = before or {}
        # Those that were never reported, or have changed, come first: the others are as they were.
        order = sorted(news, key=lambda tp: (told.get(tp) == news[tp], tp))
        news = {tp: news[tp] for tp in order[:MOST_OFFSETS]}
        after = {tp: offset for tp, offset in {**told, **news}.items() if offset >= 0}
    else:
        after = dict(offsets)
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for (topic, partition), offset in sorted(news.items()):
        by_topic.setdefault(topic, []).append((partition, offset))
    return SeenCommits(all_of_them, {topic: tuple(of_topic) for topic, of_topic in by_topic.items()}), after
