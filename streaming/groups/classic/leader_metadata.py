"""The partition counts and racks that a group's leader may have known, by the rounds around its decision.

**Counts.** A strategy assigns every partition that the leader knows, so the assignment shows the count of each topic,
and the rounds around the decision show whether the topic had that count (`seen_counts`).

There are exceptions (`possible_counts`). `cooperative-sticky` holds back partitions that another member still owns, so
the topic may have more partitions than assigned. Java's sticky strategies leave a member its previous partitions even
if the topic has become smaller, so it may have fewer. A user's own strategy may leave any partition unassigned.

A record may contain any partition number up to 2**31 - 1, and assigning that many partitions costs the time and memory
of real ones. So a count far higher than rounds have seen is not tried.

**Racks** of the replicas matter if members have racks (KIP-881), and to a user's own strategy that uses them. Unlike
partition counts they change back and forth: a broker that is down has no rack, so a leader that fetches metadata just
then sees fewer racks, and rack-aware clients even rebalance because of it. So all racks that rounds have seen are
tried. If racks could change the result and none of them fits, the decision may still fit racks that existed between two
rounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from assignors import PartitionRacks, Strategy, Subscription, claimed_partitions
from streaming.groups.classic.membership import leader_counts
from streaming.groups.classic.state import ClassicDecision
from streaming.groups.context import GroupConfig
from streaming.groups.state import GroupState, RacksSeen, TopicState, counts_from
from streaming.records import TopicObservation

STICKY: Final = frozenset({"sticky", "cooperative-sticky"})
"""Strategies whose result depends on the members' previous partitions."""

COOPERATIVE: Final = "cooperative-sticky"

# A leader may know higher counts than the rounds have seen, for a topic created or enlarged since. A count that no
# round has seen never gives the verdict `identical`, so higher limits would gain little; lower ones would miss more
# misplaced partitions in topics that have just grown.
_TIMES_SEEN = 2
_BEYOND_SEEN = 100


@dataclass(frozen=True, slots=True)
class SeenCounts:
    """One topic's partition counts around a decision, as the rounds have seen them.

    Attributes:
        seen: Counts seen from the grace period before the decision to the first round after it.
        newest: The last of them.
        complete: Rounds have shown the same topic during the whole grace period before the decision. Counts only grow,
            so no count outside the range of `seen` was in force.
        leader: Lower bound of the leader's count.
    """

    seen: frozenset[int]
    newest: int
    complete: bool
    leader: int

    @property
    def ahead(self) -> bool:
        """Whether the leader knew more partitions than any round has seen."""
        return self.leader > max(self.seen)

    @property
    def impossible(self) -> bool:
        """Whether the leader's count was certainly never in force; one between two seen counts may have been."""
        return self.complete and not min(self.seen) <= self.leader <= max(self.seen)


def seen_counts(state: GroupState, decision: ClassicDecision, config: GroupConfig) -> dict[str, SeenCounts]:
    """The counts of each subscribed or assigned topic; topics that no round has shown are missing."""
    horizon, found = decision.earliest - config.metadata_grace_ms, {}
    for topic, leader in leader_counts(decision.record).items():
        known = state.topics.get(topic)
        if known is not None:
            complete = known.since <= horizon and known.renewed <= horizon
            found[topic] = SeenCounts(counts_from(known, horizon), known.counts[-1].count, complete, leader)
    return found


def is_far_beyond(count: int, seen: int) -> bool:
    """Whether a leader's count, of one topic or of all together, is too far above the rounds' to be tried."""
    return count > _TIMES_SEEN * seen + _BEYOND_SEEN


def possible_counts(
    strategy: Strategy, members: Collection[Subscription], shown: Mapping[str, int], seen: Mapping[str, Collection[int]]
) -> Iterator[dict[str, int]]:
    """Yield counts by topic that the leader may have known, those seen by rounds first.

    Args:
        strategy: The group's strategy; if it is neither sticky nor custom, only `shown` is possible.
        members: The members.
        shown: Per topic the highest assigned partition plus one.
        seen: Per topic the counts that rounds have seen around the decision.

    Yields:
        Nothing if all possible counts are far higher than rounds have seen.
    """
    for counts in product(*_options(strategy, members, shown, seen)):
        yield dict(zip(shown, counts, strict=True))


def _options(
    strategy: Strategy, members: Collection[Subscription], shown: Mapping[str, int], seen: Mapping[str, Collection[int]]
) -> Sequence[Sequence[int]]:
    """Possible counts of each topic."""
    likely = {topic: [] if is_far_beyond(count, max(seen[topic])) else [count] for topic, count in shown.items()}
    if strategy.custom:
        return [[*likely[topic], *(c for c in sorted(seen[topic]) if c > count)] for topic, count in shown.items()]
    if strategy.name not in STICKY:
        return list(likely.values())
    claimed = dict.fromkeys(shown, 0)
    for member in members:
        for topic, partitions in claimed_partitions(member):
            if topic in claimed:
                claimed[topic] = max(claimed[topic], max(partitions, default=-1) + 1)
    held_back = strategy.name == COOPERATIVE
    options = []
    for topic, count in shown.items():
        most = claimed[topic]
        others = [c for c in sorted(seen[topic]) if (held_back and count < c <= most) or c < count <= most]
        options.append([*likely[topic], *others] if count in seen[topic] else [*others, *likely[topic]])
    return options


# A rolling restart changes the racks twice per broker. An entry dropped too early may turn an `identical` into an
# `unverified`, nothing worse.
_MOST_KEPT = 16

# Most rack views to try for one decision: each costs one recomputation per candidate and combination of counts.
_MOST_VIEWS = 8

# No other built-in strategy uses racks, in any library.
_RACK_AWARE = frozenset({"range", "sticky", "cooperative-sticky"})

_View = Mapping[str, RacksSeen]


class WatchedRacks(Mapping[str, Sequence[Sequence[str]]]):
    """Racks that record in `at` whether a strategy has read them."""

    def __init__(self, racks: PartitionRacks) -> None:
        self._racks = racks
        self.at = False

    def __getitem__(self, topic: str) -> Sequence[Sequence[str]]:
        self.at = True
        return self._racks[topic]

    def __iter__(self) -> Iterator[str]:
        self.at = True
        return iter(self._racks)

    def __len__(self) -> int:
        self.at = True
        return len(self._racks)


@dataclass(frozen=True, slots=True)
class SeenRacks:
    """The racks of a decision's topics, as the rounds have seen them.

    Attributes:
        views: Racks by topic at each time when the leader may have fetched metadata: first at the decision, then after
            it, then before it, up to the number that is tried. Topics whose racks no round has shown are missing.
        told: Rounds have shown the racks of all topics for as long as the leader may have known them. (Metadata fetched
            before the first round may include a broker that has been down since.)
        seen: All racks that the leader may have seen, of any topic, whether in a view or not.
        left_out: There were more views than are tried, because the racks changed too often.
    """

    views: tuple[_View, ...]
    told: bool
    seen: tuple[RacksSeen, ...] = ()
    left_out: bool = False

    def may_be_others(self, strategy: Strategy, members: Collection[Subscription]) -> bool:
        """Whether racks that no round has seen could change the result of a built-in strategy for these members.

        A broker that was down between two rounds only removes racks, which matters only if a replica was seen in the
        rack of a member.
        """
        wanted = {member.rack for member in members if member.rack}
        if not wanted or strategy.name not in _RACK_AWARE:
            return False
        return not self.told or any(
            not wanted.isdisjoint(of_partition) for entry in self.seen for of_partition in entry.sets
        )

    def any(self) -> bool:
        """Whether a replica was seen in any rack, or the racks of a topic are unknown."""
        return not self.told or any(entry.sets for entry in self.seen)


NO_RACKS = SeenRacks(({},), told=False)
"""For decisions that do not depend on racks."""


def see_racks(known: TopicState, seen: TopicObservation, time: int, horizon: int) -> None:
    """Remember the racks that a round shows for a topic.

    Args:
        known: The topic's state.
        seen: The topic in the round; ignored if the topic does not exist.
        time: The round's time, ms.
        horizon: Racks replaced before this time, ms, are dropped.
    """
    if not seen.partitions:
        return
    sets, indexes = _packed(seen.racks)
    if known.racks and known.racks[-1].sets == sets and known.racks[-1].places == indexes:
        known.racks[-1].last = time
        return
    known.racks.append(RacksSeen(sets, indexes, time, time))
    # Keep the newest one before the horizon: it was still in force at the horizon.
    while len(known.racks) > _MOST_KEPT or (len(known.racks) > 2 and known.racks[1].last < horizon):
        del known.racks[0]


def seen_racks(state: GroupState, decision: ClassicDecision, config: GroupConfig, topics: Collection[str]) -> SeenRacks:
    """The racks of these topics around a decision."""
    now = decision.record.record_time
    horizon = decision.earliest - config.metadata_grace_ms
    known = {topic: state.topics[topic] for topic in topics if topic in state.topics}
    by_topic = {topic: of.racks for topic, of in known.items() if of.racks}
    changes = {entry.first for racks in by_topic.values() for entry in racks}
    later = sorted(time for time in changes if time > now)
    earlier = sorted((time for time in changes if horizon < time <= now), reverse=True)
    # One view just before each change shows what it replaced; the oldest is the view at the horizon.
    times = [now, *later, *(time - 1 for time in earlier)]
    views: dict[tuple[int, ...], _View] = {}
    for time in times[:_MOST_VIEWS]:
        view = {topic: racks[_place_at(racks, time)] for topic, racks in by_topic.items()}
        views.setdefault(tuple(map(id, view.values())), view)
    seen = tuple([entry for racks in by_topic.values() for entry in racks[_place_at(racks, horizon) :]])
    # A topic that does not exist has no racks to show.
    told = all(of.racks and of.racks[0].first <= horizon for of in known.values() if of.racks or of.counts[-1].count)
    return SeenRacks(tuple(views.values()), told, seen, left_out=len(times) > _MOST_VIEWS)


def racks_of(view: _View, counts: Mapping[str, int]) -> PartitionRacks:
    """Racks of the replicas for the given partition counts; topics with fewer partitions seen are missing."""
    found = {topic: _unpacked(entry, counts[topic]) for topic, entry in view.items() if topic in counts}
    return {topic: racks for topic, racks in found.items() if racks is not None}


def newest_racks(state: GroupState, counts: Mapping[str, int]) -> PartitionRacks:
    """Racks of the replicas as the newest round shows them; topics whose racks are unknown are missing."""
    known = {topic: state.topics[topic].racks for topic in counts if topic in state.topics}
    return racks_of({topic: racks[-1] for topic, racks in known.items() if racks}, counts)


def _place_at(racks: Sequence[RacksSeen], time: int) -> int:
    return next((at for at in reversed(range(len(racks))) if racks[at].first <= time), 0)


def _packed(racks: Sequence[Sequence[str]] | None) -> tuple[tuple[tuple[str, ...], ...], bytes]:
    if racks is None:
        return (), b""
    sets: dict[tuple[str, ...], int] = {}
    index_of = {told: sets.setdefault(tuple(sorted(set(told))), len(sets)) for told in dict.fromkeys(racks)}
    indexes = np.fromiter(map(index_of.__getitem__, racks), dtype=_width(sets), count=len(racks))
    return tuple(sets), indexes.tobytes()


def _unpacked(entry: RacksSeen, count: int) -> Sequence[tuple[str, ...]] | None:
    if not entry.sets:
        return ((),) * count
    indexes = np.frombuffer(entry.places, dtype=_width(entry.sets))
    if indexes.size < count:
        return None
    return list(map(entry.sets.__getitem__, indexes[:count].tolist()))


def _width(sets: Sized) -> np.dtype[Any]:
    """The narrowest little-endian number that holds the index of each set."""
    return np.min_scalar_type(max(0, len(sets) - 1)).newbyteorder("<")
