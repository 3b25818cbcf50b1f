"""Values of offset commits as columns, decoded for the fold.

The layout is `schemas/OffsetCommitValue.json`; version 0, the only one of the legacy key type 0, is the same there. The
plain decoder goes by the schema; nearly all commits of a log take the vectorised one, many at once.

A broker writes only a few shapes. With m bytes of metadata these are, in whole bytes, all of them checked:

    v0, v2   20 + m    version 2, offset 8, metadata 2 + m, commitTimestamp 8
    v1       28 + m    the same, expireTimestamp 8
    v3       24 + m    version 2, offset 8, leaderEpoch 4, metadata 2 + m, commitTimestamp 8
    v4       24 + m    version 2, offset 8, leaderEpoch 4, metadata 1 + m, commitTimestamp 8, no tagged field 00
    v4       42 + m    the same with one tagged field 01, tag 0 00, size 16 10, topic id 16

A value of another shape, or with metadata beyond ASCII, is left to the plain decoder, which alone says what is wrong
with a value. So the vectorised one may refuse good values, and never accepts a bad one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streaming.offsets_log.codec.record_columns import Bytes, Ints, rows_at

# The first 16 bytes hold everything that the fold needs of a commit, whatever its version; metadata's size is at 10 up
# to v2, at 14 from v3 (one byte in v4).
_HEAD = 16
_HEAD_TYPE = np.dtype([("version", ">i2"), ("offset", ">i8"), ("epoch", ">i4"), ("metadata", ">i2")])
_OLD_METADATA_AT = 10
_V4_METADATA_AT = 14

_TAGS_SIZE = 19
_TAGS_HEAD = (1, 0, 16)

# Offset of the metadata, by version.
_METADATA_FROM = np.array((12, 12, 12, 16, 15))

# Masks of the bit that no ASCII character has, for the first bytes of a word, by their number.
_WORD = 8
_BEYOND_ASCII = np.array([int.from_bytes(b"\x80" * size, "little") for size in range(_WORD + 1)], "<u8")


@dataclass(frozen=True, slots=True)
class CommitColumns:
    """Offset commits as columns, one row per value.

    Attributes:
        decoded: Whether the row was decoded here; otherwise the other columns mean nothing.
        offset: Committed offset, int64.
        leader_epoch: int64; -1 when not recorded.
        topic_id: uint8, 16 a row; zero when not recorded.
    """

    decoded: npt.NDArray[np.bool_]
    offset: npt.NDArray[np.int64]
    leader_epoch: npt.NDArray[np.int64]
    topic_id: npt.NDArray[np.uint8]


def decode_offset_commits(data: Bytes, starts: Ints, sizes: Ints) -> CommitColumns:
    """Decode those values that have one of the shapes above. Never raises.

    Args:
        data: Holds the values, and `PADDING` further bytes behind them.
        starts: Where each value begins.
        sizes: Its bytes; a value without bytes is not decoded.
    """
    ends = starts + sizes
    heads = rows_at(data, starts, _HEAD)
    fields = heads.view(_HEAD_TYPE)[:, 0]
    version = fields["version"].astype(np.int64)
    old_metadata = np.ascontiguousarray(heads[:, _OLD_METADATA_AT : _OLD_METADATA_AT + 2]).view(">i2")[:, 0]
    v4_metadata = heads[:, _V4_METADATA_AT].astype(np.int64) - 1
    is_v4 = (version == 4) & (v4_metadata >= 0) & (v4_metadata < 127) & (sizes >= 24)
    metadata = np.where(version == 4, v4_metadata, np.where(version == 3, fields["metadata"], old_metadata))
    rest = sizes - metadata
    bare_v4 = is_v4 & (rest == 24)
    bare_v4[bare_v4] = data[ends[bare_v4] - 1] == 0
    with_topic = is_v4 & (rest == 24 - 1 + _TAGS_SIZE)
    # A value without tags has no such end: the start is read in its place, and ignored.
    tags = rows_at(data, np.where(with_topic, ends - _TAGS_SIZE, starts), _TAGS_SIZE)
    for at, byte in enumerate(_TAGS_HEAD):
        with_topic &= tags[:, at] == byte
    topic_id = tags[:, len(_TAGS_HEAD) :]
    topic_id[~with_topic] = 0
    decoded = bare_v4 | with_topic
    decoded |= (version == 3) & (rest == 24)
    decoded |= (version == 1) & (rest == 28)
    decoded |= ((version == 0) | (version == 2)) & (rest == 20)
    decoded &= metadata >= 0
    rows = np.flatnonzero(decoded & (metadata > 0))
    if rows.size:
        decoded[rows] = _ascii(data, starts[rows] + _METADATA_FROM[version[rows]], metadata[rows])
    return CommitColumns(
        decoded=decoded,
        offset=fields["offset"].astype(np.int64),
        leader_epoch=np.where(version >= 3, fields["epoch"], -1).astype(np.int64),
        topic_id=topic_id,
    )


def _ascii(data: Bytes, starts: Ints, sizes: Ints) -> npt.NDArray[np.bool_]:
    """Which texts are pure ASCII; for sizes of 1 and more."""
    plain = np.ones(starts.size, np.bool_)
    rows, at, left = np.arange(starts.size), starts, sizes
    while rows.size:
        words = rows_at(data, at, _WORD).view("<u8")[:, 0]
        plain[rows[(words & _BEYOND_ASCII[np.minimum(left, _WORD)]) != 0]] = False
        longer = left > _WORD
        rows, at, left = rows[longer], at[longer] + _WORD, left[longer] - _WORD
    return plain
