"""A substitute for cluster and probe: three separate topics, filled record by record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from streaming.config import KafkaSettings
from streaming.events import GroupEvent, encode
from streaming.job.source.settings import SourceSettings
from streaming.offsets_log import partition_for
from streaming.records import GroupObservation, RoundClosed, RoundOpened
from tests.job.source.made_rounds import record, topic
from tests.offsets_log.written import offset_key, offset_value

CLUSTER = "test"


def commit_value(offset: int) -> bytes:
    """Value of an offset commit, v3, without metadata."""
    return offset_value(3, offset, commit_timestamp=1_700_000_000_000)


@dataclass(frozen=True)
class OpenRound:
    """An open round."""

    number: int
    time: int
    log: tuple[int, ...]


class FakeProbe:
    """Writes a log, events and rounds. Topics: PREFIX.log, PREFIX.events, PREFIX.rounds."""

    def __init__(self, bootstrap: str, prefix: str, log_partitions: int = 3, log_topic: str | None = None) -> None:
        self.bootstrap = bootstrap
        self.log_topic = log_topic or f"{prefix}.log"
        self.events_topic = f"{prefix}.events"
        self.rounds_topic = f"{prefix}.rounds"
        self.log_partitions = log_partitions
        self.interval_ms = 1_000
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        topics = [
            NewTopic(self.events_topic, 2, 1),
            NewTopic(self.rounds_topic, 1, 1, topic_configs={"message.timestamp.type": "LogAppendTime"}),
        ]
        if log_topic is None:
            topics.append(NewTopic(self.log_topic, log_partitions, 1))
        self.admin.create_topics(topics)
        self.producer = self._new_producer()
        self._ends = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")

    def _new_producer(self) -> KafkaProducer:
        return KafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=5, max_block_ms=60_000)

    def close(self) -> None:
        self.producer.close()
        self._ends.close()
        self.admin.close()

    def settings(self, **changes: object) -> SourceSettings:
        given = {
            "cluster": CLUSTER,
            "kafka": KafkaSettings(bootstrap_servers=self.bootstrap).public(),
            "offsets_topic": self.log_topic,
            "events_topic": self.events_topic,
            "rounds_topic": self.rounds_topic,
            "interval_ms": self.interval_ms,
        }
        return SourceSettings.model_validate(given | changes)

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Append a commit to the log; call `flush` before reading it."""
        self.log_record(
            partition_for(group, self.log_partitions), offset_key(group, topic, partition), commit_value(offset)
        )

    def log_record(self, log_partition: int, key: bytes | None, value: bytes | None) -> None:
        self.producer.send(self.log_topic, key=key, value=value, partition=log_partition)

    def log_ends(self) -> tuple[int, ...]:
        self.producer.flush()
        partitions = [TopicPartition(self.log_topic, p) for p in range(self.log_partitions)]
        ends = self._ends.end_offsets(partitions)
        return tuple(ends[p] for p in partitions)

    def open_round(self) -> OpenRound:
        record = RoundOpened(v=1, cluster=CLUSTER, probe="fake", interval_ms=self.interval_ms)
        written = self.producer.send(self.rounds_topic, value=encode(record), key=CLUSTER.encode()).get(30)
        return OpenRound(written.offset, written.timestamp, self.log_ends())

    def close_round(
        self,
        opened: OpenRound,
        groups: Mapping[str, Mapping[str, int]],
        gone: tuple[str, ...] = (),
        *,
        close: bool = True,
    ) -> RoundClosed:
        """Write events (group -> topic -> partition count), then the closing record."""
        topics_of: dict[str, Mapping[str, int] | None] = {**groups, **dict.fromkeys(gone)}
        sent = []
        for group, topics in topics_of.items():
            partition = partition_for(group, self.log_partitions)
            saw = GroupObservation(
                round=opened.number,
                time=opened.time,
                log_partition=partition,
                log_position=opened.log[partition],
                state="Stable",
                protocol_type="consumer",
                group_type="classic",
                gone="deleted" if topics is None else None,
                held_since=None,
                topics=tuple(topic(name, *[7] * partitions) for name, partitions in (topics or {}).items()),
            )
            sent.append(GroupEvent(1, CLUSTER, group, saw))
        futures = [self.producer.send(self.events_topic, key=event.key.encode(), value=record(event)) for event in sent]
        events: dict[str, tuple[int, int]] = {}
        for future in futures:
            written = future.get(30)
            first, end = events.get(str(written.partition), (written.offset, written.offset))
            events[str(written.partition)] = min(first, written.offset), max(end, written.offset + 1)
        closed = RoundClosed(
            v=1,
            cluster=CLUSTER,
            probe="fake",
            interval_ms=self.interval_ms,
            round=opened.number,
            time=opened.time,
            log=opened.log,
            log_end=opened.log,
            events=events,
            groups=len(groups),
            written=len(sent),
            size=sum(len(record(event)) for event in sent),
        )
        if close:
            self.rounds_record(encode(closed))
        return closed

    def round(self, groups: Mapping[str, Mapping[str, int]], gone: tuple[str, ...] = ()) -> RoundClosed:
        """Write a whole round."""
        return self.close_round(self.open_round(), groups, gone)

    def rounds_record(self, value: bytes | None) -> None:
        self.producer.send(self.rounds_topic, key=CLUSTER.encode(), value=value).get(30)
