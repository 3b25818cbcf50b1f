"""The connection settings for TLS, against a broker port with nothing else."""

from __future__ import annotations

import pytest

from streaming.config import KafkaSettings, ProbeSettings, Settings
from streaming.job.source import SourceSettings
from streaming.job.source.connection import kept_readers
from streaming.probe import Probe, check
from tests.probe.secured import Secured

pytestmark = [pytest.mark.xdist_group("secured"), pytest.mark.turn(6)]


@pytest.fixture
def encrypted(secured_broker: Secured, unique: str) -> Settings:
    """Settings for a broker's TLS port, whose certificate only we trust."""
    return Settings(
        cluster="encrypted",
        kafka=KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{secured_broker.tls_port}",
            security_protocol="SSL",
            ssl_cafile=secured_broker.ca_file,
        ),
        probe=ProbeSettings(
            interval_ms=500, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
    )


@pytest.mark.kafka
def test_probe_and_source_speak_tls_with_the_settings_of_one_place(encrypted: Settings) -> None:
    assert check(encrypted) == []
    with Probe(encrypted) as probe:
        closed = probe.round()
    reader = kept_readers(SourceSettings.of(encrypted), 30.0)
    assert reader.bus.partitions("__consumer_offsets") == set(range(len(closed.log)))


@pytest.mark.kafka
def test_a_certificate_that_is_not_trusted_is_one_sentence(encrypted: Settings) -> None:
    kafka = encrypted.kafka.model_copy(update={"ssl_cafile": None})
    problems = check(encrypted.model_copy(update={"kafka": kafka}))
    assert len(problems) == 1
    assert "certificate" in str(problems[0]).lower()
    assert "\n" not in str(problems[0])
