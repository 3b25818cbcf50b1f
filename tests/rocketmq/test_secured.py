"""A real cluster that wants TLS and a login."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.config import KafkaSettings, ProbeSettings, RocketMQSettings, Settings
from streaming.probe.rocketmq.run import RocketMQProbe, cluster_problems, open_client
from streaming.rocketmq import Credentials, Frame, Question, Request
from tests.rocketmq.servers import EmbeddedRocketMQ

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(200)]

_USER, _SECRET = "evenkeel", "not-a-secret"


@pytest.fixture(scope="module")
def ca_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, with its key beside it as `key.pem`."""
    folder = tmp_path_factory.mktemp("tls")
    names = "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 {names} -keyout key.pem -out ca.pem"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder / "ca.pem"


@pytest.fixture(scope="module")
def secured(ca_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRocketMQ]:
    """A cluster of 5.5.0 that takes nothing but TLS, and whose broker knows one user."""
    folder = tmp_path_factory.mktemp("secured")
    package = "org.apache.rocketmq.auth.authentication.provider"
    with EmbeddedRocketMQ(
        folder,
        brokers=["broker-a"],
        options=(
            *("-Dtls.server.mode=enforcing", "-Dtls.test.mode.enable=false", "-Dtls.enable=true"),
            *(f"-Dtls.server.certPath={ca_file}", f"-Dtls.server.keyPath={ca_file.with_name('key.pem')}"),
            *("-Dtls.client.authServer=true", f"-Dtls.client.trustCertPath={ca_file}"),
        ),
        settings={
            "authenticationEnabled": "true",
            "authenticationProvider": f"{package}.DefaultAuthenticationProvider",
            "authenticationMetadataProvider": f"{package}.LocalAuthenticationMetadataProvider",
            "initAuthenticationUser": json.dumps({"username": _USER, "password": _SECRET}),
            "innerClientAuthenticationCredentials": json.dumps({"accessKey": _USER, "secretKey": _SECRET}),
            "authConfigPath": str(folder / "auth"),
        },
        credentials=Credentials(_USER, _SECRET),
        tls=ssl.create_default_context(cafile=str(ca_file)),
    ) as running:
        yield running


def settings(cluster: EmbeddedRocketMQ, **connection: object) -> Settings:
    return Settings(
        rocketmq=RocketMQSettings(name_servers=cluster.addresses[0], **connection),  # type: ignore[arg-type]
        bus=KafkaSettings(),
    )


def test_who_trusts_the_certificate_and_has_the_secret_is_answered(secured: EmbeddedRocketMQ, ca_file: Path) -> None:
    given = settings(secured, tls=True, ssl_cafile=ca_file, access_key=_USER, secret_key=_SECRET)
    assert list(cluster_problems(given)) == []
    assert given.rocketmq is not None
    with open_client(given.rocketmq) as client:
        code = Request.GET_ALL_CONSUMER_OFFSET
        [answer] = client.ask([Question(secured.brokers["broker-a"].address, code)], 10)
    assert answer.code == 0


def test_without_tls_with_a_foreign_certificate_and_with_a_wrong_secret_a_sentence_says_what_to_do(
    secured: EmbeddedRocketMQ, ca_file: Path
) -> None:
    [plain] = cluster_problems(settings(secured))
    assert "No name server of the RocketMQ cluster answers" in plain
    [foreign] = cluster_problems(settings(secured, tls=True))
    assert "its certificate is refused: self" in foreign
    [wrong] = cluster_problems(settings(secured, tls=True, ssl_cafile=ca_file, access_key=_USER, secret_key="guess"))
    assert wrong.startswith(f"User '{_USER}' may not ask broker {secured.brokers['broker-a'].address} about groups")
    [nobody] = cluster_problems(settings(secured, tls=True, ssl_cafile=ca_file))
    assert nobody.startswith("This client may not ask broker ")


@pytest.mark.kafka
def test_a_secret_that_changes_in_its_file_is_used_from_the_next_round_on(
    secured: EmbeddedRocketMQ, ca_file: Path, tmp_path: Path, bootstrap: str, unique: str
) -> None:
    file = tmp_path / "secret"
    file.write_text("an older one")
    given = settings(secured, tls=True, ssl_cafile=ca_file, access_key=_USER, secret_key_file=file).model_copy(
        update={
            "cluster": unique,
            "bus": KafkaSettings(bootstrap_servers=bootstrap),
            "probe": ProbeSettings(events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds"),
        }
    )
    with RocketMQProbe(given) as probe:
        probe.round()
        assert _is_answered(probe, secured) is False
        file.write_text(f"{_SECRET}\n")
        probe.round()
        assert _is_answered(probe, secured) is True


def _is_answered(probe: RocketMQProbe, secured: EmbeddedRocketMQ) -> bool:
    """Whether the broker answers what the probe asks with its present client."""
    question = Question(secured.brokers["broker-a"].address, Request.GET_ALL_CONSUMER_OFFSET)
    [answer] = probe._client.ask([question], 10)
    return isinstance(answer, Frame) and answer.code == 0
