"""The pure core: the state of one group, and the rows that follow from its next events.

It uses no Spark, no Kafka client and no clock: time comes with the events.
"""

from __future__ import annotations

from streaming.groups.advance import advance
from streaming.groups.context import Allocation, GroupConfig, Incarnations, custom_of, queue_list
from streaming.groups.rows import (
    GapRow,
    OpenTransactionRow,
    QuarantineRow,
    RoundBroker,
    RoundRow,
    Rows,
    TopicRow,
    encode_rows,
)
from streaming.groups.state import UnknownStateVersion, decode_reserved, decode_state, encode_state
from streaming.groups.verdict_inputs import unpack_inputs
from streaming.groups.verdicts import CONFIGURED, DECLARED, INVARIANT, PROMISE, UNEXPLAINED

__all__ = [
    "CONFIGURED",
    "DECLARED",
    "INVARIANT",
    "PROMISE",
    "UNEXPLAINED",
    "Allocation",
    "GapRow",
    "GroupConfig",
    "Incarnations",
    "OpenTransactionRow",
    "QuarantineRow",
    "RoundBroker",
    "RoundRow",
    "Rows",
    "TopicRow",
    "UnknownStateVersion",
    "advance",
    "custom_of",
    "decode_reserved",
    "decode_state",
    "encode_rows",
    "encode_state",
    "queue_list",
    "unpack_inputs",
]
