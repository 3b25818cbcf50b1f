"""The log of a share group (KIP-932), record by record, in the order of a coordinator's writes."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from streaming.records import GroupObservation
from tests.groups.build import GROUP, make_observation, make_topic
from tests.groups.coordinator import TOPIC, Written
from tests.groups.modern_log import TOPIC_ID
from tests.offsets_log.written import compact, compact_array, int32_array, other_key, target_assignment, topic_ids

BILLS = bytes(range(16, 32))
BILLS_ID = "EBESExQVFhcYGRobHB0eHw"
NAMES = {TOPIC: "orders", BILLS: "bills"}


def member(name: str, *topics: str) -> Written:
    subscribed = compact_array([compact(topic) for topic in topics])
    value = b"\x00\x00" + compact(None) + compact("client") + compact("/10.0.0.1") + subscribed + b"\x00"
    return other_key(10, GROUP, name), value


def epoch(number: int) -> Written:
    return other_key(11, GROUP), struct.pack(">hiq", 0, number, 77) + b"\x00"


def target(name: str, assigned: dict[bytes, Sequence[int]]) -> Written:
    return other_key(13, GROUP, name), target_assignment(assigned)


def stands(number: int) -> Written:
    return other_key(12, GROUP), struct.pack(">hi", 0, number) + b"\x00"


def owns(name: str, number: int, assigned: dict[bytes, Sequence[int]]) -> Written:
    return other_key(14, GROUP, name), struct.pack(">hiib", 0, number, 0, 0) + topic_ids(assigned) + b"\x00"


def gone(*names: str) -> list[Written]:
    return [(other_key(key_type, GROUP, name), None) for name in names for key_type in (14, 13, 10)]


def state(initialized: dict[bytes, Sequence[int]], initializing: dict[bytes, Sequence[int]] | None = None) -> Written:
    """Type 15: the partitions whose state the group has initialized, and those where that is under way."""

    def listed(topics: dict[bytes, Sequence[int]]) -> bytes:
        return compact_array([i + compact(NAMES[i]) + int32_array(of) + b"\x00" for i, of in topics.items()])

    return other_key(15, GROUP), b"\x00\x00" + listed(initializing or {}) + listed(initialized) + b"\x01\x00"


def observation(position: int, orders: int = 4, missing: str | None = None, **changes: object) -> GroupObservation:
    """A round that shows both topics; `missing` is one that it asked for, and that is not there."""
    topics = [make_topic("orders", orders, topic_id=TOPIC_ID), make_topic("bills", 2, topic_id=BILLS_ID)]
    topics += [make_topic(missing, None)] if missing is not None else []
    told = {"state": None, "group_type": "share", "protocol_type": "share"} | changes
    return make_observation(position, *topics, **told)  # type: ignore[arg-type]


ALL = {TOPIC: (0, 1, 2, 3)}
FIRST = [member("a", "orders"), state({}, ALL), epoch(1), target("a", {}), stands(1), owns("a", 1, {})]
"""A group begins: nothing is initialized yet, so the first target is empty."""

READY = [*FIRST, state(ALL), epoch(2), target("a", ALL), stands(2), owns("a", 2, ALL)]
"""The partitions of orders are initialized, and a has all of them."""

TWO = [*READY, member("b", "orders"), epoch(3), target("a", {TOPIC: (2, 3)}), target("b", {TOPIC: (0, 1)}), stands(3)]
"""b joins, and has those that Kafka 4.2 gives it."""
