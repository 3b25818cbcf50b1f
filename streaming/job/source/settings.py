"""The source's settings: one JSON option without secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from streaming.config import Filters, KafkaSettings, OffsetsLog, Settings
from streaming.records import ROCKETMQ
from streaming.stores import on_object_store


class SourceSettings(BaseModel):
    """Settings of the source, as Spark's option `settings` has them.

    Attributes:
        cluster: Configured name of the cluster; rounds of another are passed over.
        kafka: `KafkaSettings.public()`: secrets come from the environment or from files where the clients are created
            (`KafkaSettings.from_public`). None when the watched cluster is no Kafka: then all comes from the bus.
        bus: The same for the Kafka that holds events and rounds; None when the watched cluster does, or a folder.
        bus_folder: The folder that holds events and rounds, on a disk with its whole path; None when a Kafka does.
        filters: What is watched.
        offsets_topic: The offsets log.
        events_topic: The probe's events.
        rounds_topic: The probe's rounds.
        offsets_log: Which source of groups a new query follows: as in `Settings`, or "rocketmq".
        interval_ms: Interval between rounds, used until a closing record gives the probe's own.
        max_rounds: Rounds per batch at the most.
        max_records: Offsets of the log and events per batch at the most, unless one round alone has more. Bounds the
            memory of a catch-up: there are never more windows than records, at some 300 bytes each.
        max_bytes: Bytes of events per batch at the most, unless one round alone has more: a row of `lag` comes from
            some 25 of them, so this bounds the rows of a batch, which the driver holds.
        tasks: Tasks per batch.
        patience_s: Time without progress after which a task that reads fails.
        hold: A file on the driver's machine; while it exists no further batch begins. None when there is none.
        start: Offsets at which a new query starts; None for the beginning of everything. The same at every start of a
            query.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: str
    kafka: dict[str, Any] | None
    bus: dict[str, Any] | None = None
    bus_folder: str | None = None
    filters: Filters = Filters()
    offsets_topic: str = "__consumer_offsets"
    events_topic: str = "evenkeel.events"
    rounds_topic: str = "evenkeel.rounds"
    offsets_log: OffsetsLog | Literal["rocketmq"] = "auto"
    interval_ms: int = Field(default=10_000, ge=1)
    max_rounds: int = Field(default=60, ge=1)
    max_records: int = Field(default=2_000_000, ge=1)
    max_bytes: int = Field(default=64 * 1024 * 1024, ge=1)
    tasks: int = Field(default=2, ge=1)
    patience_s: float = Field(default=120.0, gt=0)
    hold: str | None = None
    start: dict[str, Any] | None = None

    @classmethod
    def of(cls, settings: Settings, hold: str | None = None, start: dict[str, Any] | None = None) -> Self:
        """The source's share of all settings."""
        folder = settings.bus_folder
        if folder is not None and not on_object_store(folder):
            folder = str(Path(folder).absolute())
        return cls(
            cluster=settings.cluster,
            kafka=settings.kafka.public() if settings.rocketmq is None else None,
            bus=settings.bus.public() if isinstance(settings.bus, KafkaSettings) else None,
            bus_folder=folder,
            filters=settings.filters,
            offsets_topic=settings.job.offsets_topic,
            events_topic=settings.probe.events_topic,
            rounds_topic=settings.probe.rounds_topic,
            offsets_log=settings.offsets_log if settings.rocketmq is None else ROCKETMQ,
            interval_ms=settings.probe.interval_ms,
            max_rounds=settings.job.max_rounds,
            tasks=settings.job.tasks,
            hold=hold,
            start=start,
        )

    def option(self) -> str:
        """The text of Spark's option `settings`."""
        return self.model_dump_json()

    def client(self) -> KafkaSettings | None:
        """The connection to the watched cluster, with the secrets of this process; None when that is no Kafka."""
        if self.kafka is None:
            return None
        return KafkaSettings.from_public(self.kafka, "kafka", self.cluster)

    def bus_client(self) -> KafkaSettings | None:
        """The connection to the Kafka that holds events and rounds, likewise; None when another place does."""
        if self.bus is None:
            return None
        return KafkaSettings.from_public(self.bus, "bus", self.cluster)
