"""A test's log (`conftest.py`): with its own lines, without those of Kafka clients' threads."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest
from kafka import KafkaConsumer
from kafka.errors import KafkaError

from streaming.demo.ports import free_port


class Everything(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.mark.nightly
def test_a_client_that_loses_its_broker_is_not_in_a_tests_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "kafka")  # (the job's source silences it in the process of its tests)
    everything = Everything()
    logging.getLogger().addHandler(everything)
    try:
        with suppress(KafkaError):
            KafkaConsumer(bootstrap_servers=f"127.0.0.1:{free_port()}", bootstrap_timeout_ms=1_000).close()
    finally:
        logging.getLogger().removeHandler(everything)
    logging.getLogger("streaming").warning("our own line")
    refused = [record for record in everything.records if "ECONNREFUSED" in record.getMessage()]
    assert refused, "the client logs nothing: there is nothing to leave out"
    assert [message for message in caplog.messages if "ECONNREFUSED" in message] == []
    assert "our own line" in caplog.messages
