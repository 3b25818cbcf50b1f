"""The outcomes of attempts are each written once, whatever a commit reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streaming.alerts import decisions as module
from streaming.alerts.decisions import Decisions, Deliveries
from streaming.alerts.delivery.items import DELIVERED, FAILED, GIVEN_UP, HELD, SKIPPED, Delivery
from streaming.alerts.delivery.messages import digest_of, message_of
from streaming.alerts.transitions import Transition
from streaming.tables import LakeReader
from tests.alerts.build import START, Writer, transition

Append = Callable[..., bool]


def made_and_reported_as_failed(append: Append) -> Append:
    def appended(*given: Any) -> bool:
        append(*given)
        raise ConnectionResetError

    return appended


def not_made(_: Append) -> Append:
    def refused(*_: Any) -> bool:
        raise ConnectionResetError

    return refused


def delivered(name: str) -> Delivery:
    return Delivery(firing(name), "ops", 1, DELIVERED, None, 5, START)


@pytest.mark.parametrize("failing", [made_and_reported_as_failed, not_made])
def test_after_a_commit_that_failed_each_outcome_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: Callable[[Append], Append]
) -> None:
    lake = Writer(tmp_path).root
    Decisions(lake, "c")
    deliveries = Deliveries(lake, "c")
    deliveries.write([delivered("a")])
    with monkeypatch.context() as patched:
        patched.setattr(module, "append_once", failing(module.append_once))
        with pytest.raises(ConnectionResetError):
            deliveries.write([delivered("b")])
    deliveries.write([delivered("b"), delivered("c")])
    deliveries.write([delivered("d")])
    rows = LakeReader(lake).rows("SELECT alert_id, outcome FROM alert_deliveries ORDER BY alert_id")
    assert rows == [{"alert_id": name, "outcome": DELIVERED} for name in "abcd"]


def firing(alert: str) -> Transition:
    return transition(alert_id=alert, cluster="c", since=START, round_time=START, decided_time=START)


def opened(lake: str) -> Deliveries:
    Decisions(lake, "c")
    return Deliveries(lake, "c")


def test_what_was_sent_is_known_with_the_incident_that_its_first_message_opened(tmp_path: Path) -> None:
    deliveries = opened(Writer(tmp_path).root)
    first = [Delivery(firing(name), "ops", 1, DELIVERED, None, 5, START, name) for name in "abc"]
    again = [Delivery(firing(name), "ops", 2, DELIVERED, None, 5, START + 1_000, "a") for name in "abc"]
    # Rows have no order in a table.
    deliveries.write([*again, *first])
    known = deliveries.know(["ops"], [], START + 2_000)["ops"]
    assert known.sent == {name: name for name in "abc"}


@pytest.mark.parametrize(
    ("outcomes", "is_left"),
    [
        ([SKIPPED], True),
        ([HELD, SKIPPED, HELD], True),
        ([SKIPPED, FAILED], True),
        ([SKIPPED, DELIVERED], False),
        ([SKIPPED, FAILED, GIVEN_UP], False),
        ([DELIVERED], False),
        ([GIVEN_UP], False),
    ],
)
def test_a_firing_that_was_only_skipped_is_left_for_a_target_that_it_is_routed_to_now(
    tmp_path: Path, outcomes: list[str], is_left: bool
) -> None:
    deliveries = opened(Writer(tmp_path).root)
    decided = firing("a")
    deliveries.write([Delivery(decided, "ops", 1, one, None, 5, START + n) for n, one in enumerate(outcomes)])
    known = deliveries.know(["ops"], [decided.transition_id], START + 9)["ops"]
    assert known.rerouted([decided], {"a"}, lambda _: None) == ([decided] if is_left else [])
    assert known.rerouted([decided], {"a"}, lambda _: "it is routed to log") == []
    assert known.rerouted([decided], {"b"}, lambda _: None) == [], "it does not fire any more"


# A message names the partition that it is about, also where each broker numbers its own.


_QUEUE = {"topic": "orders", "partition": 0}


def _decided(entity: str = "{}", **more: Any) -> Transition:
    return transition(group_id="g", entity=entity, **more)


def _key(broker: str) -> str:
    return f'{{"group_id":"g","topic":"orders","broker":"{broker}","partition":0}}'


def test_messages_about_queues_of_the_same_number_say_of_which_broker_each_is() -> None:
    of_a, of_b = (message_of(_decided(_key(broker), **_QUEUE)) for broker in ("broker-a", "broker-b"))
    assert of_a.body.splitlines()[4:7] == ["topic: orders", "broker: broker-a", "partition: 0"]
    assert of_b.body.splitlines()[4:7] == ["topic: orders", "broker: broker-b", "partition: 0"]
    assert (of_a.fields["broker"], of_b.fields["broker"]) == ("broker-a", "broker-b")
    assert (of_a.fields["topic"], of_a.fields["partition"]) == ("orders", "0")


@pytest.mark.parametrize("entity", ["{}", '{"group_id":"g","topic":"orders","partition":0}'])
def test_a_message_about_a_partition_of_kafka_says_nothing_of_a_broker(entity: str) -> None:
    message = message_of(_decided(entity, **_QUEUE))
    assert message.body.splitlines()[4:6] == ["topic: orders", "partition: 0"]
    assert "broker" not in message.fields
    assert "broker" not in message.body


@pytest.mark.parametrize(
    ("decided", "name"),
    [
        (_decided(_key("broker-a"), **_QUEUE), "g, orders broker-a/0"),
        (_decided('{"group_id":"g","topic":"orders","partition":0}', **_QUEUE), "g, orders 0"),
        (_decided('{"group_id":"g","topic":"orders"}', topic="orders"), "g, orders"),
        (_decided('{"group_id":"g","topic":"orders","broker":"broker-a"}', topic="orders"), "g, orders broker-a"),
        (_decided('{"group_id":"g"}'), "g"),
    ],
)
def test_a_digest_names_of_each_alert_what_there_is_of_topic_broker_and_partition(
    decided: Transition, name: str
) -> None:
    assert digest_of([decided] * 11, "incident", "opens").body.splitlines()[2] == name


def test_a_name_of_a_broker_is_one_line_of_text() -> None:
    message = message_of(_decided(_key("a\\nb"), **_QUEUE))
    assert message.fields["broker"] == "a\\nb"
    assert "broker: a\\nb" in message.body.splitlines()
