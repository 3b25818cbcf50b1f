"""Arrow instead of pandas between Spark and the operator.

For every key of a batch `applyInPandasWithState` builds pandas series of its rows, a frame of these, a frame of its
state and one of its output: 40 % of the Python workers' time in a steady batch of 1,000 groups. The operator has one
binary column each way and needs none of this. So the class that reads and writes the worker's two streams
(`ApplyInPandasWithStateSerializer`, pyspark 4.2.0) gets two methods of ours. The bytes on the wire are the same, and so
is what the JVM does with them; a test compares both ways row by row.

The class is half private, like the class of kafka-python that the source extends; so the release is pinned, and another
one, as a cluster may have, is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql.pandas.serializers import (
    ApplyInPandasWithStateSerializer,
    ArrowStreamPandasSerializer,
    ArrowStreamSerializer,
)
from pyspark.sql.pandas.types import to_arrow_type

from streaming.exceptions import SetupError

_KNOWN = "4.2.0"

# Output is sent once it has this many bytes, so that neither side ever holds a whole partition.
_SEND_BYTES = 4 << 20


class ArrowState:
    """State of one key, with the key's payloads of this batch and the rows that they result in.

    It has what pyspark itself asks of its `GroupState` in a query without timeouts.

    Attributes:
        before: The stored value; None where there is none.
        after: The value to store, to be set by the operator; None to have none.
        payloads: Packed inputs of this batch.
        rows: Packed output rows, to be set by the operator; None for none.
    """

    __slots__ = ("_key_row", "_properties", "after", "before", "payloads", "rows")

    # A query without timeouts is never called because of one.
    hasTimedOut = False  # noqa: N815 - pyspark's name

    def __init__(self, key_row: bytes, properties: str, before: tuple[Any, ...] | None) -> None:
        self._key_row = key_row
        self._properties = properties
        self.before = before
        self.after = before
        self.payloads: list[bytes] = []
        self.rows: bytes | None = None

    def packed(self, dumps: Callable[[Any], bytes]) -> dict[str, Any]:
        """The state as it is sent back to the JVM; `dumps` pickles."""
        return {
            "properties": _written(self._properties, self.after is not self.before, self.after is not None),
            "keyRowAsUnsafe": self._key_row,
            "object": dumps(self.after) if self.after is not None else None,
            "oldTimeoutTimestamp": _read(self._properties)["timeoutTimestamp"],
        }


# All keys of a batch have the same properties, except for whether there is a state.
@lru_cache(maxsize=64)
def _read(properties: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(properties)
    return read


@lru_cache(maxsize=64)
def _written(properties: str, is_changed: bool, exists: bool) -> str:
    # The value is sent beside them.
    written = _read(properties) | {"optionalValue": None}
    if is_changed:
        written |= {"defined": exists, "updated": exists, "removed": not exists}
    return json.dumps(written)


def install() -> None:
    """Make this process's workers use Arrow; a second call does nothing.

    Raises:
        SetupError: This is another release of pyspark.
    """
    if pyspark.__version__ != _KNOWN:
        message = f"The job needs pyspark {_KNOWN}, and this is {pyspark.__version__}: use a Spark of that release."
        raise SetupError(message)
    ApplyInPandasWithStateSerializer.load_stream = _load_stream
    ApplyInPandasWithStateSerializer.dump_stream = _dump_stream


def _load_stream(serializer: Any, stream: Any) -> Iterator[tuple[Iterator[Any], ArrowState]]:
    """Read keys with all their payloads, each with its state.

    A batch has the rows of many keys. Its last column has, from the top, one struct per chunk that says which rows
    belong to which key; a key's chunks follow each other, if necessary into the next batch.
    """
    state: ArrowState | None = None
    for batch in super(ArrowStreamPandasSerializer, serializer).load_stream(stream):
        columns = [column.to_pylist() for column in batch.columns[:-1]]
        payloads = columns[batch.schema.get_field_index("payload")]
        for info in batch.column(batch.num_columns - 1).to_pylist():
            if info is None:
                break
            if state is None:
                stored = info["object"]
                value = tuple(serializer.pickleSer.loads(stored)) if stored else None
                state = ArrowState(info["keyRowAsUnsafe"], info["properties"], value)
            start, count = info["startOffset"], info["numRows"]
            state.payloads.extend(payloads[start : start + count])
            if info["isLastChunk"]:
                # The worker takes the key from the first row of the columns, and passes the rest on unread.
                first = [[column[start]] for column in columns]
                yield iter([(first, state)]), state
                state = None


def _dump_stream(serializer: Any, iterator: Iterable[Any], stream: Any) -> None:
    """Write rows and states."""

    def batches() -> Iterator[pa.RecordBatch]:
        rows: list[bytes] = []
        states: list[dict[str, Any]] = []
        row_type: pa.DataType | None = None
        size = 0
        for ((results, state), return_type), *_ in iterator:
            for _ in results:  # runs the operator
                pass
            if row_type is None:
                row_type = to_arrow_type(return_type, timezone="UTC")
            if state.rows is not None:
                rows.append(state.rows)
                size += len(state.rows)
            packed = state.packed(serializer.pickleSer.dumps)
            states.append(packed)
            size += len(packed["object"] or b"")
            if size > _SEND_BYTES or len(states) >= serializer.arrow_max_records_per_batch:
                yield _batch(serializer, row_type, rows, states)
                rows, states, size = [], [], 0
        if states:
            yield _batch(serializer, row_type, rows, states)

    ArrowStreamSerializer.dump_stream(serializer, serializer._write_stream_start(batches(), stream), stream)  # noqa: SLF001


def _batch(serializer: Any, row_type: pa.DataType, rows: list[bytes], states: list[dict[str, Any]]) -> pa.RecordBatch:
    """One batch for the JVM: how many rows and how many states, the rows (filled up), the states."""
    length = len(states)
    name = row_type.field(0).name
    counts = {"dataCount": [len(rows)] * length, "stateCount": [len(states)] * length}
    # There is at most one row per state: a key's rows are one packed value.
    data = {name: [*rows, *([None] * (length - len(rows)))]}
    columns = {field.name: [state[field.name] for state in states] for field in serializer.result_state_pdf_arrow_type}
    return pa.RecordBatch.from_arrays(
        [
            _struct(serializer.result_count_pdf_arrow_type, counts),
            _struct(row_type, data),
            _struct(serializer.result_state_pdf_arrow_type, columns),
        ],
        names=["_0", "_1", "_2"],
    )


def _struct(kind: pa.StructType, columns: dict[str, list[Any]]) -> pa.StructArray:
    """Structs built from their fields' columns: five times as fast as from dictionaries."""
    return pa.StructArray.from_arrays([pa.array(columns[field.name], field.type) for field in kind], fields=list(kind))
