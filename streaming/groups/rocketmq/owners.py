"""Findings about the owners of RocketMQ's queues, and for how long rounds have shown what a finding is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

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


class Watch:
    """What this round shows, and for how long rounds have shown it."""

    def __init__(self, mine: RocketMQState, elapsed: int) -> None:
        self._before, self._elapsed = mine.watched, elapsed
        self.now: dict[str, Watched] = {}
        self._watched = Counter[str]()

    def see(self, name: str) -> int:
        """Note that this round shows something; for how long all rounds have, ms; -1 at the first one.

        Args:
            name: The finding, a blank, and what it is about.
        """
        if name not in self.now:
            self._watched[name.partition(" ")[0]] += 1
        watched = self.now.get(name) or self._before.get(name)
        if watched is None or watched.since > self._elapsed:
            self.now[name] = Watched(self._elapsed)
            return -1
        if name not in self.now:
            watched.rounds += 1
            self.now[name] = watched
        return self._elapsed - watched.since

    def has_room(self, finding: str) -> bool:
        """Whether one more may be watched for a finding."""
        return self._watched[finding] < _MOST_WATCHED

    def is_known(self, name: str) -> bool:
        """Whether the round before has shown it."""
        return name in self._before

    def longest(self, prefixes: Sequence[str]) -> int:
        """For how long rounds have shown anything with such a name, ms; -1 if nothing."""
        return max(
            (self._elapsed - of.since for name, of in self.now.items() if name.startswith(tuple(prefixes))), default=-1
        )


def found_after(name: str, lasted: int, least: int, detail: str, now: int) -> FindingAtRound:
    """A finding that is shown once it has lasted for so long."""
    return FindingAtRound(name, now - max(0, lasted), detail, shown=lasted >= least)


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

_Detail = Callable[[Sequence[tuple[str, Queue]], bool], str]


class QueueOwners:
    """Queues that have several owners or none at this round, and since when."""

    def __init__(self, watch: Watch, views: Views, now: int, least: int) -> None:
        self._watch, self._views, self._now, self._least = watch, views, now, least
        self.doubly: list[tuple[str, Queue]] = []
        self.nobody: list[tuple[str, Queue]] = []
        for topic in views.judged_topics:
            if not views.is_mapped(topic):
                self._topic(topic)

    @property
    def least(self) -> int:
        """For how long an owner must have been wrong, ms."""
        return self._least

    @property
    def is_wrong(self) -> bool:
        """Whether any queue has not exactly one owner."""
        return bool(self.doubly or self.nobody)

    def _topic(self, topic: str) -> None:
        views = self._views
        holders, subscribed = views.holders[topic], views.subscribers[topic]
        names = {views.runs[client].name for client in subscribed if client in views.runs}
        if not names & BY_CONFIGURATION:
            # By their own word now: what a member held that does not answer may be somebody else's by now.
            self.doubly += [
                (topic, queue)
                for queue, of in sorted(holders.items())
                if sum(client in views.told for client in of) > 1
            ]
        # A member of which nobody knows what it holds now may hold them.
        if any(topic in (views.subscribed_by(client) or {topic}) for client in views.unknown):
            return
        orphans = [queue for queue in queues_of(views.routes[topic]) if queue not in holders]
        if any("MACHINE_ROOM" in name or name in BY_CONFIGURATION for name in names):
            # Left out by the configuration: no fault, unless something is there to read.
            orphans = [queue for queue in orphans if self._unread(topic, queue)]
        self.nobody += [(topic, queue) for queue in orphans]

    def findings(self) -> Iterator[FindingAtRound]:
        """The findings on queues that have been so for long enough."""
        yield from self._of(DOUBLY_HELD, self.doubly, self._doubly_detail)
        yield from self._of(HELD_BY_NOBODY, self.nobody, self._nobody_detail)

    def _of(self, name: str, queues: Sequence[tuple[str, Queue]], detail: _Detail) -> Iterator[FindingAtRound]:
        lasted, lasting = -1, []
        are_all = True
        for topic, (broker, number) in queues:
            if not self._watch.has_room(name):
                are_all = False
                break
            longest = self._watch.see(f"{name} {topic}@{broker} {number}")
            lasted = max(lasted, longest)
            if longest >= self._least:
                lasting.append((topic, (broker, number)))
        if queues:
            yield found_after(name, lasted, self._least, detail(lasting, are_all), self._now)

    def _doubly_detail(self, queues: Sequence[tuple[str, Queue]], are_all: bool) -> str:
        texts = [
            f"{_text(topic, queue)} by {some(self._views.holders[topic].get(queue, ()))}" for topic, queue in queues
        ]
        return f"{_count(len(queues), are_all)} by two or more members, which consume the same messages: {some(texts)}"

    def _nobody_detail(self, queues: Sequence[tuple[str, Queue]], are_all: bool) -> str:
        unread = {of: self._unread(*of) for of in queues}
        never = sum(self._was_never_consumed(*of) for of in queues)
        lag = sum(unread.values())
        behind = [of for of in queues if unread[of]]
        parts = [f"{len(behind)} with {lag:,} unread messages" if behind else "none with unread messages"]
        if never:
            parts.append(f"{never:,} never consumed")
        first = [_text(*of) for of in sorted(queues, key=lambda of: (-unread[of], of))]
        which = "" if are_all else "of these "
        return f"{_count(len(queues), are_all)} by no member ({which}{', '.join(parts)}): {some(first)}"

    def _unread(self, topic: str, queue: Queue) -> int:
        """Messages of a queue that the group has not consumed, as far as anybody tells."""
        seen = self._offsets(topic, queue)
        if seen is None:
            return 0
        committed = seen.committed[queue[1]] if seen.committed is not None else -1
        return max(0, seen.max[queue[1]] - max(committed, seen.min[queue[1]], 0))

    def _was_never_consumed(self, topic: str, queue: Queue) -> bool:
        """Whether its broker tells that the group has no offset of a queue."""
        seen = self._offsets(topic, queue)
        return seen is not None and seen.committed is not None and seen.committed[queue[1]] < 0

    def _offsets(self, topic: str, queue: Queue) -> QueuesSeen | None:
        for seen in self._views.topics[topic].queues:
            if seen.broker == queue[0] and seen.answer == OK and queue[1] < len(seen.max):
                return seen
        return None


def split_brain(
    mine: RocketMQState, watch: Watch, owners: QueueOwners, differing: Sequence[FindingAtRound], now: int
) -> Iterator[FindingAtRound]:
    """The finding `split_brain`: views that differ, and owners that are wrong because of it, lasting or flipping."""
    mine.wrong = (mine.wrong << 1 | owners.is_wrong) & ((1 << _LOOKS) - 1)
    if not differing:
        return
    since = min(one.since for one in differing)
    lasting = watch.longest((f"{DOUBLY_HELD} ", f"{HELD_BY_NOBODY} ")) >= owners.least
    flipping = now - since >= OWNERS_MS and mine.wrong.bit_count() >= _FLIPS
    if lasting or flipping:
        wrong = [
            *(f"{_text(*of)} is held twice" for of in owners.doubly),
            *(f"{_text(*of)} is held by nobody" for of in owners.nobody),
        ]
        what = some(wrong) if wrong else "queues change owners from one rebalance to the next"
        why = "; ".join(f"{one.name} ({one.detail})" for one in differing)
        yield FindingAtRound(SPLIT_BRAIN, since, f"{what}, because members see different groups: {why}"[:_LONGEST])


def _text(topic: str, queue: Queue) -> str:
    return f"{topic[:200]}@{queue[0][:100]} {queue[1]}"


def _count(number: int, are_all: bool) -> str:
    return f"{'' if are_all else 'at least '}{counted(number, 'queue')} held"
