"""Random lives of one group in log and rounds, and their division into batches.

A stream is a list of steps in log order. A step is indivisible: one record, one round, or the records of one append of
the coordinator. `batches` folds each batch like the codec: windows end only at rounds and at membership records.
Records from the time in which the broker assigns are bytes, and the codec itself reads them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import msgspec
from hypothesis import strategies as st

from streaming.records import CommitWindow, GroupInput, GroupObservation, Member, TopicPartitions, merge_windows
from tests.groups.build import (
    GROUP,
    MINUTE,
    SECOND,
    START,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_topic,
)
from tests.groups.build import make_tombstone as make_membership_tombstone
from tests.offsets_log.compacting import inputs_of
from tests.offsets_log.written import (
    current_assignment,
    group_epoch,
    member_metadata,
    modern_value,
    other_key,
    target_assignment,
)


@dataclass(frozen=True)
class Logged:
    """A record of a group that the broker assigns, as the broker writes it."""

    record: int
    key: bytes
    value: bytes | None

    @property
    def time(self) -> int:
        return START + self.record * SECOND


Step = tuple[GroupInput | Logged, ...]

TOPICS = ("orders", "payments")
_IDS = {topic: bytes([number]) * 16 for number, topic in enumerate(TOPICS)}
_FIRST = {topic: base64.urlsafe_b64encode(of).decode().rstrip("=") for topic, of in _IDS.items()}
RACKS = (None, None, "r1", "r2", "")
STRATEGIES = ("range", "range", "roundrobin", "cooperative-sticky", "sticky", "house-blend")


@dataclass
class _Group:
    """The coordinator's knowledge, as far as needed for plausible streams."""

    record: int = 0
    generation: int = 0
    members: tuple[Member, ...] = ()
    targets: dict[str, TopicPartitions] = field(default_factory=dict)
    protocol: str = "range"
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOPICS, 3))
    steps: list[Step] = field(default_factory=list)

    def put(self, *inputs: GroupInput | Logged) -> None:
        self.steps.append(inputs)

    def log(self, key_type: int, value: bytes | None, part: str | None = None) -> Logged:
        return Logged(self.next(), other_key(key_type, GROUP, part), value)

    def next(self) -> int:
        self.record += 1
        return self.record


def _rebalance(draw: st.DrawFn, group: _Group) -> None:
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True))
    group.generation += draw(st.sampled_from((1, 1, 1, 2, 5, -3)))
    group.generation = max(group.generation, 1)
    group.protocol = draw(st.sampled_from(STRATEGIES))
    topics = TOPICS[: draw(st.integers(1, 2))]
    assigned: dict[str, dict[str, list[int]]] = {name: {} for name in names}
    for topic in topics:
        for partition in range(group.counts[topic]):
            owner = draw(st.sampled_from((names[partition % len(names)], names[partition % len(names)], names[0], "")))
            if owner:
                assigned[owner].setdefault(topic, []).append(partition)
    group.members = tuple(
        make_member(
            f"{name}-1",
            topics,
            assigned[name],
            group_instance_id=f"static-{name}" if name in "cd" else None,
            rack=draw(st.sampled_from(RACKS)),
            undecodable="subscription: cut short" if draw(st.integers(0, 30)) == 0 else None,
        )
        for name in names
    )
    group.put(make_record(group.next(), group.members, generation=group.generation, protocol=group.protocol))


def _static_return(draw: st.DrawFn, group: _Group) -> None:
    if group.members:
        which = draw(st.integers(0, len(group.members) - 1))
        changed = list(group.members)
        changed[which] = msgspec.structs.replace(changed[which], member_id=changed[which].member_id + "'")
        group.members = tuple(changed)
        group.put(make_record(group.next(), group.members, generation=group.generation, protocol=group.protocol))


def _empty(_: st.DrawFn, group: _Group) -> None:
    group.generation += 1
    group.members = ()
    group.put(make_record(group.next(), generation=group.generation))


def _created(_: st.DrawFn, group: _Group) -> None:
    group.generation = 0
    group.members = ()
    group.put(make_record(group.next(), generation=0, protocol_type=""))


def _commit(draw: st.DrawFn, group: _Group) -> None:
    for _ in range(draw(st.integers(1, 4))):
        offset = draw(st.one_of(st.integers(0, 200), st.none()))
        topic, partition = draw(st.sampled_from(TOPICS)), draw(st.integers(0, 3))
        window = make_commit(group.next(), offset, topic=topic, partition=partition)
        if offset is not None:
            window = msgspec.structs.replace(window, topic_id=draw(st.sampled_from((None, _FIRST[topic], "second"))))
        group.put(window)


def _delete(draw: st.DrawFn, group: _Group) -> None:
    if draw(st.booleans()):
        for topic in TOPICS:
            for partition in range(4):
                group.put(make_commit(group.next(), None, topic=topic, partition=partition))
    group.put(make_membership_tombstone(group.next()))
    group.members = ()
    _end_append(group)


def _upgrade(_: st.DrawFn, group: _Group) -> None:
    """A consumer of the new protocol joins: the classic group ends, and its members are converted."""
    tombstone = make_membership_tombstone(group.next())
    carried = [
        group.log(
            5,
            member_metadata(m.topics or (), instance_id=m.group_instance_id, rack=m.rack, protocols=[group.protocol]),
            m.member_id,
        )
        for m in group.members
    ]
    epoch = group.log(3, group_epoch(group.generation))
    group.targets = {m.member_id: m.assigned or () for m in group.members}
    group.put(tombstone, *carried, epoch, *_target(group), *_reconciled(group))


def _join(draw: st.DrawFn, group: _Group) -> None:
    """A member of the new protocol joins; the target may follow, and members may reach it before more happens."""
    name = draw(st.sampled_from("mnop"))
    group.generation += 1
    topics = TOPICS[: draw(st.integers(1, 2))]
    group.put(group.log(5, member_metadata(topics), name), group.log(3, group_epoch(group.generation)))
    names = [*dict.fromkeys((*group.targets, name))]
    if draw(st.integers(0, 3)):
        owners = {(topic, p): draw(st.sampled_from(names)) for topic in topics for p in range(group.counts[topic])}
        group.targets = {
            member: tuple((t, tuple(p for p in range(6) if owners.get((t, p)) == member)) for t in topics)
            for member in names
        }
        group.put(*_target(group))
    for record in _reconciled(group) if draw(st.booleans()) else ():
        group.put(record)


def _leave(draw: st.DrawFn, group: _Group) -> None:
    if group.targets:
        name = draw(st.sampled_from(sorted(group.targets)))
        del group.targets[name]
        group.generation += 1
        gone = [group.log(key_type, None, name) for key_type in (8, 7, 5)]
        group.put(*gone, group.log(3, group_epoch(group.generation)))


def _downgrade(_: st.DrawFn, group: _Group) -> None:
    tombstones = [group.log(key_type, None, name) for key_type in (8, 7) for name in group.targets]
    tombstones += [group.log(6, None), *(group.log(5, None, name) for name in group.targets), group.log(3, None)]
    group.targets = {}
    group.generation += 4
    record = make_record(group.next(), group.members, generation=group.generation, protocol=group.protocol)
    group.put(*tombstones, record)


def _target(group: _Group) -> list[Logged]:
    """The target of an epoch, and the record that completes it."""
    targets = [group.log(7, target_assignment(_by_id(of)), name) for name, of in group.targets.items()]
    return [*targets, group.log(6, group_epoch(group.generation))]


def _reconciled(group: _Group) -> list[Logged]:
    return [group.log(8, current_assignment(group.generation, _by_id(of)), name) for name, of in group.targets.items()]


def _by_id(partitions: TopicPartitions) -> Mapping[bytes, Sequence[int]]:
    return {_IDS[topic]: of for topic, of in partitions if of}


def _other(draw: st.DrawFn, group: _Group) -> None:
    """One record of any kind of group, or its tombstone, at an unexpected place."""
    key_type = draw(st.sampled_from((3, 5, 8, 11, 17)))
    part = "m" if key_type in {5, 8} else None
    group.put(group.log(key_type, None if draw(st.booleans()) else modern_value(key_type), part))
    _end_append(group)


def _topics_change(draw: st.DrawFn, group: _Group) -> None:
    topic = draw(st.sampled_from(TOPICS))
    group.counts[topic] = draw(st.integers(0, 6))


def _round(draw: st.DrawFn, group: _Group) -> None:
    topics = [
        make_topic(
            topic,
            group.counts[topic] or None,
            end=draw(st.integers(0, 250)),
            topic_id=draw(st.sampled_from((_FIRST[topic], _FIRST[topic], _FIRST[topic], "second", None))),
            racks=_racks(draw, group.counts[topic]),
        )
        for topic in TOPICS
        if draw(st.integers(0, 5))
    ]
    position = group.record + 1
    held = START if draw(st.integers(0, 8)) == 0 else None
    state = draw(st.sampled_from(("Stable", "Empty", None)))
    kind = draw(st.sampled_from(("classic", "classic", "consumer", None)))
    group.put(_at(group, make_observation(position, *topics, held_since=held, state=state, group_type=kind)))


def _racks(draw: st.DrawFn, partitions: int) -> tuple[tuple[str, ...], ...] | None:
    """Racks of two brokers, of one that is up, or None without racks."""
    up = draw(st.sampled_from((None, ("r1", "r2"), ("r1",))))
    return None if up is None else tuple(up[partition % len(up) :] for partition in range(partitions))


def _gone(draw: st.DrawFn, group: _Group) -> None:
    reason = draw(st.sampled_from(("deleted", "filtered")))
    group.put(_at(group, make_observation(group.record + 1, gone=reason, state=None)))


def _end_append(group: _Group) -> None:
    """Let a record of another group follow: a move between protocols is one append, with none inside."""
    group.record += 1


def _pause(draw: st.DrawFn, group: _Group) -> None:
    group.record += draw(st.sampled_from((1, 7, 400, 900)))


def _at(group: _Group, observation: GroupObservation) -> GroupObservation:
    """The observation with its own number and time, also where the log did not move."""
    rounds = sum(isinstance(item, GroupObservation) for step in group.steps for item in step)
    return msgspec.structs.replace(observation, round=rounds, time=START + group.record * SECOND + rounds)


def _new_protocol(draw: st.DrawFn, group: _Group) -> None:
    """A period under the new protocol, and perhaps a return."""
    _upgrade(draw, group)
    for action in draw(st.lists(st.sampled_from((_join, _join, _leave, _commit, _round)), min_size=1, max_size=6)):
        action(draw, group)
    if draw(st.booleans()):
        _downgrade(draw, group)


_ACTIONS = (
    _rebalance,
    _rebalance,
    _static_return,
    _empty,
    _created,
    _commit,
    _commit,
    _commit,
    _delete,
    _new_protocol,
    _new_protocol,
    _join,
    _leave,
    _downgrade,
    _other,
    _topics_change,
    _round,
    _round,
    _round,
    _gone,
    _pause,
)


@st.composite
def watched_streams(draw: st.DrawFn, actions: int = 25) -> list[Step]:
    """A life of at most `actions` actions without a long pause, with a round after each."""
    group = _Group()
    for action in draw(st.lists(st.sampled_from([a for a in _ACTIONS if a is not _pause]), max_size=actions)):
        action(draw, group)
        _round(draw, group)
    return group.steps


@st.composite
def steady_streams(draw: st.DrawFn, rounds: int = 20) -> list[Step]:
    """A life in which offsets mostly grow, with a round every ten seconds and now and then something that breaks it."""
    group, end, committed = _Group(), [1_000, 1_000, 1_000], [0, 0, 0]
    _rebalance(draw, group)
    for _ in range(draw(st.integers(3, rounds))):
        start = group.record
        end = [offset + draw(st.integers(0, 9)) for offset in end]
        for partition in draw(st.sets(st.integers(0, 2))):
            committed[partition] += draw(st.sampled_from((0, 5, 5, 80, -7)))
            window = make_commit(group.next(), max(0, committed[partition]), partition=partition)
            group.put(msgspec.structs.replace(window, topic_id=draw(st.sampled_from(("first", "first", None)))))
        what = draw(st.sampled_from((*"nnnnnnnnnn", "rebalance", "unknown", "cut back", "recreated", "away")))
        if what == "rebalance":
            _rebalance(draw, group)
        group.record = start + 10
        seen = [draw(st.integers(0, 1_000)) if what == "cut back" else offset for offset in end]
        topic = make_topic(
            end=[-1 if what == "unknown" else offset for offset in seen],
            topic_id="second" if what == "recreated" else "first",
        )
        group.put(_at(group, make_observation(group.record + 1, *(() if what == "away" else (topic,)))))
    return group.steps


@st.composite
def streams(draw: st.DrawFn, actions: int = 25) -> list[Step]:
    """A life of at most `actions` actions, followed by steps that reveal all of the state."""
    group = _Group()
    for action in draw(st.lists(st.sampled_from(_ACTIONS), max_size=actions)):
        action(draw, group)
    for epilogue in (_commit, _round, _rebalance, _commit, _round):
        epilogue(draw, group)
    group.record += 20 * MINUTE // SECOND
    for epilogue in (_round, _gone):
        epilogue(draw, group)
    return group.steps


def batches(steps: Sequence[Step], cuts: Iterable[int]) -> list[list[GroupInput]]:
    """The inputs of each batch when batches end before the steps at `cuts`."""
    bounds = [0, *sorted(set(cuts)), len(steps)]
    return [_folded(steps[start:stop]) for start, stop in pairwise(bounds)]


def _folded(steps: Sequence[Step]) -> list[GroupInput]:
    inputs: list[GroupInput] = []
    windows: dict[tuple[str, int], CommitWindow] = {}

    def close() -> None:
        inputs.extend(windows.values())
        windows.clear()

    for item in (item for step in steps for item in step):
        if isinstance(item, CommitWindow):
            name = item.topic, item.partition
            windows[name] = merge_windows(windows[name], item) if name in windows else item
        elif isinstance(item, Logged):
            inputs.extend(_read(item))
        else:
            close()
            inputs.append(item)
    close()
    return inputs


@lru_cache(10_000)
def _read(item: Logged) -> list[GroupInput]:
    """The codec's inputs from a record; these are never folded."""
    return inputs_of([(item.record, item.time, item.key, item.value)])
