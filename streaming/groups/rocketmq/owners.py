"""Findings about the owners of RocketMQ's queues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from streaming.groups.health.columns import FindingAtRound, some
from streaming.groups.rocketmq.allocation import Queue, may_leave_out, may_share
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.verdicts import SETTLED_MS
from streaming.groups.rocketmq.views import Views
from streaming.groups.rocketmq.watch import Watch, are_all, lasting
from streaming.records import OK
from streaming.terminal import counted

SPLIT_BRAIN: Final = "split_brain"
DOUBLY_HELD: Final = "doubly_held"
HELD_BY_NOBODY: Final = "held_by_nobody"

OWNERS_MS: Final = SETTLED_MS

_LOOKS: Final = 16
"""Newest rounds that count for owners that flip."""

_FLIPS: Final = 3
"""So many of them with a wrong owner are no transient, where views have differed for as long."""

_LONGEST: Final = 1_000
"""Characters of the longest detail: it holds those of other findings."""

_TopicQueue = tuple[str, Queue]


def wrong_owners(views: Views) -> tuple[list[_TopicQueue], list[_TopicQueue]]:
    """Queues that have several owners at this round, and those that have none; each with its topic."""
    doubly: list[_TopicQueue] = []
    nobody: list[_TopicQueue] = []
    for topic in views.judged_topics:
        if views.is_mapped(topic):
            continue
        names = views.strategies_of(topic)
        if not may_share(names):
            # By their own word now: what a member held that does not answer may be somebody else's by now.
            holders = sorted(views.holders[topic].items())
            doubly += [(topic, queue) for queue, clients in holders if len(views.told.keys() & clients) > 1]
        # A member of which nobody knows what it holds now may hold them.
        if any(topic in (views.subscriptions[client] or {topic}) for client in views.unknown):
            continue
        # Left out by the configuration: no fault, unless something is there to read.
        orphans = [(topic, queue) for queue in views.orphans(topic)]
        nobody += [owned for owned in orphans if not may_leave_out(names) or _unread(views, owned)[0]]
    return doubly, nobody


def owner_findings(
    watch: Watch, views: Views, doubly: Sequence[_TopicQueue], nobody: Sequence[_TopicQueue], least: int
) -> list[FindingAtRound]:
    """The findings on queues that have had several owners, or none, for at least so many ms."""
    found = []
    for name, queues, detail_of in ((DOUBLY_HELD, doubly, _doubly_detail), (HELD_BY_NOBODY, nobody, _nobody_detail)):
        parts = [
            (watch.see(f"{name} {topic}@{broker} {number}"), (topic, (broker, number)))
            for topic, (broker, number) in queues
        ]
        last = lasting(parts, least)
        count = f"{'' if are_all(parts) else 'at least '}{counted(len(last), 'queue')} held"
        detail = f"{count} by {detail_of(views, last, are_all=are_all(parts))}"
        found += watch.finding(name, least, [lasted for lasted, _ in parts], detail)
    return found


def _doubly_detail(views: Views, queues: list[_TopicQueue], *, are_all: bool) -> str:  # noqa: ARG001
    texts = [f"{_text(owned)} by {some(views.holders[owned[0]][owned[1]])}" for owned in queues]
    return f"two or more members, which consume the same messages: {some(texts)}"


def _nobody_detail(views: Views, queues: list[_TopicQueue], *, are_all: bool) -> str:
    offsets = {owned: _unread(views, owned) for owned in queues}
    unread = [count for count, _ in offsets.values() if count]
    never = sum(is_never_consumed for _, is_never_consumed in offsets.values())
    which = "" if are_all else "of these "
    lag = f"{len(unread)} with {sum(unread):,} unread messages" if unread else "none with unread messages"
    more = f", {never:,} never consumed" if never else ""
    first = [_text(owned) for owned in sorted(queues, key=lambda owned: (-offsets[owned][0], owned))]
    return f"no member ({which}{lag}{more}): {some(first)}"


def _unread(views: Views, owned: _TopicQueue) -> tuple[int, bool]:
    """Messages of a queue that the group has not consumed, and whether it has no offset, as far as its broker tells."""
    topic, (broker, number) = owned
    for seen in views.topics[topic].queues:
        if seen.broker == broker and seen.answer == OK and number < len(seen.max):
            committed = -1 if seen.committed is None else seen.committed[number]
            unread = max(0, seen.max[number] - max(committed, seen.min[number], 0))
            return unread, committed < 0 and seen.committed is not None
    return 0, False


def split_brain(
    mine: RocketMQState,
    owners: Sequence[FindingAtRound],
    wrong: Sequence[str],
    differing: Sequence[FindingAtRound],
    now: int,
) -> Iterator[FindingAtRound]:
    """The finding `split_brain`: views that differ, and owners that are wrong because of it, lasting or flipping.

    Args:
        mine: RocketMQ's part of the group's state.
        owners: The findings on owners.
        wrong: What is wrong with owners at this round.
        differing: The findings on views that differ.
        now: Time of the round, ms.
    """
    mine.wrong = (mine.wrong << 1 | bool(wrong)) & ((1 << _LOOKS) - 1)
    if not differing:
        return
    since = min(one.since for one in differing)
    flipping = now - since >= OWNERS_MS and mine.wrong.bit_count() >= _FLIPS
    if flipping or any(one.shown for one in owners):
        what = some(wrong) if wrong else "queues change owners from one rebalance to the next"
        why = "; ".join(f"{one.name} ({one.detail})" for one in differing)
        yield FindingAtRound(SPLIT_BRAIN, since, f"{what}, because members see different groups: {why}"[:_LONGEST])


def texts_of(doubly: Sequence[_TopicQueue], nobody: Sequence[_TopicQueue]) -> list[str]:
    """What is wrong with these queues."""
    twice = [f"{_text(owned)} is held twice" for owned in doubly]
    return twice + [f"{_text(owned)} is held by nobody" for owned in nobody]


def _text(owned: _TopicQueue) -> str:
    topic, (broker, number) = owned
    return f"{topic[:200]}@{broker[:100]} {number}"
