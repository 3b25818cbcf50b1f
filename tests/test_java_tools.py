"""The output of Kafka's own programs is parsed correctly, whatever a group is called."""

from __future__ import annotations

from pathlib import Path

from tests.java_tools import GroupOffset, parse_group_offsets

_PRINTED = Path(__file__).with_name("data") / "describe_all_groups.txt"
"""Output of `kafka-consumer-groups --describe --all-groups` of Kafka 4.3.1 for three groups, with changed numbers."""


def test_a_printed_table_is_read_whatever_the_group_is_called() -> None:
    member = ("kafka-python-3.0.12-f7d6444f-f839-44fe-9e5f-9358d11aad95", "/127.0.0.1", "kafka-python-3.0.12")
    assert parse_group_offsets(_PRINTED.read_text("utf-8")) == [
        GroupOffset("../../etc/passwd", "t1", 0, 5, 0, -5, None, None, None),
        GroupOffset("live group", "t1", 0, None, 12, None, *member),
        GroupOffset("live group", "t.2_x-y", 10, 7, 12, 5, *member),
        GroupOffset("new\nline", "t1", 0, 5, 9, 4, None, None, None),
    ]
