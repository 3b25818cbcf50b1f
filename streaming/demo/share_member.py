"""A member of a share group (KIP-932) on librdkafka, in a thread, with records that it cannot process.

It releases those, so that they are delivered again, until the group gives them up, and accepts all others.
"""

from __future__ import annotations

import threading
from typing import Final

from confluent_kafka import AcknowledgeType, ShareConsumer

from streaming.demo.stage import QUIET_LIBRDKAFKA, Stage

_POLL_S = 0.5
_ACKNOWLEDGE_S = 10.0

_POISON_EVERY: Final = 50
"""One record of so many: at a record a second, one or two within the demo's first pass."""

_POISON: Final = 10

_EMPTY_POLLS: Final = 4
"""After so many polls without a record, once none is produced any more, nothing is left: what is released comes back at
once."""


class ShareMember:
    """One running member.

    Attributes:
        settled: No record has come for a while since the stage went quiet, or it is closed.
    """

    def __init__(self, group: str, topic: str, client_id: str, stage: Stage) -> None:
        """Start its thread."""
        self.settled = False
        self._stage, self._topic = stage, topic
        self._leaving = threading.Event()
        self._settings = {
            "bootstrap.servers": stage.bootstrap,
            "group.id": group,
            "client.id": client_id,
            "share.acknowledgement.mode": "explicit",
            "log_level": QUIET_LIBRDKAFKA,
        }
        self._thread = threading.Thread(target=self._run, daemon=True, name=client_id)
        self._thread.start()

    def leave(self) -> None:
        """Close the client: it leaves its group."""
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        empty = 0
        try:
            with ShareConsumer(self._settings) as consumer:
                consumer.subscribe([self._topic])
                while not self._leaving.is_set():
                    records = [message for message in consumer.poll(_POLL_S) if message.error() is None]
                    for message in records:
                        poison = (message.offset() or 0) % _POISON_EVERY == _POISON
                        consumer.acknowledge(message, AcknowledgeType.RELEASE if poison else AcknowledgeType.ACCEPT)
                    if records:
                        consumer.commit_sync(_ACKNOWLEDGE_S)
                    empty = 0 if records or not self._stage.drained.is_set() else empty + 1
                    self.settled = empty >= _EMPTY_POLLS
        finally:
            self.settled = True
