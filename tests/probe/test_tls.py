"""The connection settings for TLS, against a broker that speaks nothing else on its port."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from ports import free_port

from streaming.config import KafkaSettings, ProbeSettings, Settings
from streaming.devcluster.broker import EmbeddedBroker
from streaming.java import find_java
from streaming.job.source import SourceSettings
from streaming.job.source.connection import kept_reader
from streaming.probe import Probe, check

pytestmark = pytest.mark.turn(6)

_PASSWORD = "changeit-please"


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings for a broker's TLS port, whose certificate nobody but we trust."""
    folder = tmp_path_factory.mktemp("tls")
    keytool = find_java().resolve().with_name("keytool")
    store = [
        "-keystore",
        str(folder / "broker.p12"),
        "-storetype",
        "PKCS12",
        "-storepass",
        _PASSWORD,
        "-alias",
        "broker",
    ]
    make = ["-genkeypair", "-keyalg", "RSA", "-dname", "CN=localhost", "-ext", "SAN=ip:127.0.0.1,dns:localhost"]
    subprocess.run([keytool, *make, *store], check=True, capture_output=True)
    subprocess.run(
        [keytool, "-exportcert", "-rfc", "-file", folder / "ca.pem", *store], check=True, capture_output=True
    )
    broker = EmbeddedBroker(folder / "broker")
    port = free_port()
    plain, secure = f"PLAINTEXT://{broker.bootstrap}", f"SSL://127.0.0.1:{port}"
    broker._overrides |= {
        "listeners": f"{plain},CONTROLLER://127.0.0.1:{broker._controller_port},{secure}",
        "advertised.listeners": f"{plain},{secure}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL",
        "ssl.keystore.location": str(folder / "broker.p12"),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": _PASSWORD,
        "ssl.key.password": _PASSWORD,
    }
    with broker:
        # A commit, so that there is an offsets log.
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics({"orders": {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
        admin.close()
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="first", enable_auto_commit=False)
        consumer.assign([TopicPartition("orders", 0)])
        consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(0, "", -1)})
        consumer.close()
        yield Settings(
            cluster="encrypted",
            kafka=KafkaSettings(
                bootstrap_servers=f"127.0.0.1:{port}", security_protocol="SSL", ssl_cafile=folder / "ca.pem"
            ),
            probe=ProbeSettings(interval_ms=500),
        )


@pytest.mark.kafka
def test_probe_and_source_speak_tls_with_the_settings_of_one_place(encrypted: Settings) -> None:
    assert check(encrypted) == []
    with Probe(encrypted) as probe:
        closed = probe.round()
    reader = kept_reader(SourceSettings.of(encrypted), 30.0)
    assert reader.partitions("__consumer_offsets") == set(range(len(closed.log)))


@pytest.mark.kafka
def test_a_certificate_that_is_not_trusted_is_one_sentence(encrypted: Settings) -> None:
    kafka = encrypted.kafka.model_copy(update={"ssl_cafile": None})
    problems = check(encrypted.model_copy(update={"kafka": kafka}))
    assert len(problems) == 1
    assert "certificate" in str(problems[0]).lower()
    assert "\n" not in str(problems[0])
