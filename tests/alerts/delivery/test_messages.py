"""A message names the partition that it is about, also where each broker numbers its own."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.alerts.delivery.messages import digest_of, message_of
from streaming.alerts.transitions import Transition
from tests.alerts.build import transition

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
