"""What the doctor asks of a cluster, against real brokers: rights one by one, brokers, the log."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from kafka.admin import ACLOperation

from streaming.config import Filters, KafkaSettings, Settings
from streaming.demo.ports import free_port
from streaming.probe import CheckResult, Probe, inspect, inspection
from streaming.probe.kafka.requests import Refused
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
def test_without_the_right_to_read_the_log_it_is_said_twice_by_name_and_by_trying(secured: Secured) -> None:
    secured.grant(*RIGHTS[1:])
    settings = secured.settings().model_copy(update={"offsets_log": "log"})
    found = looked(settings)
    assert "lacks the right Read on Topic '__consumer_offsets'" in problems(found)[0]
    # Where groups may be asked for instead, nothing is wrong.
    found = looked(secured.settings())
    assert problems(found) == []
    assert "groups are asked for" in found["right Read on Topic '__consumer_offsets'"][0].text
    assert "groups are asked for" in found["__consumer_offsets: readable"][0].text


@pytest.mark.kafka
def test_a_cluster_with_rounds_is_well(cluster: Cluster, settings: Settings) -> None:
    with Probe(settings) as probe:
        probe.round()
    found = looked(settings)
    assert problems(found) == []
    assert found["kafka: brokers"][0].text.startswith("1 up")
    assert "partitions, offsets for" in found["__consumer_offsets: readable"][0].text


@pytest.mark.parametrize(
    ("rights", "settings", "states"),
    [
        (None, {}, ["ok"]),
        ({}, {}, ["ok"]),
        ({"__share_group_state": set()}, {}, ["ok"]),
        ({"__share_group_state": {ACLOperation.DESCRIBE}}, {}, ["warn", "ok"]),
        ({"__share_group_state": {ACLOperation.DESCRIBE}}, Refused.FORBIDDEN, ["warn", "warn"]),
        ({"__share_group_state": {ACLOperation.READ}}, {}, ["ok", "ok"]),
    ],
)
def test_what_share_groups_need_is_looked_at_where_there_are_any(
    monkeypatch: pytest.MonkeyPatch, rights: object, settings: object, states: list[str]
) -> None:
    asked: list[str] = []

    class Requests:
        def __init__(self, _: object) -> None:
            pass

        def share_settings(self, groups: list[str], _: object) -> dict[str, object]:
            asked.extend(groups)
            return dict.fromkeys(groups, settings)

    monkeypatch.setattr(inspection, "topic_rights", lambda *_: rights)
    monkeypatch.setattr(inspection, "Connections", lambda _: None)
    monkeypatch.setattr(inspection, "MetadataRequests", Requests)
    told = list(inspection._share_groups(None, Settings(cluster="prod", filters=Filters(groups=("/x/", "orders")))))
    assert [line.state for line in told] == states
    assert asked == ["orders"] * (len(states) - 1)
    if states[0] == "warn":
        assert told[0].text.startswith("This client lacks it, so only start offsets and lag of share groups are known")


def test_a_broker_whose_advertised_address_takes_no_connection_is_named() -> None:
    port = free_port()
    answer = SimpleNamespace(brokers=[SimpleNamespace(node_id=7, host="127.0.0.1", port=port)])
    (told,) = inspection._brokers("kafka", KafkaSettings(), answer)
    assert told.state == "wrong"
    assert told.text.startswith(f"Broker 7 says that it is at 127.0.0.1:{port}, which cannot be reached from here")


def test_a_partition_of_the_log_without_a_leader_is_one_problem_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Leaderless:
        """A consumer whose questions fail as kafka-python's do."""

        def beginning_offsets(self, places: list[TopicPartition], timeout_ms: int | None = None) -> None:  # noqa: ARG002
            raise KeyError(places[7])

        def close(self) -> None:
            pass

    monkeypatch.setattr(inspection, "open_consumer", lambda _: Leaderless())
    partitions = [SimpleNamespace(partition_index=number) for number in range(50)]
    log = SimpleNamespace(name="__consumer_offsets", error_code=0, partitions=partitions)
    told = inspection._log(Settings(cluster="prod"), SimpleNamespace(topics=[log]))
    assert "partition 7 of __consumer_offsets has no leader" in told.text
    assert "docs/security.md" not in told.text
