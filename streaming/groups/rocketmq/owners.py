"""Findings about the owners of RocketMQ's queues, and for how long rounds have shown what a finding is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from streaming.groups.health.columns import FindingAtRound, some
from streaming.groups.rocketmq.allocation import BY_CONFIGURATION, Queue
from streaming.groups.rocketmq.state import RocketMQState, Watched
from streaming.groups.rocketmq.verdicts import SETTLED_MS
from streaming.groups.rocketmq.views import Views, queues_of
from streaming.records import OK, QueuesSeen
from streaming.terminal import counted

_MOST_WATCHED: Final = 1_000
"""Queues or connections that are watched at once for one finding: enough to judge by, and no finding takes the room of
another. More wrong ones are not counted while the first are there, so a detail says "at least"."""


_Shown = TypeVar("_Shown")


@dataclass(frozen=True, slots=True)
class Lasting(Generic[_Shown]):
    """What this round shows of a finding.

    Attributes:
        shown: Whatever has lasted for long enough, in order.
        findings: The finding without its detail, where the round shows anything of it.
        are_all: There was room for all of it.
    """

    shown: list[_Shown]
    findings: list[FindingAtRound]
    are_all: bool

    @property
    def text(self) -> str:
        """The first of what has lasted, and how many more there are."""
        return some([str(one) for one in self.shown]) + ("" if self.are_all else ", at least")

    def told(self, detail: str) -> Iterator[FindingAtRound]:
        """The finding with its detail; nothing where this round shows nothing of it."""
        return (one._replace(detail=detail) for one in self.findings)


class Watch:
    """What this round shows, and for how long rounds have shown it."""

    def __init__(self, mine: RocketMQState, elapsed: int, now: int) -> None:
        self._before, self._elapsed, self._now = mine.watched, elapsed, now
        self.now: dict[str, Watched] = {}
        self._watched = Counter[str]()
        self._full = set[str]()

    def see(self, name: str) -> int:
        """Note that this round shows something; for how long all rounds have, ms; -1 at the first one.

        Args:
            name: The finding, a blank, and what it is about.
        """
        finding = name.partition(" ")[0]
        if name not in self.now:
            if self._watched[finding] >= _MOST_WATCHED:
                self._full.add(finding)
                return -1
            self._watched[finding] += 1
        watched = self.now.get(name) or self._before.get(name)
        if watched is None or watched.since > self._elapsed:
            self.now[name] = Watched(self._elapsed)
            return -1
        if name not in self.now:
            watched.rounds += 1
            self.now[name] = watched
        return self._elapsed - watched.since

    def is_known(self, name: str) -> bool:
        """Whether the round before has shown it."""
        return name in self._before

    def follow(self, finding: str, least: int, shown: Iterable[tuple[int, _Shown]]) -> Lasting[_Shown]:
        """Note all that this round shows of a finding, which is shown once anything has lasted for `least` ms.

        Args:
            finding: Its name.
            least: How long that is, ms.
            shown: For how long rounds have shown each part, as `see` gives it, and the part.
        """
        lasting, longest = [], None
        for lasted, part in shown:
            if finding in self._full:
                break
            longest = lasted if longest is None else max(longest, lasted)
            if lasted >= least:
                lasting.append(part)
        found = []
        if longest is not None:
            found.append(FindingAtRound(finding, self._now - max(0, longest), "", shown=longest >= least))
        return Lasting(lasting, found, finding not in self._full)


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
        holders = views.holders[topic]
        names = {views.runs[client].name for client in views.subscribers[topic] if client in views.runs}
        if not names & BY_CONFIGURATION:
            # By their own word now: what a member held that does not answer may be somebody else's by now.
            doubly += [
                (topic, queue)
                for queue, of in sorted(holders.items())
                if sum(client in views.told for client in of) > 1
            ]
        # A member of which nobody knows what it holds now may hold them.
        if any(topic in (views.subscribed_by(client) or {topic}) for client in views.unknown):
            continue
        orphans = [(topic, queue) for queue in queues_of(views.routes[topic]) if queue not in holders]
        # Left out by the configuration: no fault, unless something is there to read.
        left_out = any("MACHINE_ROOM" in name or name in BY_CONFIGURATION for name in names)
        nobody += [of for of in orphans if not left_out or _unread(views, of)]
    return doubly, nobody


def owner_findings(
    watch: Watch, views: Views, doubly: Sequence[_TopicQueue], nobody: Sequence[_TopicQueue], least: int
) -> list[FindingAtRound]:
    """The findings on queues that have had several owners, or none, for at least so many ms."""
    twice = watch.follow(DOUBLY_HELD, least, ((watch.see(f"{DOUBLY_HELD} {_name(of)}"), of) for of in doubly))
    texts = [f"{_text(of)} by {some(views.holders[of[0]].get(of[1], ()))}" for of in twice.shown]
    what = f"{_count(twice)} by two or more members, which consume the same messages: {some(texts)}"
    never = watch.follow(HELD_BY_NOBODY, least, ((watch.see(f"{HELD_BY_NOBODY} {_name(of)}"), of) for of in nobody))
    return [*twice.told(what), *never.told(_nobody_detail(views, never))]


def _nobody_detail(views: Views, orphans: Lasting[_TopicQueue]) -> str:
    unread = {of: _unread(views, of) for of in orphans.shown}
    never = sum(_was_never_consumed(views, of) for of in orphans.shown)
    behind = sum(count > 0 for count in unread.values())
    which = "" if orphans.are_all else "of these "
    lag = f"{behind} with {sum(unread.values()):,} unread messages" if behind else "none with unread messages"
    more = f", {never:,} never consumed" if never else ""
    first = [_text(of) for of in sorted(unread, key=lambda of: (-unread[of], of))]
    return f"{_count(orphans)} by no member ({which}{lag}{more}): {some(first)}"


def _unread(views: Views, owned: _TopicQueue) -> int:
    """Messages of a queue that the group has not consumed, as far as anybody tells."""
    seen, number = _offsets(views, owned), owned[1][1]
    if seen is None:
        return 0
    committed = seen.committed[number] if seen.committed is not None else -1
    return max(0, seen.max[number] - max(committed, seen.min[number], 0))


def _was_never_consumed(views: Views, owned: _TopicQueue) -> bool:
    """Whether its broker tells that the group has no offset of a queue."""
    seen = _offsets(views, owned)
    return seen is not None and seen.committed is not None and seen.committed[owned[1][1]] < 0


def _offsets(views: Views, owned: _TopicQueue) -> QueuesSeen | None:
    topic, (broker, number) = owned
    of_broker = (seen for seen in views.topics[topic].queues if seen.broker == broker and seen.answer == OK)
    return next((seen for seen in of_broker if number < len(seen.max)), None)


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
    return [
        *(f"{_text(of)} is held twice" for of in doubly),
        *(f"{_text(of)} is held by nobody" for of in nobody),
    ]


def _name(owned: _TopicQueue) -> str:
    topic, (broker, number) = owned
    return f"{topic}@{broker} {number}"


def _text(owned: _TopicQueue) -> str:
    topic, (broker, number) = owned
    return f"{topic[:200]}@{broker[:100]} {number}"


def _count(queues: Lasting[_TopicQueue]) -> str:
    return f"{'' if queues.are_all else 'at least '}{counted(len(queues.shown), 'queue')} held"
