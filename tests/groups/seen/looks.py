"""Looks at groups whose log is not read."""

from __future__ import annotations

from typing import Any

from streaming.groups.rows import ChurnRow
from streaming.records import GroupObservation, Member, SeenClassic, SeenMember, SeenModern
from tests.groups.build import (
    Life,
    make_look,
    make_topic,
)

TOPIC_ID = "0123456789abcdefghijkA"
OTHER_ID = "0123456789abcdefghijkB"


X = make_topic("x", 2, end=100)


def classic(*members: Member, protocol: str = "range", protocol_type: str = "consumer") -> SeenClassic:
    return SeenClassic(protocol_type, protocol, members)


def two_looks(first: SeenClassic, second: SeenClassic, **changes: Any) -> Life:
    life = Life(configured=changes.pop("configured", None))
    life.take(make_look(1, X, classic=first, **changes))
    life.take(make_look(3, X, classic=second))
    return life


def last(life: Life) -> ChurnRow:
    return life.rows.rebalance_churn[-1]


BROKERED = make_topic("x", 2, end=100, topic_id=TOPIC_ID)


def member(name: str, *partitions: int, epoch: int = 1, owned: tuple[int, ...] | None = None) -> SeenMember:
    target = ((TOPIC_ID, partitions),) if partitions else ()
    has = target if owned is None else ((TOPIC_ID, owned),)
    return SeenMember(name, epoch, name, "/10.0.0.1", None, None, ("x",), None, has, target, None)


def broker(number: int, epoch: int, *members: SeenMember, assigned: int | None = None) -> GroupObservation:
    told = SeenModern(epoch, epoch if assigned is None else assigned, "uniform", members)
    return make_look(number, BROKERED, modern=told, group_type="consumer", state="Stable" if members else "Empty")
