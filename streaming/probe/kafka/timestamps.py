"""When oldest unread records were written that were there before the probe's first round, by the log's timestamps.

Rounds do not tell for how long such a record has been unread. ListOffsets by timestamp does, and needs no right beside
Describe: a leader answers with the first record that has a timestamp or a later one, and with that record's own
timestamp (KIP-79, `UnifiedLog.fetchOffsetByTimestamp`). So

- an answer beyond an offset proves that no record up to it has the timestamp: all are below it;
- an answer at or below it gives one of these records, which has reached a timestamp; perhaps it is the record itself.

The search narrows down the largest timestamp of the records up to the oldest unread one: first to a tenth of its age,
and where timestamps need not be in order, further until the record itself is found or cannot be. This takes some ten
answers, or twice as many; each helps all groups that are behind on the partition. "No such record" is believed only of
timestamps that brokers gave: a leader also says so when a segment without timestamps, or one whose first records were
deleted, hides later segments (`UnifiedLog.searchOffsetInLocalLog` looks into one segment only). Where offsets may be
missing because of compaction, nothing is proved but the timestamp of a record that is found.

In a round call `note_topics`, then `unread_timestamps`; after it `questions`, and `note_answers` or `give_up` for what
was answered. None of this outlives the process: a new probe searches again.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt
from typing import Final, TypeAlias

from streaming.probe.kafka.followed import Early
from streaming.probe.kafka.requests import FirstFrom
from streaming.records import TopicObservation, TopicRetention, UnreadTimestamp

PartitionId: TypeAlias = tuple[str, int]
"""Topic and partition."""

FIRST_TIMESTAMP_MS: Final = 1_293_840_000_000
"""2011-01-01, when Kafka was first released. A record with an earlier timestamp has something else in that field, such
as seconds, or nothing (-1)."""

MOST_QUESTIONS: Final = 5_000
"""Questions after one round. For each a leader reads some kilobytes of its log, perhaps from disk: spread over the
brokers this takes them tens of milliseconds of each ten seconds. A tenth of it would make 100,000 partitions wait for
hours."""

QUESTIONS_PER_PARTITION: Final = 4
"""After one round, for groups that are behind by different times. A request has a partition once, so more would make
as many requests."""

_LEAST_QUESTIONS: Final = 50
_FIRST_QUESTIONS: Final = 1_000

_AGAIN_S: Final = 60.0
"""Until a partition is asked again whose leader has refused, and until anything is, once a leader did not answer."""

_SHARE: Final = 12
"""Bounds this part of the age apart are close enough: a tenth is promised, and the age is not known exactly."""

_MOST_FINER: Final = 64
"""Answers of a partition up to which a record's own timestamp is looked for. A group needs about twenty; with many
groups on the partition, all of them would be hundreds."""

_MOST_TOLD: Final = 10_000
"""Timestamps in one event, 50 bytes each: with more, that of a very wide topic might become too large to be written."""

_NOWHERE: Final = 2**63 - 1
"""Stands for the offset where there is no record from a timestamp on."""

_WIDTH: Final = 3


@dataclass(slots=True)
class _Known:
    """What is known of one topic.

    Attributes:
        topic_id: Its id.
        first: High watermarks at the first round that knew them.
        end: High watermarks at the newest round.
        answers: Per partition three integers an answer, by rising timestamp: the timestamp that was asked, and offset
            and timestamp of the first record from it on.
        again: Time until which a partition is not asked, by the steady clock, where a leader has refused.
        start: Log start offsets at the newest round.
        retention: Its retention at the newest round.
    """

    topic_id: str | None
    first: tuple[int, ...]
    end: tuple[int, ...]
    answers: dict[int, array[int]] = field(default_factory=dict)
    again: dict[int, float] = field(default_factory=dict)
    start: tuple[int, ...] = ()
    retention: TopicRetention | None = None


@dataclass(slots=True)
class _OfGroup:
    """What is known of one group's oldest unread records.

    Attributes:
        committed: The offsets that it is about.
        wanted: Partitions to know it of, by topic.
        unread: What is known, by topic and partition.
        newest: The newest timestamp in it; `_NOWHERE` where a later round may know more.
    """

    committed: Early
    wanted: dict[str, set[int]] = field(default_factory=dict)
    unread: dict[str, dict[int, UnreadTimestamp]] = field(default_factory=dict)
    newest: int = -1


@dataclass(frozen=True, slots=True)
class _Gap:
    """What the answers leave open of the largest timestamp of the records up to an offset.

    Attributes:
        offset: The offset.
        at: Offset of the record with `reached`; -1 if there is none.
        reached: It is at least this timestamp, ms.
        beyond: First offset from `below` on; `_NOWHERE` likewise.
        below: It is below this timestamp, ms; that of the round before anything is known.
        proved: `below`, or a later timestamp, by an answer that names a record; -1 if there is none.
    """

    offset: int
    at: int
    reached: int
    beyond: int
    below: int
    proved: int

    def is_narrow(self, now: int, interval_ms: int) -> bool:
        return self.below - self.reached <= max(1, interval_ms, (now - self.reached) // _SHARE)

    def middle(self, now: int, interval_ms: int) -> int:
        """The timestamp to ask next: the geometric middle of the ages."""
        age = isqrt((now - self.reached) * max(1, interval_ms, now - self.below))
        return min(max(now - age, self.reached + 1), self.below - 1)

    def nearer(self, turn: int) -> int:
        """The timestamp to ask next for the record itself.

        By its place between the two records; every other time the middle, in case they are not evenly spread.
        """
        width = self.below - self.reached
        if turn % 2 or self.beyond == _NOWHERE:
            return self.reached + width // 2
        return self.reached + 1 + (width - 1) * (self.offset - self.at) // (self.beyond - self.at)


class Timestamps:
    """The search, over all topics. Not for several threads."""

    def __init__(self, interval_ms: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        """Know nothing yet.

        Args:
            interval_ms: Time between rounds: bounds that close are close enough.
            clock: Steady time, s.
        """
        self._interval_ms = interval_ms
        self._clock = clock
        self._topics: dict[str, _Known] = {}
        self._changed: set[str] = set()
        self._groups: dict[str, _OfGroup] = {}
        self._most = _FIRST_QUESTIONS
        self._again = 0.0
        self._open: dict[PartitionId, dict[int, None]] = {}
        self._finer: dict[PartitionId, dict[int, None]] = {}

    @property
    def first_ends(self) -> Mapping[str, tuple[int, ...]]:
        """High watermarks by topic and partition at the first round that knew them; -1 where it did not."""
        return {name: known.first for name, known in self._topics.items()}

    def note_topics(self, topics: Mapping[str, TopicObservation]) -> None:
        """Take in the topics of a round. Answers about a log that was replaced or cut back are dropped."""
        before, self._topics = self._topics, {}
        for name, topic in topics.items():
            if topic.partitions is None:
                continue
            known, end = before.get(name), tuple(topic.ends)
            if known is None or known.topic_id != topic.topic_id or len(known.end) > len(end):
                known = _Known(topic.topic_id, end, end)
            cut_back = [p for p in known.answers if -1 < end[p] < known.end[p]]
            for partition in cut_back:
                del known.answers[partition]
            first, start = known.first, tuple(topic.starts)
            if -1 in first:
                first = tuple([old if old >= 0 else new for old, new in zip(first, end, strict=False)])
            seen = first, start, topic.retention
            if cut_back or seen != (known.first, known.start, known.retention):
                self._changed.add(name)
            known.first, known.start, known.retention = seen
            known.end = end
            self._topics[name] = known

    def unread_timestamps(
        self, early: Mapping[str, Early], now: int
    ) -> dict[str, dict[str, dict[int, UnreadTimestamp]]]:
        """What is known of the oldest unread records, by group, topic and partition; the rest is asked next.

        A group of which nothing has changed, and of which no more can be known, has the same object as before.

        Args:
            early: Committed offsets by group.
            now: Time of the round, ms.
        """
        self._open, self._finer = {}, {}
        before, self._groups = self._groups, {}
        wanted: dict[str, set[int]] = {}
        for group, committed in early.items():
            known = before.get(group)
            if known is None or known.committed is not committed or known.newest >= now or self._has_changed(known):
                known = self._of_group(committed, now)
            self._groups[group] = known
            for name, partitions in known.wanted.items():
                wanted.setdefault(name, set()).update(partitions)
        self._changed.clear()
        for name, topic in self._topics.items():
            if topic.answers and len(topic.answers) > len(wanted.get(name, ())):
                topic.answers = {p: of for p, of in topic.answers.items() if p in wanted.get(name, ())}
        return {group: known.unread for group, known in self._groups.items() if known.unread}

    def questions(self) -> list[dict[PartitionId, int]]:
        """Timestamps to ask now, by partition; each of the mappings may be one request."""
        now = self._clock()
        if now < self._again:
            return []
        rows: list[dict[PartitionId, int]] = [{} for _ in range(QUESTIONS_PER_PARTITION)]
        left = self._most
        for waiting in (self._open, self._finer):
            for tp, timestamps in waiting.items():
                if left <= 0:
                    break
                if self._topics[tp[0]].again.get(tp[1], 0.0) > now:
                    continue
                free = [row for row in rows if tp not in row]
                for row, timestamp in zip(free, timestamps, strict=False):
                    row[tp] = timestamp
                    left -= 1
        return [row for row in rows if row]

    def note_answers(self, asked: Mapping[PartitionId, int], answers: Mapping[PartitionId, FirstFrom]) -> None:
        """Take in the answers to one of the mappings; a partition whose leader refused is missing."""
        self._most = min(MOST_QUESTIONS, 2 * self._most)
        again = self._clock() + _AGAIN_S
        for (name, partition), timestamp in asked.items():
            known = self._topics[name]
            answer = answers.get((name, partition))
            if answer is None or (answer.offset >= 0 and answer.timestamp < timestamp):
                known.again[partition] = again
                continue
            known.again.pop(partition, None)
            _insert(known.answers.setdefault(partition, array("q")), timestamp, answer)

    def give_up(self) -> None:
        """A leader did not answer in time: ask again in a while, and less."""
        self._most = max(_LEAST_QUESTIONS, self._most // 2)
        self._again = self._clock() + _AGAIN_S

    def _has_changed(self, known: _OfGroup) -> bool:
        return bool(self._changed) and any(name in self._changed for name, _, _ in known.committed)

    def _of_group(self, committed: Early, now: int) -> _OfGroup:
        of_group = _OfGroup(committed)
        for name, partition, offset in committed:
            known = self._topics.get(name)
            if known is None or partition >= len(known.first):
                continue
            offset = max(offset, known.start[partition])  # noqa: PLW2901 - the oldest record that is still there
            if offset >= known.first[partition]:
                continue
            if offset >= known.end[partition] - 1:
                of_group.newest = _NOWHERE  # it is early as soon as one more record is there
                continue
            of_group.wanted.setdefault(name, set()).add(partition)
            found, is_final = self._known_or_asked(known, (name, partition), offset, now)
            if not is_final:
                of_group.newest = _NOWHERE
            if found is not None:
                of_group.newest = max(of_group.newest, found.reached)
                of_group.unread.setdefault(name, {})[partition] = found
        of_group.unread = {name: dict(sorted(of.items())[:_MOST_TOLD]) for name, of in of_group.unread.items()}
        return of_group

    def _known_or_asked(
        self, known: _Known, tp: PartitionId, offset: int, now: int
    ) -> tuple[UnreadTimestamp | None, bool]:
        """What is known of an oldest unread record, if it is enough, and whether that is all that can be known.

        What is to be asked to know it, or to know it better, is noted.
        """
        answers = known.answers.get(tp[1])
        gap = _gap(answers or (), offset, now)
        kept = known.retention
        by_brokers = kept is not None and kept.append_time
        if gap.reached >= now:
            return None, False  # a timestamp from the future hides the others
        is_final = True
        if gap.at != offset:
            if not gap.is_narrow(now, self._interval_ms):
                self._open.setdefault(tp, {})[gap.middle(now, self._interval_ms)] = None
                return None, False
            width = gap.below - gap.reached
            if not by_brokers and width > 1 and gap.at >= 0 and len(answers or ()) < _MOST_FINER * _WIDTH:
                self._finer.setdefault(tp, {})[gap.nearer(len(answers or ()) // _WIDTH)] = None
                is_final = False
        if gap.at < 0:
            return None, is_final
        below = gap.proved
        if kept is None or kept.compacts:
            below = -1
        elif by_brokers and gap.below < now:
            below = gap.below
        if gap.at == offset or by_brokers or below >= 0:
            return UnreadTimestamp(offset, gap.reached, below, gap.at == offset), is_final
        return None, is_final


def _gap(answers: Sequence[int], offset: int, now: int) -> _Gap:
    """What a partition's answers leave open up to an offset."""
    at, reached, beyond, below, proved = -1, FIRST_TIMESTAMP_MS, _NOWHERE, -1, -1
    each = iter(answers)
    for asked, first, timestamp in zip(each, each, each, strict=True):
        if first <= offset:
            if below < 0:
                at, reached = first, timestamp
            continue
        if below < 0:
            beyond, below = first, asked
        if first != _NOWHERE:
            proved = asked
            break
    if -1 < below <= reached:
        # The record that had reached it was deleted between the two answers.
        at, reached = -1, FIRST_TIMESTAMP_MS
    return _Gap(offset, at, reached, beyond, below if below >= 0 else now, proved)


def _insert(answers: array[int], timestamp: int, answer: FirstFrom) -> None:
    index = next((p for p in range(0, len(answers), _WIDTH) if answers[p] >= timestamp), len(answers))
    if answers[index : index + 1] == array("q", [timestamp]):
        del answers[index : index + _WIDTH]
    offset = answer.offset if answer.offset >= 0 else _NOWHERE
    answers[index:index] = array("q", (timestamp, offset, answer.timestamp))
