"""Random lives of one group as the log and the rounds tell them, and their cuts into batches.

A stream is a list of steps in log order; a step is what no batch can part: one record, one round, or the records of
one append of the coordinator. `batches` folds each batch the way the codec does: windows end at rounds and at
membership records, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec
from hypothesis import strategies as st

from streaming.groups.inputs import (
    CommitWindow,
    GroupInput,
    Member,
    MembershipRecord,
    OtherRecords,
    Tick,
    merge_windows,
)
from tests.groups.build import (
    MINUTE,
    SECOND,
    START,
    make_commit,
    make_member,
    make_others,
    make_record,
    make_tick,
    make_topic,
)
from tests.groups.build import make_tombstone as make_membership_tombstone

Step = tuple[GroupInput, ...]

TOPICS = ("orders", "payments")
RACKS = (None, None, "r1", "r2", "")
STRATEGIES = ("range", "range", "roundrobin", "cooperative-sticky", "sticky", "house-blend")


@dataclass
class _Group:
    """What a coordinator would know; only so far as the streams stay plausible."""

    record: int = 0
    generation: int = 0
    members: tuple[Member, ...] = ()
    protocol: str = "range"
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOPICS, 3))
    steps: list[Step] = field(default_factory=list)

    def put(self, *inputs: GroupInput) -> None:
        self.steps.append(inputs)

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
            window = msgspec.structs.replace(window, topic_id=draw(st.sampled_from((None, "first", "second"))))
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
    group.put(
        make_membership_tombstone(group.next()),
        make_others(5, group.next()),
        make_others(3, group.next()),
        make_others(7, group.next()),
    )


def _downgrade(_: st.DrawFn, group: _Group) -> None:
    tombstones = [make_others(key_type, group.next(), tombstone=True) for key_type in (8, 7, 6, 5, 3)]
    group.generation += 4
    record = make_record(group.next(), group.members, generation=group.generation, protocol=group.protocol)
    group.put(*tombstones, record)


def _other(draw: st.DrawFn, group: _Group) -> None:
    key_type = draw(st.sampled_from((3, 5, 8, 11, 17)))
    group.put(make_others(key_type, group.next(), tombstone=draw(st.booleans())))
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
            topic_id=draw(st.sampled_from(("first", "first", "first", "second", None))),
            racks=_racks(draw, group.counts[topic]),
        )
        for topic in TOPICS
        if draw(st.integers(0, 5))
    ]
    position = group.record + 1
    held = START if draw(st.integers(0, 8)) == 0 else None
    state = draw(st.sampled_from(("Stable", "Empty", None)))
    kind = draw(st.sampled_from(("classic", "classic", "consumer", None)))
    group.put(_at(group, make_tick(position, *topics, held_since=held, state=state, group_type=kind)))


def _racks(draw: st.DrawFn, partitions: int) -> tuple[tuple[str, ...], ...] | None:
    """Two brokers, or one that is up, or none that has a rack."""
    up = draw(st.sampled_from((None, ("r1", "r2"), ("r1",))))
    return None if up is None else tuple(up[partition % len(up) :] for partition in range(partitions))


def _gone(draw: st.DrawFn, group: _Group) -> None:
    reason = draw(st.sampled_from(("deleted", "filtered")))
    group.put(_at(group, make_tick(group.record + 1, gone=reason, state=None)))


def _end_append(group: _Group) -> None:
    """Let a record of another group follow: a move between protocols is one append, and has none inside."""
    group.record += 1


def _pause(draw: st.DrawFn, group: _Group) -> None:
    group.record += draw(st.sampled_from((1, 7, 400, 900)))


def _at(group: _Group, tick: Tick) -> Tick:
    """Rounds have numbers and times of their own, also where the log did not move."""
    rounds = sum(isinstance(item, Tick) for step in group.steps for item in step)
    return msgspec.structs.replace(tick, round=rounds, time=START + group.record * SECOND + rounds)


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
    _upgrade,
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
def streams(draw: st.DrawFn, actions: int = 25) -> list[Step]:
    """A life of at most so many actions, and after it what brings to light all that the state holds."""
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
    others: dict[int, OtherRecords] = {}

    def close() -> None:
        inputs.extend([*windows.values(), *others.values()])
        windows.clear()
        others.clear()

    for item in (item for step in steps for item in step):
        if isinstance(item, CommitWindow):
            name = item.topic, item.partition
            windows[name] = merge_windows(windows[name], item) if name in windows else item
        elif isinstance(item, OtherRecords):
            before = others.get(item.key_type, item)
            others[item.key_type] = msgspec.structs.replace(
                item,
                records=item.records + (before.records if before is not item else 0),
                tombstones=item.tombstones + (before.tombstones if before is not item else 0),
                first_record=before.first_record,
            )
        else:
            close()
            inputs.append(item)
    close()
    return inputs


def records_of(steps: Sequence[Step]) -> list[MembershipRecord]:
    return [item for step in steps for item in step if isinstance(item, MembershipRecord)]
