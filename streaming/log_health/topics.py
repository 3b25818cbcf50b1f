"""The topics of the cluster: one row per look, with rates over the time since the look before.

A topic has a key of its own, because it belongs to no group: groups that read it are named in what the probe has seen,
so that a replay gives the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from streaming.groups import Rows, TopicRow
from streaming.records import ClusterTopicObservation
from streaming.times import DAY_MS, day_of

# Elapsed time stands still in outages while records arrive: with a larger difference between it and the brokers' clock
# there is no rate (`groups/load/rates.py` has the same rule).
_CLOCKS_PERCENT: Final = 1

# How long looks with fewer partitions under the same topic id are not believed. A topic never loses partitions, so they
# come from a broker with old metadata, which it has while it is cut off from its controller. If such an outage is
# longer, the partitions are new again after it, and all that they hold counts as just produced. It has an end, because
# anybody who may write to the events topic can make up a look with too many: until then the topic has no rates.
_OLD_METADATA_MS: Final = DAY_MS

# The tables hold int64, which offsets of several partitions can exceed together.
_MOST: Final = 2**63 - 1

_UNKNOWN: Final = -1


class ClusterTopicState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What the next look at a topic is compared with.

    Attributes:
        look: The newest look; None before the first. Looks that show fewer partitions of the same topic leave it as it
            is, for a day.
        nobody_since: Time of the first look at which certainly nobody read it, ms, while no look since has seen a
            reader; None otherwise.
    """

    look: ClusterTopicObservation | None = None
    nobody_since: int | None = None


def advance_topic(
    state: ClusterTopicState | None, topic: str, looks: Sequence[ClusterTopicObservation], cluster: str
) -> tuple[ClusterTopicState | None, Rows]:
    """Write a row of `topics` per look at a topic, and a closing row when it is gone.

    Args:
        state: State so far; None for a topic that has none.
        topic: Its name.
        looks: In any order; they are processed by round.
        cluster: Configured name of the cluster.

    Returns:
        The state, None when the topic is gone, and the rows.
    """
    rows = Rows()
    for look in sorted(looks, key=lambda one: one.round):
        if look.gone is not None:
            # Without an open row there is nothing to end.
            if state is not None:
                rows.topics.append(_closing(topic, look, cluster))
            state = None
            continue
        before = state.look if state is not None else None
        since = None if state is None or _is_another(before, look) else state.nobody_since
        nobody = _read_by_nobody(look)
        if nobody is not None:
            since = (look.time if since is None else since) if nobody else None
        # This look's clock may be behind, or the first one's may have been ahead.
        shown = min(since, look.time) if since is not None and nobody else None
        rows.topics.append(_topic_row(topic, before, look, shown, cluster))
        keeps = before is not None and _lacks_partitions(before, look) and _passed(before, look) < _OLD_METADATA_MS
        state = ClusterTopicState(before if keeps else look, since)
    return state, rows


def _topic_row(
    topic: str, before: ClusterTopicObservation | None, look: ClusterTopicObservation, since: int | None, cluster: str
) -> TopicRow:
    seconds, reason = _window(before, look)
    produced = _grown(before, look) if before is not None and reason is None else None
    is_whole = not _lacks_partitions(before, look)
    log_bytes = _log_bytes(look) if is_whole else None
    of_bytes, bytes_reason = None, look.unsized or ("size_unknown" if log_bytes is None else reason)
    if bytes_reason is None and before is not None:
        of_bytes = _least_bytes(before, look)
        bytes_reason = "first_look" if of_bytes is None else None
    nobody = _read_by_nobody(look)
    return TopicRow(
        cluster=cluster,
        topic=topic,
        round=look.round,
        round_time=look.time,
        event_date=day_of(look.time),
        ended=False,
        topic_id=look.topic_id,
        partitions=len(look.end),
        offline_partitions=look.leaders.count(_UNKNOWN),
        records_max=_records(look) if is_whole else None,
        produced_per_second=None if produced is None else produced / seconds,
        produced_reason=reason or ("offset_unknown" if produced is None else None),
        log_bytes=log_bytes,
        produced_bytes_per_second_min=None if of_bytes is None else of_bytes / seconds,
        bytes_reason=bytes_reason,
        rates_over_seconds=None if reason else seconds,
        groups=look.groups,
        readers=look.readers,
        read_by_nobody=nobody,
        read_by_nobody_since=since,
        read_by_nobody_reason=look.hidden if nobody is None else None,
    )


def _closing(topic: str, look: ClusterTopicObservation, cluster: str) -> TopicRow:
    return TopicRow(
        cluster=cluster,
        topic=topic,
        round=look.round,
        round_time=look.time,
        event_date=day_of(look.time),
        ended=True,
        ended_reason=look.gone,
    )


def _read_by_nobody(look: ClusterTopicObservation) -> bool | None:
    """Whether no group reads it; None if a group may that the probe does not see."""
    if look.groups:
        return False
    if look.hidden is None:
        return True
    return None


def _is_another(before: ClusterTopicObservation | None, look: ClusterTopicObservation) -> bool:
    """Whether the topic was deleted and created again since the look before, as far as ids and partitions tell."""
    if before is None:
        return False
    if before.topic_id is not None and look.topic_id is not None:
        return before.topic_id != look.topic_id
    return len(look.end) < len(before.end)


def _lacks_partitions(before: ClusterTopicObservation | None, look: ClusterTopicObservation) -> bool:
    """Whether it shows fewer partitions than the look before, of the same topic: then its broker has old metadata."""
    return before is not None and len(look.end) < len(before.end) and not _is_another(before, look)


def _window(before: ClusterTopicObservation | None, look: ClusterTopicObservation) -> tuple[float, str | None]:
    """Seconds since the look before; why rates over them would be wrong."""
    if before is None:
        return 0.0, "first_look"
    if _is_another(before, look):
        return 0.0, "recreated"
    if _lacks_partitions(before, look):
        return 0.0, "offset_unknown"
    passed = _passed(before, look)
    if passed <= 0 or 100 * abs(look.time - before.time - passed) > _CLOCKS_PERCENT * passed:
        return 0.0, "missing_rounds"
    return passed / 1000, None


def _passed(before: ClusterTopicObservation, look: ClusterTopicObservation) -> int:
    """Time between two looks, ms; by the brokers' clocks where elapsed time is unknown."""
    if min(look.elapsed, before.elapsed) >= 0:
        return look.elapsed - before.elapsed
    return look.time - before.time


def _grown(before: ClusterTopicObservation, look: ClusterTopicObservation) -> int | None:
    """Offsets by which all high watermarks have grown; None if one is unknown or went back."""
    # Partitions that were added since began at 0.
    ends = [*before.end, *[0] * (len(look.end) - len(before.end))]
    if any(not 0 <= first <= last for first, last in zip(ends, look.end, strict=True)):
        return None
    return sum(look.end) - sum(ends)


def _least_bytes(before: ClusterTopicObservation, look: ClusterTopicObservation) -> int | None:
    """Bytes by which logs have grown, so at least what was written to them; None without sizes at both looks.

    Retention and compaction only make a log smaller. A partition whose leader has moved counts nothing: the copies of
    two brokers differ in size.
    """
    if before.sizes is None or look.sizes is None:
        return None
    added = len(look.sizes) - len(before.sizes)
    sizes, leaders = [*before.sizes, *[0] * added], [*before.leaders, *look.leaders[len(before.leaders) :]]
    return sum(
        max(last - first, 0)
        for first, last, was, leads in zip(sizes, look.sizes, leaders, look.leaders, strict=True)
        if was == leads and first >= 0
    )


def _log_bytes(look: ClusterTopicObservation) -> int | None:
    if look.sizes is None or _UNKNOWN in look.sizes:
        return None
    return min(sum(look.sizes), _MOST)


def _records(look: ClusterTopicObservation) -> int | None:
    if _UNKNOWN in look.end or _UNKNOWN in look.start:
        return None
    return min(sum(max(end - start, 0) for end, start in zip(look.end, look.start, strict=True)), _MOST)
