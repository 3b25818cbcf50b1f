"""Our data path between Spark and the operator compared with pyspark's own, on the same bytes."""

from __future__ import annotations

import importlib.util
import io
import json
import pickle
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyspark
import pyspark.sql.pandas.serializers as patched
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType
from pyspark.worker import wrap_grouped_map_pandas_udf_with_state

from streaming.exceptions import SetupError
from streaming.groups import GapRow, Rows, encode_rows
from streaming.job.arrow_state import ArrowState, install
from tests.examples import examples

_ROWS = StructType([StructField("rows", BinaryType())])
_STATE = StructType([StructField("schema_version", IntegerType()), StructField("payload", BinaryType())])
_INFO = pa.struct(
    [
        ("properties", pa.string()),
        ("keyRowAsUnsafe", pa.binary()),
        ("object", pa.binary()),
        ("startOffset", pa.int32()),
        ("numRows", pa.int32()),
        ("isLastChunk", pa.bool_()),
    ]
)

Apply = Callable[[tuple[str], Iterator[pd.DataFrame], Any], Iterator[pd.DataFrame]]


def pristine() -> Any:
    """The serializers as pyspark ships them, whatever this process has replaced."""
    spec = importlib.util.find_spec("pyspark.sql.pandas.serializers")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def serializer(module: Any, most: int = 10_000) -> Any:
    return module.ApplyInPandasWithStateSerializer(
        timezone="UTC",
        safecheck=True,
        assign_cols_by_name=True,
        prefer_int_ext_dtype=False,
        state_object_schema=_STATE,
        arrow_max_records_per_batch=most,
        prefers_large_var_types=False,
        int_to_decimal_coercion_enabled=False,
    )


Key = tuple[str, list[bytes], tuple[int, bytes] | None]
"""Key, payloads of the batch, stored state."""


def from_the_jvm(keys: list[Key], rows_per_batch: int, rows_per_chunk: int) -> bytes:
    """The JVM's stream: rows of many keys in a batch, and a key's rows in several chunks and batches."""
    chunks = []
    for key, payloads, state in keys:
        cut = [payloads[i : i + rows_per_chunk] for i in range(0, len(payloads), rows_per_chunk)]
        chunks += [(key, part, state, part is cut[-1]) for part in cut]
    sink = io.BytesIO()
    schema = pa.schema([("key", pa.string()), ("payload", pa.binary()), ("_state", _INFO)])
    with pa.ipc.new_stream(sink, schema) as writer:
        while chunks:
            taken, size = [], 0
            while chunks and (not taken or size + len(chunks[0][1]) <= rows_per_batch):
                taken.append(chunks.pop(0))
                size += len(taken[-1][1])
            infos: list[dict[str, Any] | None] = []
            start = 0
            for key, part, state, last in taken:
                infos.append(
                    {
                        "properties": json.dumps(properties(defined=state is not None)),
                        "keyRowAsUnsafe": key.encode(),
                        "object": pickle.dumps(state) if state is not None else None,
                        "startOffset": start,
                        "numRows": len(part),
                        "isLastChunk": last,
                    }
                )
                start += len(part)
            infos += [None] * (size - len(infos))
            columns = [
                pa.array([key for key, part, _, _ in taken for _ in part], pa.string()),
                pa.array([payload for _, part, _, _ in taken for payload in part], pa.binary()),
                pa.array(infos, _INFO),
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return sink.getvalue()


def properties(*, defined: bool) -> dict[str, Any]:
    return {
        "batchProcessingTimeMs": 1_700_000_000_000,
        "eventTimeWatermarkMs": -1,
        "timeoutConf": "NoTimeout",
        "hasTimedOut": False,
        "watermarkPresent": False,
        "defined": defined,
        "updated": False,
        "removed": False,
        "timeoutTimestamp": -1,
    }


def apply(key: tuple[str], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """An operator that stores, removes or keeps its state, and returns rows or none, depending on its input."""
    if isinstance(state, ArrowState):
        state.after, state.rows = answered(key[0], state.payloads, state.before)
        return
    before = state.get if state.exists else None
    after, answer = answered(key[0], [payload for frame in frames for payload in frame["payload"]], before)
    if after is None and before is not None:
        state.remove()
    elif after is not before:
        state.update(after)
    if answer is not None:
        yield pd.DataFrame({"rows": [answer]})


def answered(
    key: str, payloads: list[bytes], before: tuple[int, bytes] | None
) -> tuple[tuple[int, bytes] | None, bytes | None]:
    """The state after and the rows."""
    after = before
    if b"remove" in payloads:
        after = None
    elif b"keep" not in payloads:
        version, held = before or (0, b"")
        after = (version + 1, held + b"".join(payloads))
    if b"silent" in payloads:
        return after, None
    return after, key.encode() + b":" + b",".join(payloads)


def through(worker: Any, sent: bytes) -> tuple[list[bytes], list[dict[str, Any]]]:
    """The rows and states that the JVM gets back, in order. The middle part is that of pyspark's `worker.py`."""
    wrapped = wrap_grouped_map_pandas_udf_with_state(apply, _ROWS, None)

    def mapper(item: Any) -> Any:
        data = (part[0] for part in item[0])
        first = next(data)
        return wrapped([first[0]], ([part[1]] for part in chain([first], data)), item[1])

    answer = io.BytesIO()
    worker.dump_stream(((mapper(item),)[0] for item in worker.load_stream(io.BytesIO(sent))), answer)
    rows: list[bytes] = []
    states: list[dict[str, Any]] = []
    answer.seek(4)  # the marker at the start
    for batch in pa.ipc.open_stream(answer):
        counts = batch.column(0)[0].as_py()
        rows += [row["rows"] for row in batch.column(1).to_pylist()[: counts["dataCount"]]]
        for state in batch.column(2).to_pylist()[: counts["stateCount"]]:
            stored = state["object"]
            states.append(
                state
                | {
                    "properties": json.loads(state["properties"]),
                    "object": tuple(pickle.loads(stored)) if stored else None,
                }
            )
    return rows, states


PAYLOADS = st.lists(st.sampled_from([b"", b"a", b"bc", b"remove", b"keep", b"silent"]), min_size=1, max_size=7)
KEYS = st.lists(
    st.tuples(PAYLOADS, st.none() | st.tuples(st.integers(0, 9), st.binary(max_size=5))), min_size=1, max_size=8
)


@pytest.mark.nightly
@settings(max_examples=examples(150), deadline=None)
@given(keys=KEYS, rows_per_batch=st.integers(1, 9), rows_per_chunk=st.integers(1, 4), most=st.integers(1, 5))
def test_the_jvm_gets_the_same_rows_and_states_either_way(
    keys: list[tuple[list[bytes], tuple[int, bytes] | None]], rows_per_batch: int, rows_per_chunk: int, most: int
) -> None:
    named = [(f"g:{number}", payloads, state) for number, (payloads, state) in enumerate(keys)]
    sent = from_the_jvm(named, rows_per_batch, rows_per_chunk)
    install()
    assert through(serializer(patched, most), sent) == through(serializer(pristine(), most), sent)


def test_pyspark_is_the_release_whose_class_is_known() -> None:
    install()
    loads = patched.ApplyInPandasWithStateSerializer.load_stream
    assert loads.__module__ == "streaming.job.arrow_state"


def test_another_pyspark_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.2.1")
    with pytest.raises(SetupError, match=r"^The job needs pyspark 4\.2\.0, and this is 4\.2\.1: use a Spark"):
        install()


def test_a_row_comes_out_as_it_was_packed() -> None:
    row = GapRow("c", "log", "t", 1, 2, 3, None, None, "gone")
    state = ArrowState(b"k", json.dumps(properties(defined=False)), None)
    state.rows = encode_rows(Rows(gaps=[row]))
    assert msgspec.msgpack.decode(state.rows, type=Rows).gaps == [row]
