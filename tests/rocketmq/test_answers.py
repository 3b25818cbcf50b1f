"""Bodies of answers, and the keys in them."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from streaming.rocketmq import answers


def _key(topic: str, queue: int) -> str:
    return json.dumps({"brokerName": "broker-a", "queueId": queue, "topic": topic}, ensure_ascii=False)


def test_a_key_is_the_queue_that_it_names_however_long_it_is() -> None:
    for topic in ("orders", "x" * 20_000, "\U0001f600"):
        assert answers.queue_of(_key(topic, 3)) == answers.MessageQueue(topic, "broker-a", 3)
    for wrong in ("", "{", "[" * 20_000):
        with pytest.raises(answers.Unreadable):
            answers.queue_of(wrong)


@pytest.mark.parametrize("name", ["x" * 10_000, "\U0001f600" * 500], ids=["long", "wide"])
def test_keys_that_a_client_makes_up_to_be_large_stay_in_no_memory(name: str) -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(500):
            answers.queue_of(_key(f"{name}{number}", number))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000  # (all of them have a million bytes or more)
