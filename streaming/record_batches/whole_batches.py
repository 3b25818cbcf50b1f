"""Whole record batches from kafka-python's fetcher.

kafka-python returns records one by one, each a tuple of thirteen fields; that costs more than all the following steps.
But its fetcher decodes partitions in one replaceable class, `Fetcher.PartitionRecords`: the class here yields all
record batches of a response as one item instead, and the rest of the client (connections, security, leader changes,
fetch sessions) stays as it is. This uses partly private parts of kafka-python 3.0.12; the release is pinned, and a
contract test compares the result with the plain consumer's.

Records from before magic 2 (Kafka 0.11) are not read: each message of theirs, or each compressed set of them, comes as
a batch that cannot be taken apart, and goes to `quarantine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.errors import CorruptRecordError, KafkaError
from kafka.record import MemoryRecords

from streaming.record_batches.batches import (
    CONTROL,
    TRANSACTIONAL,
    FetchedBatch,
    FetchedRun,
    Missing,
    chased,
    is_old,
    missing_from,
    run_of,
)


def ask_offsets(
    question: Callable[..., dict[TopicPartition, int]], partitions: Sequence[TopicPartition], timeout_ms: int
) -> dict[TopicPartition, int]:
    """Ask for one offset of each partition; for none of them nothing is asked.

    Args:
        question: `beginning_offsets` or `end_offsets` of a consumer.
        partitions: Which.
        timeout_ms: Limit for the answer. Nothing can end this wait early.

    Raises:
        KafkaError: A partition has no leader, or the brokers did not answer in time.
    """
    if not partitions:
        return {}
    try:
        return question(list(partitions), timeout_ms=timeout_ms)
    except KeyError as error:
        # kafka-python 3.0.12 leaves a partition without a leader out of the answers of the others, and then fails on
        # its own lookup (Fetcher.beginning_or_end_offset). Where none of them has a leader, it waits for one.
        named = [f"partition {tp.partition} of {tp.topic}" for tp in partitions if tp in error.args]
        message = f"{named[0] if named else 'a partition'} has no leader at the moment"
        raise KafkaError(message) from error


_NO_TIME = -1


def _too_old() -> Iterator[Any]:
    message = "its records have a format from before Kafka 0.11"
    raise CorruptRecordError(message)
    yield


# A response with less than this (some 200 records) is faster batch by batch. A steady job reads as little per partition
# of the log, where hardly a key comes twice.
_FEW_BYTES = 24 * 1024


class _WholeBatches(Fetcher.PartitionRecords):  # type: ignore[misc]  # kafka-python ships no types
    """Yields one partition of a fetch response as a run of record batches; a few, or those beside older ones, singly.

    Like the method it replaces (kafka-python 3.0.12, `Fetcher.PartitionRecords._unpack_records`) it leaves out aborted
    transactions under `read_committed`, and control batches always. Checksums are not verified: kafka-python does that
    in Python, at a cost above everything else here; brokers verify them on write.
    """

    next_fetch_offset: int

    def _unpack_records(
        self,
        tp: TopicPartition,
        records: Any,
        key_deserializer: object,  # noqa: ARG002 - the signature of the method it replaces
        value_deserializer: object,  # noqa: ARG002
    ) -> Iterator[FetchedRun | FetchedBatch | Missing]:
        try:
            yield from self._items(tp, memoryview(records._buffer))  # noqa: SLF001 - see the module's docstring
        except Exception:
            # kafka-python 3.0.12 would poll a part for ever that returns nothing more and is not drained.
            self.drain()
            raise
        self.drain()

    def _items(self, tp: TopicPartition, data: memoryview) -> Iterator[FetchedRun | FetchedBatch | Missing]:
        places, sound = chased(data)
        if places[-1] < max(_FEW_BYTES, 1) or is_old(data, places):
            yield from self._one_by_one(MemoryRecords(data[: places[-1]]))
        else:
            yield from self._run(run_of(data, np.array(places, np.int64)))
        if not sound:
            where = f"{tp.topic}-{tp.partition} from offset {self.next_fetch_offset} on"
            message = f"the record batch of {where} has an impossible length"
            raise CorruptRecordError(message)

    def _run(self, whole: FetchedRun) -> Iterator[FetchedRun | Missing]:
        missing = missing_from(whole, self.next_fetch_offset)
        if missing is not None:
            yield missing
        run = self._left(whole)
        if run is not None:
            yield run

    def _one_by_one(self, records: MemoryRecords) -> Iterator[FetchedBatch | Missing]:
        committed = self.isolation_level == IsolationLevel.READ_COMMITTED
        while (batch := records.next_batch()) is not None:
            if batch.magic < 2:
                # It begins at the requested offset, or later; its own offset is that of its last record.
                last = batch.base_offset
                yield FetchedBatch(min(self.next_fetch_offset, last), last, _NO_TIME, _too_old())
                self.next_fetch_offset = last + 1
                continue
            if batch.base_offset > self.next_fetch_offset:
                yield Missing(self.next_fetch_offset, batch.base_offset - 1)
            if batch.records_count < batch.next_offset - batch.base_offset:
                yield Missing(batch.base_offset, batch.last_offset)
            aborted = committed and batch.has_producer_id() and self._is_aborted(batch)
            self.leader_epoch = batch.leader_epoch
            self.next_fetch_offset = batch.next_offset
            if aborted or batch.is_control_batch:
                continue
            self.records_read += batch.records_count
            self.bytes_read += batch.size_in_bytes
            yield FetchedBatch(batch.base_offset, batch.last_offset, batch.max_timestamp, batch)

    def _left(self, run: FetchedRun) -> FetchedRun | None:
        """A run without control batches and aborted transactions; None when it is empty."""
        left = (run.attributes & CONTROL) == 0
        committed = self.isolation_level == IsolationLevel.READ_COMMITTED
        if committed and (self.aborted_transactions or self.aborted_producer_ids):
            told = ((run.attributes & (CONTROL | TRANSACTIONAL)) != 0) & (run.producer_id >= 0)
            for row in np.flatnonzero(told).tolist():
                left[row] &= not self._is_aborted(run.batch(row).records)
        self.leader_epoch = int(run.leader_epoch[-1])
        self.next_fetch_offset = run.offset + 1
        rest = run.where(left)
        if rest is not None:
            self.records_read += int(rest.records.sum())
            self.bytes_read += int(rest.size.sum())
        return rest

    def _is_aborted(self, batch: Any) -> bool:
        self._consume_aborted_transactions_up_to(batch.last_offset)
        # Compaction can empty a control batch; kafka-python would then raise when it looks into it. Java's consumer,
        # too, does not treat an emptied one as an abort marker (CompletedFetch.containsAbortMarker).
        if batch.is_control_batch and batch.records_count and self._contains_abort_marker(batch):
            self.aborted_producer_ids.discard(batch.producer_id)
            return True
        return bool(self._is_batch_aborted(batch))


def take_whole_batches(consumer: KafkaConsumer) -> KafkaConsumer:
    """Make a consumer's `poll` return runs of record batches instead of records; returns the same consumer."""
    consumer._fetcher.PartitionRecords = _WholeBatches  # noqa: SLF001 - see the module's docstring
    return consumer
