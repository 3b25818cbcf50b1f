"""Story 12: a transaction that hangs.

`settlement-exactly-once` has no members: a transactional producer (confluent-kafka) commits the end of `transfers`
every two seconds. At 25 s it leaves a transaction open whose offsets are a million too high; at 85 s that one is
aborted, and commits continue. No other group of the demo is in the same partition of the offsets log (a test checks
it).

Expected: during the transaction the lag of the group is unknown, with the finding `offsets_blocked` that names the
transactional id; one row of `open_transactions` at its beginning and one at its end; the alert `offsets_blocked`
fires once and resolves; there is never an offset of a million or more; every committed one is counted.
"""

from __future__ import annotations

import threading

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from streaming.demo.journal import PartitionId, by_topic
from streaming.demo.stage import QUIET_LIBRDKAFKA, Stage, StageOverError, Story
from streaming.demo.stories.transactions import FAR_AHEAD

GROUP, TRANSACTIONAL_ID = "settlement-exactly-once", "settlement-writer"

_TOPIC, _PARTITIONS = "transfers", 3

_EVERY_S = 2.0

_HANGS_AT, _ENDS_AT = 25.0, 85.0
"""With a round every two seconds the finding comes after four rounds and the alert twelve rounds later, which leaves
spare time on a busy machine."""

_OPEN_MS = 300_000
"""Longer than the story, so that the broker does not abort the transaction first."""


class _Writer:
    """Commits the end of the topic in transactions until it leaves."""

    def __init__(self, stage: Stage) -> None:
        self.settled = False
        self._stage = stage
        self._leaving = threading.Event()
        self._turn = threading.Lock()
        common = {"bootstrap.servers": stage.bootstrap, "client.id": TRANSACTIONAL_ID, "log_level": QUIET_LIBRDKAFKA}
        self._consumer = Consumer({**common, "group.id": GROUP, "enable.auto.commit": False})
        self._producer = Producer({**common, "transactional.id": TRANSACTIONAL_ID, "transaction.timeout.ms": _OPEN_MS})
        self._producer.init_transactions(20)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        stage.enter(self)

    def leave(self) -> None:
        """Close the clients."""
        self._leaving.set()
        self._thread.join()

    def hang(self) -> None:
        """Leave a transaction open until the demo's clock reaches its end, or the stage goes quiet."""
        with self._turn:
            ahead = {partition: offset + FAR_AHEAD for partition, offset in self._ends().items()}
            self._begin(ahead)
            self._stage.step(12, "a transaction hangs", group=GROUP)
            try:
                self._stage.until(_ENDS_AT)
            finally:
                self._producer.abort_transaction(20)
                self._stage.journal.write(12, "aborted", group=GROUP, offsets=by_topic(ahead))
        self._stage.step(12, "the transaction was aborted", group=GROUP)

    def _run(self) -> None:
        while not self._leaving.wait(_EVERY_S):
            with self._turn:
                at_the_end = self._stage.drained.is_set()
                if not self.settled:
                    self._commit(self._ends())
                self.settled = self.settled or at_the_end
        self._consumer.close()

    def _ends(self) -> dict[PartitionId, int]:
        places = [TopicPartition(_TOPIC, partition) for partition in range(_PARTITIONS)]
        return {(_TOPIC, p.partition): self._consumer.get_watermark_offsets(p, timeout=20)[1] for p in places}

    def _begin(self, offsets: dict[PartitionId, int]) -> None:
        self._producer.begin_transaction()
        listed = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        self._producer.send_offsets_to_transaction(listed, self._consumer.consumer_group_metadata(), 20)

    def _commit(self, offsets: dict[PartitionId, int]) -> None:
        self._begin(offsets)
        try:
            self._producer.commit_transaction(20)
        except KafkaException:
            self._stage.ledger.uncertain(12, GROUP, offsets)
            raise
        self._stage.ledger.committed(12, GROUP, offsets)


def _play(stage: Stage) -> None:
    writer = _Writer(stage)
    try:
        stage.until(_HANGS_AT)
        writer.hang()
    except StageOverError:
        return


STORY = Story(
    number=12,
    title="a transaction that hangs, and holds the log back",
    groups=(GROUP,),
    topics={_TOPIC: _PARTITIONS},
    play=_play,
)
