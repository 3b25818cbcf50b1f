"""Readers of ranges on a real broker, and plain consumers to compare them with."""

from __future__ import annotations

from kafka import KafkaConsumer

from streaming.record_batches import RangeReader, take_whole_batches

# Consumers of readers, which nothing else closes (`conftest.py`).
of_readers: list[KafkaConsumer] = []


def consumer(bootstrap: str, **changes: object) -> KafkaConsumer:
    given: dict[str, object] = {
        "bootstrap_servers": bootstrap,
        "group_id": None,
        "isolation_level": "read_committed",
        "auto_offset_reset": "none",
        "check_crcs": False,
        "allow_auto_create_topics": False,
        "fetch_max_wait_ms": 20,
        "reconnect_backoff_max_ms": 500,
    }
    return KafkaConsumer(**(given | changes))


def reader(bootstrap: str, patience_s: float = 60.0, settle_s: float = 0.0, **changes: object) -> RangeReader:
    opened = consumer(bootstrap, **changes)
    of_readers.append(opened)
    return RangeReader(take_whole_batches(opened), patience_s=patience_s, settle_s=settle_s)
