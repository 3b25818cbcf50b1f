"""How many records are produced and consumed per second, per partition, in windows that follow each other.

A window is a heartbeat long. It begins at the round at which the one before has ended, and its rates are differences of
high watermarks and of committed offsets between its two ends, so only the ends cost anything. They are kept until the
next window has ended. For a partition whose difference would not be what was produced or consumed, because it went
back, was replaced, was lost from sight or skipped records that were deleted, the window has no rate.

Elapsed time stands still in outages, while records arrive. So a window is only believed if the brokers' clock says that
it took as long as elapsed time does.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from assignors import Load
from streaming.groups.context import GroupConfig
from streaming.groups.lag.partitions import offsets_of
from streaming.groups.lag.state import MARKER, PartitionState
from streaming.groups.state import GroupState, LoadState, TopicCounts, TopicStart
from streaming.records import GroupObservation, TopicObservation

# In `TopicStart`: there is none; it must not be compared.
_NONE: Final = -1
_VOID: Final = -2

# Offsets below this fit in four bytes.
_NARROW: Final = 2**31

# Lengths of a window by the two clocks may differ by this share of it: then its rates are wrong by no more.
_CLOCKS_PERCENT: Final = 1

# A window that took more heartbeats than this (the group's coordinator was down) is no longer about the present, unless
# it is short: heartbeats may be set shorter than the time between two rounds.
_MOST_HEARTBEATS: Final = 2
_SHORT_MS: Final = 60_000


def rates_of(load: LoadState | None, topic: str) -> list[tuple[float | None, float | None]]:
    """Records produced and consumed per second, by partition; each None if unknown, and no entry if both are."""
    if load is None or topic not in load.counts:
        return []
    # One pass for all: asked for one at a time they cost several times as much.
    length = load.length
    return [
        (produced * 1000 / length if produced >= 0 else None, consumed * 1000 / length if consumed >= 0 else None)
        for produced, consumed in zip(*counts_of(load, topic), strict=True)
    ]


def counts_of(load: LoadState, topic: str) -> tuple[array[int], array[int]]:
    """Records produced and consumed in the newest ended window, per partition; -1 where unknown, empty if all are."""
    counts = load.counts.get(topic)
    if counts is None:
        return (array("q"), array("q"))
    return (_unpacked(counts.produced), _unpacked(counts.consumed))


def known_load(load: LoadState | None, counts: Mapping[str, int]) -> Load | None:
    """Records of the newest ended window in all partitions of these topics; None where they are not known, or none.

    Args:
        load: The group's load.
        counts: Partition counts by topic.
    """
    if load is None or not load.length:
        return None
    found = {topic: counts_of(load, topic)[0][:count] for topic, count in counts.items()}
    if any(len(found[topic]) < count or min(found[topic], default=0) < 0 for topic, count in counts.items()):
        return None
    if any(map(any, found.values())):
        return found
    return None


def end_window(
    state: GroupState, observation: GroupObservation, config: GroupConfig, subscribed: AbstractSet[str] | None
) -> bool:
    """End the group's window if it is a heartbeat long, and begin the next. Called before the round's lag is judged.

    Args:
        state: The group's state, including this round's topics.
        observation: The round.
        config: Settings; a window is a heartbeat long, or half of one if it ends while the group is idle.
        subscribed: Topics that count in the sums; None for all.

    Returns:
        Whether a window begins at this round.
    """
    load, elapsed = state.load, observation.elapsed_time
    if load is None:
        load = state.load = LoadState(elapsed, observation.time)
        load.starts = _starts(state, observation)
        return True
    passed = elapsed - load.since
    if 0 <= passed < config.repeated_after_ms(observation):
        if load.produced_per_second is None and load.counts:
            load.produced_per_second, load.consumed_per_second = _sums(load, subscribed)
        return False
    is_sure = (
        0 < passed <= max(_MOST_HEARTBEATS * config.heartbeat_ms, _SHORT_MS)
        and 100 * abs(observation.time - load.since_time - passed) <= _CLOCKS_PERCENT * passed
    )
    load.length, load.counts = (passed, _counts(state, load, observation)) if is_sure else (0, {})
    load.produced_per_second, load.consumed_per_second = _sums(load, subscribed)
    load.since, load.since_time = elapsed, observation.time
    load.starts = _starts(state, observation)
    return True


def void(load: LoadState, topic: str, partitions: Collection[int], *, of_log: Collection[int]) -> None:
    """Give partitions no rate in the present window.

    Args:
        load: The group's load.
        topic: Topic.
        partitions: Partitions whose committed offset is in doubt.
        of_log: Those whose log is in doubt as well.
    """
    start = load.starts.get(topic)
    if start is not None:
        start.committed = _with(start.committed, partitions)
        if of_log:
            start.ends = _with(start.ends, of_log)


def void_topic(load: LoadState | None, topic: str) -> None:
    """Give a topic no rates in the present window, nor those of the window before, which were another topic's."""
    if load is not None:
        load.starts.pop(topic, None)
        if load.counts.pop(topic, None) is not None:
            # `end_window` sums up again, without it.
            load.produced_per_second = load.consumed_per_second = None


def is_doubtful(known: PartitionState, end: int | None) -> tuple[bool, bool]:
    """Whether a round forbids a rate of the window that it is in.

    Args:
        known: The partition, with the row of the round before.
        end: High watermark at the round; None if unknown.

    Returns:
        For what was produced, because the high watermark is unknown or went back; for what was consumed, because of
        that, or because the committed offset went back, was deleted or cannot be read, or records below it were deleted
        unread.
    """
    before = known.row[1] if known.row is not None else None
    log = end is None or (before is not None and end < before)
    is_cut = 0 <= known.committed < known.start and known.start - known.position > MARKER
    return log, log or is_cut or known.rewound_by > 0 or known.offset_deleted or known.unreadable


def _starts(state: GroupState, observation: GroupObservation) -> dict[str, TopicStart]:
    starts = {}
    for seen in observation.topics:
        if seen.partitions:
            partitions = state.partitions.get(seen.topic, {})
            committed = array("q", [_committed(partitions.get(p), seen) for p in range(seen.partitions)])
            ends = offsets_of(seen.high_watermarks, seen.partitions)
            starts[seen.topic] = TopicStart(seen.topic_id, _packed(ends), _packed(committed))
    return starts


def _committed(known: PartitionState | None, seen: TopicObservation) -> int:
    if known is None:
        return _NONE
    # A commit names its topic; whether it is the one that this round shows is settled only when lag is judged.
    is_of_it = known.of_topic is None or (known.of_topic and seen.topic_id in {None, known.of_topic})
    if is_of_it:
        return known.position if known.committed >= 0 else _NONE
    return _VOID


def _counts(state: GroupState, load: LoadState, observation: GroupObservation) -> dict[str, TopicCounts]:
    counts = {}
    for seen in observation.topics:
        start = load.starts.get(seen.topic)
        if start is not None and _goes_on(start, seen):
            counts[seen.topic] = _of_topic(start, state.partitions.get(seen.topic, {}), seen)
    return counts


def _goes_on(start: TopicStart, seen: TopicObservation) -> bool:
    if start.topic_id is not None and seen.topic_id is not None and start.topic_id != seen.topic_id:
        return False
    return (seen.partitions or 0) >= len(_unpacked(start.ends))


def _of_topic(start: TopicStart, partitions: Mapping[int, PartitionState], seen: TopicObservation) -> TopicCounts:
    ends_before, committed_before = _unpacked(start.ends), _unpacked(start.committed)
    ends = offsets_of(seen.high_watermarks, len(ends_before))
    produced, consumed = array("q"), array("q")
    for partition, end in enumerate(ends):
        known = partitions.get(partition)
        of_log, of_commits = is_doubtful(known, end if end >= 0 else None) if known is not None else (end < 0, True)
        committed = _committed(known, seen)
        produced.append(_grown(ends_before[partition], end) if not of_log else -1)
        consumed.append(_grown(committed_before[partition], committed) if not of_commits and committed <= end else -1)
    return TopicCounts(_packed(produced), _packed(consumed))


def _grown(before: int, now: int) -> int:
    if 0 <= before <= now:
        return now - before
    return -1


def _sums(load: LoadState, subscribed: AbstractSet[str] | None) -> tuple[float | None, float | None]:
    topics = [counts_of(load, topic) for topic in load.counts if subscribed is None or topic in subscribed]
    produced = [count for of_log, _ in topics for count in of_log if count >= 0]
    consumed = [count for _, of_commits in topics for count in of_commits if count >= 0]
    return (
        sum(produced) * 1000 / load.length if produced else None,
        sum(consumed) * 1000 / load.length if consumed else None,
    )


def _with(packed: bytes, partitions: Collection[int]) -> bytes:
    offsets = _unpacked(packed)
    for partition in partitions:
        if 0 <= partition < len(offsets):
            offsets[partition] = _VOID
    return _packed(offsets)


def _packed(offsets: Sequence[int]) -> bytes:
    """Offsets in four bytes each where all fit, else in eight: the first byte says so. There are very many of them."""
    narrow = all(-_NARROW <= offset < _NARROW for offset in offsets)
    stored = array("i", offsets) if narrow else array("q", offsets)
    return stored.itemsize.to_bytes() + stored.tobytes()


def _unpacked(packed: bytes) -> array[int]:
    stored = array("i" if packed[0] == array("i").itemsize else "q")
    stored.frombytes(packed[1:])
    return stored
