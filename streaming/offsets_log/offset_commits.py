"""Many values of offset commits (key type 1) at once, vectorised; the layouts stand in `offset_commit.py`.

A broker writes a handful of shapes. With m bytes of metadata they are, in whole bytes, checked all of them:

    v0, v2   20 + m    version 2, offset 8, metadata 2 + m, commitTimestamp 8
    v1       28 + m    the same, expireTimestamp 8
    v3       24 + m    version 2, offset 8, leaderEpoch 4, metadata 2 + m, commitTimestamp 8
    v4       24 + m    version 2, offset 8, leaderEpoch 4, metadata 1 + m, commitTimestamp 8, no tagged field 00
    v4       42 + m    the same with one tagged field 01, tag 0 00, size 16 10, topic id 16

Whatever has another shape, or metadata beyond ASCII, is left to the plain decoder, which alone says what is
wrong with a value. So this one may refuse good values, and never takes a bad one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

__all__ = ["CommitColumns", "decode_offset_commits"]

# The first 16 bytes hold all that a commit is folded by, whatever its version; metadata's size stands at 10
# up to v2, at 14 from v3 (one byte in v4).
_HEAD = 16
_HEAD_TYPE = np.dtype([("version", ">i2"), ("offset", ">i8"), ("epoch", ">i4"), ("metadata", ">i2")])
_OLD_METADATA_AT = 10
_V4_METADATA_AT = 14

_TAGS_SIZE = 19
_TAGS_HEAD = (1, 0, 16)

# What the reads of the last value's head may run beyond its end.
_PADDING = bytes(_HEAD)

# Metadata starts here, by version.
_METADATA_FROM = (12, 12, 12, 16, 15)


@dataclass(frozen=True, slots=True)
class CommitColumns:
    """Offset commits as columns, one row per value.

    Attributes:
        decoded: Whether the row was decoded here; where not, the other columns say nothing.
        offset: Committed offset, int64.
        leader_epoch: int64; -1 when not recorded.
        topic_id: uint8, 16 a row; zero when not recorded.
    """

    decoded: npt.NDArray[np.bool_]
    offset: npt.NDArray[np.int64]
    leader_epoch: npt.NDArray[np.int64]
    topic_id: npt.NDArray[np.uint8]


def decode_offset_commits(values: Sequence[bytes]) -> CommitColumns:
    """Decode those values that have one of the shapes above. Never raises."""
    count = len(values)
    sizes = np.fromiter(map(len, values), np.int64, count)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    data = np.frombuffer(b"".join([*values, _PADDING]), np.uint8)
    # A row per start, copied in one piece.
    heads = sliding_window_view(data, _HEAD)[starts]
    fields = heads.view(_HEAD_TYPE)[:, 0]
    version = fields["version"]
    old_metadata = (
        np.ascontiguousarray(heads[:, _OLD_METADATA_AT : _OLD_METADATA_AT + 2]).view(">i2")[:, 0].astype(np.int64)
    )
    v4_metadata = heads[:, _V4_METADATA_AT].astype(np.int64) - 1
    is_v4 = (version == 4) & (v4_metadata >= 0) & (v4_metadata < 127) & (sizes >= 24)
    metadata = np.where(version == 4, v4_metadata, np.where(version == 3, fields["metadata"], old_metadata))
    rest = sizes - metadata
    bare_v4 = is_v4 & (rest == 24)
    bare_v4[bare_v4] = data[ends[bare_v4] - 1] == 0
    with_topic = is_v4 & (rest == 24 - 1 + _TAGS_SIZE)
    topic_id = np.zeros((count, 16), np.uint8)
    rows = np.flatnonzero(with_topic)
    if rows.size:
        tags = sliding_window_view(data, _TAGS_SIZE)[ends[rows] - _TAGS_SIZE]
        fit = (tags[:, :3] == _TAGS_HEAD).all(axis=1)
        with_topic[rows[~fit]] = False
        topic_id[rows[fit]] = tags[fit, 3:]
    decoded = bare_v4 | with_topic
    decoded |= (version == 3) & (rest == 24)
    decoded |= (version == 1) & (rest == 28)
    decoded |= ((version == 0) | (version == 2)) & (rest == 20)
    decoded &= metadata >= 0
    for row in np.flatnonzero(decoded & (metadata > 0)).tolist():
        start = _METADATA_FROM[version[row]]
        if not values[row][start : start + int(metadata[row])].isascii():
            decoded[row] = False
    return CommitColumns(
        decoded=decoded,
        offset=fields["offset"].astype(np.int64),
        leader_epoch=np.where(version >= 3, fields["epoch"], -1).astype(np.int64),
        topic_id=topic_id,
    )
