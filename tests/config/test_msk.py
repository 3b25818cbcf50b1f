"""Amazon MSK's login by IAM: our settings reach the mechanism of kafka-python that signs it."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.net.sasl import get_sasl_mechanism

from streaming.config import KafkaSettings


class Session:
    """What kafka-python asks of botocore's session."""

    def get_credentials(self) -> SimpleNamespace:
        keys = SimpleNamespace(access_key="AKIDEXAMPLE", secret_key="hunter2", token=None)
        return SimpleNamespace(get_frozen_credentials=lambda: keys)

    def get_config_variable(self, name: str) -> str:
        return {"region": "eu-north-1"}[name]


@pytest.fixture
def _botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ModuleType("botocore.session")
    session.Session = Session  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "botocore", ModuleType("botocore"))
    monkeypatch.setitem(sys.modules, "botocore.session", session)


@pytest.mark.usefixtures("_botocore")
@pytest.mark.parametrize("client", [KafkaAdminClient, KafkaConsumer, KafkaProducer])
def test_each_client_signs_a_login_for_its_broker_by_our_settings(client: type) -> None:
    settings = KafkaSettings(
        bootstrap_servers="b-1.example:9098", security_protocol="SASL_SSL", sasl_mechanism="AWS_MSK_IAM"
    )
    config = client.DEFAULT_CONFIG | settings.client_config()  # type: ignore[attr-defined]
    mechanism = get_sasl_mechanism(config["sasl_mechanism"])(host="b-1.example", **config)
    login = json.loads(mechanism.auth_bytes())
    assert (login["host"], login["action"]) == ("b-1.example", "kafka-cluster:Connect")
    assert login["x-amz-credential"].startswith("AKIDEXAMPLE/")
    assert "/eu-north-1/kafka-cluster/" in login["x-amz-credential"]
    assert len(login["x-amz-signature"]) == 64
