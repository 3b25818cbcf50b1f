"""Kafka's own record classes (`OffsetsLogRecords.java`), called in batches.

python tests/oracle/offsets_log_records.py      # rewrites tests/offsets_log/data/golden.jsonl
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from streaming.jars import classpath
from tests.oracle.java_classes import java_command

_RUNNER = Path(__file__).with_name("OffsetsLogRecords.java")
GOLDEN = Path(__file__).parents[1] / "offsets_log" / "data" / "golden.jsonl"

_UUID = "AAECAwQFBgcICQoLDA0ODw"


def ask_java(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One answer per request, in order; the protocol is described at the top of the Java file."""
    text = "".join(json.dumps(request) + "\n" for request in requests)
    command = java_command(_RUNNER, classpath("broker"), "512m")
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(requests)
    return answers


def written_by_java(message: str, version: int | None, fields: dict[str, Any]) -> dict[str, Any]:
    """The request to write a value, or a key if there is no version."""
    return {"do": "write", "message": message, "version": version, "json": fields}


def _commit_values() -> Iterator[tuple[str, int, dict[str, Any]]]:
    for version in range(5):
        for offset, metadata in ((0, ""), (42, "m"), (2**63 - 1, "é🦊"), (-1, "x" * 300)):
            fields: dict[str, Any] = {"offset": offset, "metadata": metadata, "commitTimestamp": 1_700_000_000_000}
            if version >= 3:
                fields["leaderEpoch"] = 7
            if version == 1:
                fields["expireTimestamp"] = 1_700_000_009_999
            yield f"OffsetCommit v{version}", version, fields
            if version >= 4:
                yield "OffsetCommit v4 with a topic id", version, {**fields, "topicId": _UUID}


def _consumer_protocol() -> Iterator[tuple[str, int, dict[str, Any]]]:
    owned = [{"topic": "b", "partitions": [3, 1]}, {"topic": "a", "partitions": []}]
    for version in range(4):
        fields: dict[str, Any] = {"topics": ["b", "a", "ü"], "userData": None}
        if version >= 1:
            fields["ownedPartitions"] = owned
        if version >= 2:
            fields["generationId"] = -1 if version == 2 else 12
        if version >= 3:
            fields["rackId"] = "rack-1"
        yield "ConsumerProtocolSubscription", version, fields
        yield "ConsumerProtocolAssignment", version, {"assignedPartitions": owned, "userData": "AAH/"}
    empty = {"topics": [], "userData": "", "ownedPartitions": [], "generationId": 0, "rackId": ""}
    yield "ConsumerProtocolSubscription", 3, empty


def _group_values(parts: dict[str, list[bytes]]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    subscriptions = parts["ConsumerProtocolSubscription"]
    assignments = parts["ConsumerProtocolAssignment"]
    newer = b"\x00\x09" + subscriptions[3][2:] + b"appended by a later version"
    shapes: list[tuple[str, str, list[tuple[bytes, bytes]]]] = [
        ("empty", "consumer", []),
        ("", "", []),
        (
            "subscription and assignment of every version",
            "consumer",
            list(zip(subscriptions, assignments, strict=False)),
        ),
        ("newer subscription, zero-length assignment", "consumer", [(newer, b"")]),
        ("undecodable parts", "consumer", [(b"\x00\x01\x00", b"\x00"), (b"", assignments[1][:-1])]),
        ("not topic partitions", "connect", [(b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff", b"\x00\x02junk")]),
    ]
    for version in range(5):
        for name, protocol_type, members in shapes:
            fields: dict[str, Any] = {
                "protocolType": protocol_type,
                "generation": 17,
                "protocol": "range" if members else None,
                "leader": "m-0" if members else None,
                "members": [
                    _member(version, index, subscription, assignment)
                    for index, (subscription, assignment) in enumerate(members)
                ],
            }
            if version >= 2:
                fields["currentStateTimestamp"] = 1_700_000_000_123
            yield f"GroupMetadata v{version} {name}".rstrip(), version, fields


def _member(version: int, index: int, subscription: bytes, assignment: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "memberId": f"m-{index}",
        "clientId": "client",
        "clientHost": "/10.0.0.1",
        "sessionTimeout": 45_000,
        "subscription": base64.b64encode(subscription).decode(),
        "assignment": base64.b64encode(assignment).decode(),
    }
    if version >= 1:
        fields["rebalanceTimeout"] = 300_000
    if version >= 3:
        fields["groupInstanceId"] = f"host-{index}" if index % 2 else None
    return fields


_OTHER_KEYS = {
    "ConsumerGroupMetadata": None,
    "ConsumerGroupPartitionMetadata": None,
    "ConsumerGroupMemberMetadata": "memberId",
    "ConsumerGroupTargetAssignmentMetadata": None,
    "ConsumerGroupTargetAssignmentMember": "memberId",
    "ConsumerGroupCurrentMemberAssignment": "memberId",
    "ShareGroupMemberMetadata": "memberId",
    "ShareGroupMetadata": None,
    "ShareGroupTargetAssignmentMetadata": None,
    "ShareGroupTargetAssignmentMember": "memberId",
    "ShareGroupCurrentMemberAssignment": "memberId",
    "ShareGroupStatePartitionMetadata": None,
    "ConsumerGroupRegularExpression": "regularExpression",
    "StreamsGroupMetadata": None,
    "StreamsGroupMemberMetadata": "memberId",
    "StreamsGroupTargetAssignmentMetadata": None,
    "StreamsGroupTargetAssignmentMember": "memberId",
    "StreamsGroupCurrentMemberAssignment": "memberId",
    "StreamsGroupTopology": None,
}


def golden() -> list[dict[str, Any]]:
    """Records with the names of their shapes: key and value as Java writes them, and as it prints them."""
    commits = list(_commit_values())
    parts = list(_consumer_protocol())
    keys = [
        written_by_java("OffsetCommitKey", None, {"group": "göt-🦊", "topic": "a.b_c", "partition": 3}),
        written_by_java("GroupMetadataKey", None, {"group": "göt-🦊"}),
        written_by_java("LegacyOffsetCommitKey", None, {"group": "g", "topic": "t", "partition": 0}),
    ]
    others = [
        written_by_java(f"{name}Key", None, {"groupId": "g"} | ({part: "m"} if part else {}))
        for name, part in _OTHER_KEYS.items()
    ]
    first = ask_java(
        keys
        + others
        + [written_by_java(message, version, fields) for message, version, fields in parts]
        + [written_by_java("OffsetCommitValue", version, fields) for _, version, fields in commits]
    )
    made = iter(answer["hex"] for answer in first)
    commit_key, group_key, legacy_key = (next(made) for _ in keys)
    other_keys = [next(made) for _ in others]
    by_message: dict[str, list[bytes]] = {}
    for message, _, _ in parts:
        by_message.setdefault(message, []).append(bytes.fromhex(next(made)))
    records = [(name, commit_key, next(made)) for name, _, _ in commits]
    records.append(("LegacyOffsetCommit v0", legacy_key, records[0][2]))
    groups = list(_group_values(by_message))
    values = ask_java([written_by_java("GroupMetadataValue", version, fields) for _, version, fields in groups])
    records += [(name, group_key, value["hex"]) for (name, _, _), value in zip(groups, values, strict=True)]
    tombstones = zip(
        ["OffsetCommit", "GroupMetadata", "LegacyOffsetCommit", *_OTHER_KEYS],
        [commit_key, group_key, legacy_key, *other_keys],
        strict=True,
    )
    rows = [*records, *[(f"{name} tombstone", key, None) for name, key in tombstones]]
    read = ask_java([{"do": "read", "key": key, "value": value} for _, key, value in rows])
    return [
        {"what": what, "key": key, "value": value, "java": answer}
        for (what, key, value), answer in zip(rows, read, strict=True)
    ]


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in golden()), encoding="utf-8")
