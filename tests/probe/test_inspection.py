"""What the doctor asks of a cluster, against real brokers: rights one by one, and brokers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from streaming.config import KafkaSettings, Settings
from streaming.demo.ports import free_port
from streaming.probe import CheckResult, Probe, inspect, inspection
from tests.probe.secured import RIGHTS, Secured
from tests.probe.witness import Cluster

pytestmark = [pytest.mark.xdist_group("broker"), pytest.mark.turn(6)]


def looked(settings: Settings) -> dict[str, list[CheckResult]]:
    found: dict[str, list[CheckResult]] = {}
    for line in inspect(settings, thoroughly=True):
        found.setdefault(line.what, []).append(line)
    return found


def problems(found: dict[str, list[CheckResult]]) -> list[str]:
    return [line.text for lines in found.values() for line in lines if line.state != "ok"]


@pytest.mark.kafka
def test_each_right_has_a_line_of_its_own(secured: Secured) -> None:
    settings = secured.settings()
    secured.grant(*(right for place, right in enumerate(RIGHTS) if place != 1))
    found = looked(settings)
    assert len(problems(found)) == 1
    assert "lacks the right Describe on Group '*'" in found["right Describe on groups"][0].text
    assert found["right Read on Topic '__consumer_offsets'"][0].state == "ok"
    assert found["right Describe on topics"][0].state == "ok"
    secured.grant(RIGHTS[1])
    assert problems(looked(settings)) == []


@pytest.mark.kafka
def test_without_the_right_to_read_the_log_nothing_is_wrong_where_groups_may_be_asked_for(secured: Secured) -> None:
    secured.grant(*RIGHTS[1:])
    settings = secured.settings().model_copy(update={"offsets_log": "log"})
    found = looked(settings)
    assert "lacks the right Read on Topic '__consumer_offsets'" in problems(found)[0]
    found = looked(secured.settings())
    assert problems(found) == []
    assert "groups are asked for" in found["right Read on Topic '__consumer_offsets'"][0].text


@pytest.mark.kafka
def test_a_cluster_with_rounds_is_well(cluster: Cluster, settings: Settings) -> None:
    with Probe(settings) as probe:
        probe.round()
    found = looked(settings)
    assert problems(found) == []
    assert found["kafka: brokers"][0].text.startswith("1 up")


def test_a_broker_whose_advertised_address_takes_no_connection_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    answer = SimpleNamespace(brokers=[SimpleNamespace(node_id=7, host="127.0.0.1", port=port)])
    monkeypatch.setattr(inspection, "Requests", lambda _: SimpleNamespace(ask_metadata=lambda *_: answer))
    (told,) = inspection.inspect_brokers("kafka", KafkaSettings(), None)
    assert told.state == "wrong"
    assert told.text.startswith(f"Broker 7 says that it is at 127.0.0.1:{port}, which cannot be reached from here")
