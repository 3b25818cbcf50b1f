"""`/health/live` and `/health/ready` on an address of their own."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from streaming.demo.ports import free_port
from streaming.exceptions import SetupError
from streaming.health import LIVE, READY, Condition, health_served
from tests.started import get


def asked(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    return get(f"http://127.0.0.1:{port}{path}", method)


@contextmanager
def served(ready: list[Condition]) -> Iterator[int]:
    port = free_port()
    conditions = {LIVE: lambda: Condition(True), READY: lambda: ready[0]}
    with health_served(("127.0.0.1", port), "The probe's health", "EVENKEEL_PROBE__HEALTH", conditions):
        yield port


def test_what_holds_is_200_and_what_does_not_503_with_its_reasons() -> None:
    ready = [Condition(False, ("No round has closed yet.",))]
    with served(ready) as port:
        assert asked(port, "/health/live") == (200, json.dumps({"live": True, "reasons": []}))
        status, body = asked(port, "/health/ready?verbose")
        assert (status, json.loads(body)) == (503, {"ready": False, "reasons": ["No round has closed yet."]})
        ready[0] = Condition(True, ("It stands by.",))
        assert asked(port, "/health/ready") == (200, json.dumps({"ready": True, "reasons": ["It stands by."]}))
        assert asked(port, "/health/ready", "HEAD") == (200, "")
        assert asked(port, "/metrics")[0] == 404


def test_a_client_that_says_nothing_holds_up_no_other() -> None:
    with served([Condition(True)]) as port, socket.create_connection(("127.0.0.1", port)):
        assert asked(port, "/health/live")[0] == 200


def test_an_address_that_another_holds_is_one_sentence_that_names_the_setting() -> None:
    with (
        served([Condition(True)]) as port,
        pytest.raises(SetupError, match=rf"The job's health cannot listen on 127.0.0.1:{port} \(.*JOB__HEALTH\.$"),
        health_served(("127.0.0.1", port), "The job's health", "EVENKEEL_JOB__HEALTH", {}),
    ):
        pass


def test_its_port_is_free_when_it_has_ended() -> None:
    with served([Condition(True)]) as port:
        pass
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))


def test_without_an_address_nothing_listens() -> None:
    with health_served(None, "The job's health", "EVENKEEL_JOB__HEALTH", {}):
        pass
