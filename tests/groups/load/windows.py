"""Rounds of a group until the end of a window of its rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streaming.records import Member, MembershipRecord
from tests.groups.build import SECOND, START, Assigned, Life, make_member, make_observation, make_record, make_topic

HEARTBEAT = 600
EVERY = 60
"""Seconds between rounds here: as good as ten, and six times fewer."""


def round_at(second: int, *topics: Any, **changes: Any) -> Any:
    at = START + second * SECOND
    return make_observation(10 * second + 2, *topics, time=at, **changes)


def after_a_window(
    per_second: Mapping[str, Sequence[int]], *owned: Assigned, topics: Sequence[str] | None = None
) -> Life:
    """A group whose members a, b, ... own these partitions, at the end of its first window."""
    life = Life.after(record_of(1, *owned, topics=topics or tuple(per_second)))
    see(life, per_second, 0, HEARTBEAT)
    return life


def record_of(at: int, *owned: Assigned, topics: Sequence[str]) -> MembershipRecord:
    members: list[Member] = [make_member(name, topics, of) for name, of in zip("abcdef", owned, strict=False)]
    return make_record(at, members, generation=at)


def see(life: Life, per_second: Mapping[str, Sequence[int]], since: int, until: int) -> None:
    for second in range(since, until + 1, EVERY):
        seen = [make_topic(t, len(of), end=[second * rate for rate in of]) for t, of in per_second.items()]
        life.take(round_at(second, *seen))
