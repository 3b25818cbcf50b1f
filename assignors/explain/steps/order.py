"""The order in which a leader takes its members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from assignors.assignment import PartitionId
from assignors.explain.ledger import Ledger, require
from assignors.explain.steps.step import Step
from assignors.explain.words import names
from assignors.order import utf8, utf16

_Key = Callable[[str, str | None], Any]


def _static_first(encode: Callable[[str], bytes]) -> _Key:
    return lambda member, instance: (0, encode(instance)) if instance is not None else (1, encode(member))


@dataclass(frozen=True, slots=True)
class _Order:
    words: str
    keys: tuple[_Key, ...]


# The rules of order: their words, and keys by which the order must be ascending. (librdkafka's comparison is not one
# key: it is checked pair by pair.)
ORDERS: Mapping[str, _Order] = {
    "java": _Order(
        "static members by group.instance.id first, then the others by member id, as Java compares strings",
        (_static_first(utf16),),
    ),
    "java_member_id": _Order(
        "by member id, as Java compares strings; this release does not know static members",
        (lambda member, _: utf16(member),),
    ),
    "franz-go": _Order(
        "static members by group.instance.id first, then the others by member id, byte by byte", (_static_first(utf8),)
    ),
    "member_id": _Order("by member id, byte by byte, static or not", (lambda member, _: utf8(member),)),
    "record": _Order("as the coordinator listed them to the leader", ()),
    "librdkafka": _Order("two static members by group.instance.id, any other two by member id, byte by byte", ()),
    "kafka-python": _Order(
        "static members by group.instance.id first, then the others by member id", (_static_first(utf8),)
    ),
}


@dataclass(frozen=True, slots=True)
class Ordered(Step):
    """The order in which the leader takes the members.

    Attributes:
        rule: One of `ORDERS`.
        members: Member ids in that order.
        left_out: Members that the leader forgets (kafka-python).
    """

    kind = "order"
    rule: str
    members: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def _text(self, partition: PartitionId | None) -> str:
        del partition
        words = ORDERS[self.rule].words
        said = f"The members are taken in this order: {names(self.members)} ({words})."
        if self.left_out:
            said += (
                f" {names(self.left_out)} {'is' if len(self.left_out) == 1 else 'are'} left out: this library keeps "
                "only the last unbroken run of static members and of others in the order of the group's record."
            )
        return said

    def _enter(self, ledger: Ledger) -> None:
        instances = ledger.facts.instances
        everyone = sorted([*self.members, *self.left_out])
        require(everyone == sorted(ledger.facts.topics), "the order does not have each member once")
        for key in ORDERS[self.rule].keys:
            keys = [key(member, instances.get(member)) for member in self.members]
            require(keys == sorted(keys), f"the members are not in the order {self.rule}")
        if self.rule == "record":
            require(self.members == tuple(ledger.facts.topics), "the members are not in the order of the record")
        if self.rule == "librdkafka":
            for one, next_one in pairwise(self.members):
                mine, theirs = instances.get(one), instances.get(next_one)
                ascending = one < next_one if mine is None or theirs is None else mine < theirs
                require(ascending, "the members are not in librdkafka's order")
        ledger.order = self.members
