"""The log of a group that the broker assigns, record by record, in the order of a coordinator's writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streaming.records import GroupInput, GroupObservation
from tests.groups.build import GROUP, SECOND, START, make_observation, make_topic
from tests.groups.coordinator import TOPIC, Written
from tests.offsets_log.compacting import inputs_of
from tests.offsets_log.written import current_assignment, group_epoch, member_metadata, other_key, target_assignment

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
"""Id of the topic orders, as Kafka prints it."""


def read(log: Sequence[Written], start: int = 10, positions: Iterable[int] = ()) -> list[GroupInput]:
    """The codec's inputs from records, beginning at an offset."""
    records = ((offset, START + offset * SECOND, *written) for offset, written in enumerate(log, start))
    return inputs_of(records, list(positions))


def metadata(name: str, instance: str | None = None) -> Written:
    return other_key(5, GROUP, name), member_metadata(["orders"], instance_id=instance, assignor="uniform")


def asking(name: str, assignor: str | None) -> Written:
    return other_key(5, GROUP, name), member_metadata(["orders"], assignor=assignor)


def epoch(number: int) -> Written:
    return other_key(3, GROUP), group_epoch(number)


def target(name: str, *partitions: int) -> Written:
    return other_key(7, GROUP, name), target_assignment({TOPIC: partitions} if partitions else {})


def stands(number: int) -> Written:
    return other_key(6, GROUP), group_epoch(number)


def owns(name: str, number: int, *partitions: int, state: int = 0) -> Written:
    owned = {TOPIC: partitions} if partitions else {}
    return other_key(8, GROUP, name), current_assignment(number, owned, state=state)


def gone(*names: str) -> list[Written]:
    return [(other_key(key_type, GROUP, name), None) for name in names for key_type in (8, 7, 5)]


def observation(position: int, **changes: object) -> GroupObservation:
    orders = make_topic("orders", 4, topic_id=TOPIC_ID)
    return make_observation(position, orders, state=None, group_type="consumer", **changes)  # type: ignore[arg-type]


FIRST = [metadata("a", "i"), epoch(1), target("a", 0, 1, 2, 3), stands(1), owns("a", 1, 0, 1, 2, 3)]
"""A group begins: a owns all four partitions of orders."""

SECOND_JOINS = [metadata("b"), epoch(2)]

SECOND_MEMBER = [*SECOND_JOINS, target("a", 0, 1), target("b", 2, 3), stands(2)]
"""b joins; its target is two of them."""
