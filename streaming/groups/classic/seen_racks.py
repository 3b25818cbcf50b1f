"""What the rounds know of the racks of the replicas around a decision.

Racks matter where members have racks (KIP-881), and to a strategy of the user's own that looks at them. Unlike
partition counts they go up and down: a broker that is down is in no rack, and a leader that looks for metadata just
then sees fewer, for which a rack-aware client even rebalances. So all that rounds have seen is tried, and where racks
could change the result, what fits none of it may still fit what lay between two rounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assignors import PartitionRacks, Strategy, Subscription
from streaming.groups.config import GroupConfig
from streaming.groups.state import GroupState
from streaming.groups.topics import RacksSeen, TopicState
from streaming.records import MembershipRecord, TopicObservation

__all__ = ["NO_RACKS", "Looked", "SeenRacks", "newest_racks", "racks_of", "see_racks", "seen_racks"]

# A rolling restart of a large cluster changes them twice a broker; what is forgotten costs an `identical`, no more.
_MOST_KEPT = 16

# What is tried of one decision: each costs a recomputation per candidate and count.
_MOST_VIEWS = 8

# To none of the others, in any library, do racks matter.
_RACK_AWARE = frozenset({"range", "sticky", "cooperative-sticky"})

_View = Mapping[str, RacksSeen]


class Looked(Mapping[str, Sequence[Sequence[str]]]):
    """Racks that know whether anybody looked at them."""

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
    """What the rounds know of the racks of a decision's topics.

    Attributes:
        views: What they were, by topic, at each time that a leader may have looked: at the decision first, then after
            it, then before; no more than are tried. Topics that no round has told of are missing.
        told: Rounds have told those of all topics for as long as a leader may have known them. (One that looked before
            the first round may have seen in a rack what was down ever since.)
        seen: All that a leader may have looked at, of whatever topic, in a view or not.
        left_out: They have changed too often: there were more views.
    """

    views: tuple[_View, ...]
    told: bool
    seen: tuple[RacksSeen, ...] = ()
    left_out: bool = False

    def may_be_others(self, strategy: Strategy, members: Collection[Subscription]) -> bool:
        """Whether racks that no round has seen could change what a strategy of Kafka's gives these members.

        A broker that was down between two rounds takes racks away. Where no replica was seen in a rack of a member,
        that changes nothing.
        """
        wanted = {member.rack for member in members if member.rack}
        if not wanted or strategy.name not in _RACK_AWARE:
            return False
        return not self.told or any(
            not wanted.isdisjoint(of_partition) for entry in self.seen for of_partition in entry.sets
        )

    def any(self) -> bool:
        """Whether a replica was seen in any rack, or those of a topic are not known."""
        return not self.told or any(entry.sets for entry in self.seen)


NO_RACKS = SeenRacks(({},), told=False)
"""For a decision to which racks do not matter."""


def see_racks(known: TopicState, seen: TopicObservation, time: int, horizon: int) -> None:
    """Remember the racks that a round shows of a topic.

    Args:
        known: The topic's state.
        seen: What the round shows; of a topic that does not exist it tells nothing.
        time: The round's time, ms.
        horizon: What was replaced before is not needed any more.
    """
    if not seen.partitions:
        return
    sets, places = _packed(seen.racks)
    if known.racks and known.racks[-1].sets == sets and known.racks[-1].places == places:
        known.racks[-1].last = time
        return
    known.racks.append(RacksSeen(sets, places, time, time))
    # The newest before the horizon was still in force at it, so it stays.
    while len(known.racks) > _MOST_KEPT or (len(known.racks) > 2 and known.racks[1].last < horizon):
        del known.racks[0]


def seen_racks(state: GroupState, record: MembershipRecord, config: GroupConfig, topics: Collection[str]) -> SeenRacks:
    """What the rounds know of the racks of these topics around a decision."""
    now = record.record_time
    horizon = now - config.metadata_grace_ms
    known = {topic: state.topics[topic] for topic in topics if topic in state.topics}
    by_topic = {topic: of.racks for topic, of in known.items() if of.racks}
    changes = {entry.first for racks in by_topic.values() for entry in racks}
    later = sorted(time for time in changes if time > now)
    earlier = sorted((time for time in changes if horizon < time <= now), reverse=True)
    # Before each change there was what it replaced, the oldest at the horizon.
    times = [now, *later, *(time - 1 for time in earlier)]
    views: dict[tuple[int, ...], _View] = {}
    for time in times[:_MOST_VIEWS]:
        view = {topic: _at(racks, time) for topic, racks in by_topic.items()}
        views.setdefault(tuple(map(id, view.values())), view)
    seen = tuple([entry for racks in by_topic.values() for entry in racks[_place_at(racks, horizon) :]])
    # (Of a topic that does not exist there is nothing to tell.)
    told = all(of.racks and of.racks[0].first <= horizon for of in known.values() if of.racks or of.counts[-1].count)
    return SeenRacks(tuple(views.values()), told, seen, left_out=len(times) > _MOST_VIEWS)


def racks_of(view: _View, counts: Mapping[str, int]) -> PartitionRacks:
    """Racks of the replicas of so many partitions of each topic; topics of which not so many were seen are missing."""
    found = {topic: _unpacked(entry, counts[topic]) for topic, entry in view.items() if topic in counts}
    return {topic: racks for topic, racks in found.items() if racks is not None}


def newest_racks(state: GroupState, counts: Mapping[str, int]) -> PartitionRacks:
    """Racks of the replicas as the newest round shows them; topics of which they are not known are missing."""
    known = {topic: state.topics[topic].racks for topic in counts if topic in state.topics}
    return racks_of({topic: racks[-1] for topic, racks in known.items() if racks}, counts)


def _at(racks: Sequence[RacksSeen], time: int) -> RacksSeen:
    return racks[_place_at(racks, time)]


def _place_at(racks: Sequence[RacksSeen], time: int) -> int:
    return next((place for place in reversed(range(len(racks))) if racks[place].first <= time), 0)


def _packed(racks: Sequence[Sequence[str]] | None) -> tuple[tuple[tuple[str, ...], ...], bytes]:
    if racks is None:
        return (), b""
    sets: dict[tuple[str, ...], int] = {}
    place_of = {told: sets.setdefault(tuple(sorted(set(told))), len(sets)) for told in dict.fromkeys(racks)}
    places = map(place_of.__getitem__, racks)
    if len(sets) <= 1 << 8:
        return tuple(sets), bytes(places)
    return tuple(sets), np.fromiter(places, dtype=_width(len(sets)), count=len(racks)).tobytes()


def _unpacked(entry: RacksSeen, count: int) -> Sequence[tuple[str, ...]] | None:
    if not entry.sets:
        return ((),) * count
    places = np.frombuffer(entry.places, dtype=_width(len(entry.sets)))
    if places.size < count:
        return None
    return list(map(entry.sets.__getitem__, places[:count].tolist()))


def _width(sets: int) -> str:
    if sets <= 1 << 8:
        return "u1"
    return "<u2" if sets <= 1 << 16 else "<u4"
