"""Records of the offsets log as a broker writes them, for tests: an encoder without any code of the codec."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any


def string(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    data = text.encode("utf-8")
    return struct.pack(">h", len(data)) + data


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact(data: str | bytes | None) -> bytes:
    if data is None:
        return b"\x00"
    raw = data.encode("utf-8") if isinstance(data, str) else data
    return uvarint(len(raw) + 1) + raw


def sized(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else struct.pack(">i", len(data)) + data


def offset_key(group: str, topic: str, partition: int, key_type: int = 1) -> bytes:
    return struct.pack(">h", key_type) + string(group) + string(topic) + struct.pack(">i", partition)


def group_key(group: str) -> bytes:
    return struct.pack(">h", 2) + string(group)


def other_key(key_type: int, group: str, part: str | None = None) -> bytes:
    return struct.pack(">h", key_type) + string(group) + (b"" if part is None else string(part))


def offset_value(
    version: int,
    offset: int,
    *,
    leader_epoch: int = -1,
    metadata: str = "",
    commit_timestamp: int = 0,
    expire_timestamp: int = -1,
    topic_id: bytes = bytes(16),
) -> bytes:
    out = struct.pack(">hq", version, offset)
    if version >= 3:
        out += struct.pack(">i", leader_epoch)
    out += compact(metadata) if version >= 4 else string(metadata)
    out += struct.pack(">q", commit_timestamp)
    if version == 1:
        out += struct.pack(">q", expire_timestamp)
    if version >= 4:
        out += b"\x00" if topic_id == bytes(16) else b"\x01\x00\x10" + topic_id
    return out


def topic_partitions(groups: Sequence[tuple[str, Sequence[int]]]) -> bytes:
    out = struct.pack(">i", len(groups))
    for topic, partitions in groups:
        out += string(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return out


def subscription(
    version: int,
    topics: Sequence[str],
    *,
    user_data: bytes | None = None,
    owned: Sequence[tuple[str, Sequence[int]]] | None = None,
    generation: int = -1,
    rack: str | None = None,
) -> bytes:
    out = struct.pack(">hi", version, len(topics)) + b"".join(map(string, topics)) + sized(user_data)
    if version >= 1:
        out += topic_partitions(owned or [])
    if version >= 2:
        out += struct.pack(">i", generation)
    if version >= 3:
        out += string(rack)
    return out


def assignment(version: int, assigned: Sequence[tuple[str, Sequence[int]]], user_data: bytes | None = None) -> bytes:
    return struct.pack(">h", version) + topic_partitions(assigned) + sized(user_data)


def member(version: int, **fields: Any) -> bytes:
    text, data = (compact, compact) if version >= 4 else (string, sized)
    out: bytes = text(fields.get("member_id", "m"))
    if version >= 3:
        out += text(fields.get("group_instance_id"))
    out += text(fields.get("client_id", "c")) + text(fields.get("client_host", "/127.0.0.1"))
    if version >= 1:
        out += struct.pack(">i", fields.get("rebalance_timeout", 300_000))
    out += struct.pack(">i", fields.get("session_timeout", 45_000))
    out += data(fields.get("subscription", b"")) + data(fields.get("assignment", b""))
    return out + (b"\x00" if version >= 4 else b"")


def group_value(version: int, members: list[bytes], **fields: Any) -> bytes:
    text = compact if version >= 4 else string
    out: bytes = struct.pack(">h", version) + text(fields.get("protocol_type", "consumer"))
    out += struct.pack(">i", fields.get("generation", 1))
    out += text(fields.get("protocol", "range")) + text(fields.get("leader", "m"))
    if version >= 2:
        out += struct.pack(">q", fields.get("timestamp", -1))
    out += uvarint(len(members) + 1) if version >= 4 else struct.pack(">i", len(members))
    return out + b"".join(members) + (b"\x00" if version >= 4 else b"")


def compact_array(items: Sequence[bytes]) -> bytes:
    return uvarint(len(items) + 1) + b"".join(items)


def int32_array(numbers: Sequence[int]) -> bytes:
    return compact_array([struct.pack(">i", number) for number in numbers])


def topic_ids(assigned: Mapping[bytes, Sequence[int]]) -> bytes:
    """An array of {topicId, partitions}, no tagged fields."""
    return compact_array([topic + int32_array(partitions) + b"\x00" for topic, partitions in assigned.items()])


def group_epoch(epoch: int) -> bytes:
    """Type 3; type 6 has the same bytes."""
    return struct.pack(">hi", 0, epoch) + b"\x00"


def target_epoch(epoch: int, timestamp: int) -> bytes:
    """Type 6 as brokers write it since 4.3."""
    return struct.pack(">hi", 0, epoch) + b"\x01\x00\x08" + struct.pack(">q", timestamp)


def member_metadata(
    topics: Sequence[str],
    *,
    instance_id: str | None = None,
    rack: str | None = None,
    regex: str | None = None,
    assignor: str | None = None,
    protocols: Sequence[str] | None = None,
) -> bytes:
    """Type 5; `protocols` makes it a member of the classic protocol."""
    out = b"\x00\x00" + compact(instance_id) + compact(rack) + compact("client") + compact("/10.0.0.1")
    out += compact_array([compact(topic) for topic in topics]) + compact(regex)
    out += struct.pack(">i", 300_000) + compact(assignor)
    if protocols is None:
        return out + b"\x01\x00\x01\x00"
    named = compact_array([compact(name) + compact(b"bytes") + b"\x00" for name in protocols])
    classic = b"\x01" + struct.pack(">i", 45_000) + named + b"\x00"
    return out + b"\x01\x00" + uvarint(len(classic)) + classic


def target_assignment(assigned: Mapping[bytes, Sequence[int]]) -> bytes:
    """Type 7."""
    return b"\x00\x00" + topic_ids(assigned) + b"\x00"


def current_assignment(
    epoch: int,
    assigned: Mapping[bytes, Sequence[int]] | None = None,
    *,
    previous: int = 0,
    state: int = 0,
    revoking: Mapping[bytes, Sequence[int]] | None = None,
) -> bytes:
    """Type 8."""
    head = struct.pack(">hiib", 0, epoch, previous, state)
    return head + topic_ids(assigned or {}) + topic_ids(revoking or {}) + b"\x00"


def regular_expression(topics: Sequence[str], version: int, timestamp: int) -> bytes:
    """Type 16."""
    return (
        b"\x00\x00"
        + compact_array([compact(topic) for topic in topics])
        + struct.pack(">qq", version, timestamp)
        + b"\x00"
    )


def topology(epoch: int) -> bytes:
    """Type 23 with no subtopologies."""
    return struct.pack(">hi", 0, epoch) + b"\x01\x00"


def modern_value(key_type: int) -> bytes:
    """A minimal value of types 3 to 23."""
    empty = b"\x00\x00" + b"\x01"
    values = {
        3: group_epoch(1),
        4: empty + b"\x00",
        5: member_metadata([]),
        6: group_epoch(1),
        7: target_assignment({}),
        8: current_assignment(1),
        9: empty + b"\x00",
        10: empty[:2] + b"\x00" + compact("c") + compact("/h") + b"\x01\x00",
        11: struct.pack(">hiq", 0, 1, 0) + b"\x00",
        12: group_epoch(1),
        13: target_assignment({}),
        14: struct.pack(">hiib", 0, 1, 0, 0) + b"\x01\x00",
        15: empty + b"\x01\x01\x00",
        16: regular_expression([], 1, 1),
        17: struct.pack(">hiq", 0, 1, 0) + b"\x00",
        19: empty[:2]
        + (compact(None) * 2 + compact("c") + compact("/h") + struct.pack(">ii", 1, 1))
        + (compact("process") + b"\xff" + b"\x01\x00"),
        20: group_epoch(1),
        21: empty + b"\x01\x01\x00",
        22: struct.pack(">hiib", 0, 1, 0, 0) + b"\x01" * 6 + b"\x00",
        23: topology(1),
    }
    return values[key_type]
