"""Commits as columns: the values that brokers write are decoded there, not one by one."""

from __future__ import annotations

import pytest

from streaming.offsets_log.codec.offset_commit import decode_offset_commits, joined
from tests.offsets_log.written import offset_value

TOPIC_ID = bytes(range(16))


@pytest.mark.parametrize("metadata", ["", "m", "of a word's length or of several"])
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_values_of_every_version_are_decoded_together(version: int, metadata: str) -> None:
    values = [offset_value(version, offset, leader_epoch=7, metadata=metadata) for offset in (5, 2**40)]
    found = decode_offset_commits(*joined(values))
    assert found.decoded.tolist() == [True, True]
    assert found.offset.tolist() == [5, 2**40]
    assert found.leader_epoch.tolist() == [7 if version >= 3 else -1] * 2
    assert bytes(found.topic_id[0]) == bytes(16)


def test_a_topic_id_is_decoded_with_the_rest() -> None:
    found = decode_offset_commits(*joined([offset_value(4, 5, topic_id=TOPIC_ID), offset_value(4, 6)]))
    assert (found.decoded.tolist(), [bytes(row) for row in found.topic_id]) == ([True, True], [TOPIC_ID, bytes(16)])


def test_metadata_whose_length_needs_a_second_byte_is_left_to_the_plain_decoder() -> None:
    # Version 4 writes the length and one more as a varint: 127 is the first length that needs two bytes. Without its
    # last byte such a value is as long as one with a length of a single byte would be.
    values = [offset_value(4, 5, metadata="m" * size) for size in (125, 126, 127, 128, 200)]
    values.append(values[2][:-1])
    assert decode_offset_commits(*joined(values)).decoded.tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    "value",
    [
        offset_value(3, 5, metadata="é"),  # (whether it is UTF-8 is looked at elsewhere)
        offset_value(3, 5) + b"\x00",
        offset_value(3, 5)[:-1],
        offset_value(5, 5),
        b"",
    ],
)
def test_everything_else_is_left_to_the_plain_decoder(value: bytes) -> None:
    assert decode_offset_commits(*joined([offset_value(3, 5), value])).decoded.tolist() == [True, False]
