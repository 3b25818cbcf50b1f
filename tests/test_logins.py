"""Tokens of OAUTHBEARER: when they are asked for again, and what is said of an endpoint that gives none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import get_sasl_mechanism

from streaming import logins
from streaming.config import KafkaSettings
from tests.loopback import TokenEndpoint


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with TokenEndpoint(lambda: {"access_token": "t1", "expires_in": 100}) as running:
        yield running


@pytest.fixture
def config(endpoint: TokenEndpoint, tmp_path: Path) -> dict[str, Any]:
    """Settings of a client whose secret is in the file `secret`."""
    (tmp_path / "secret").write_text(endpoint.secret + "\n")
    kafka = KafkaSettings(
        sasl_mechanism="OAUTHBEARER",
        sasl_username="me",
        sasl_password_file=tmp_path / "secret",
        sasl_oauth_token_url=endpoint.url,
        sasl_oauth_scope="kafka",
        sasl_oauth_extensions={"logicalCluster": "lkc-1"},
    )
    return kafka.client_config()


def _login(config: dict[str, Any]) -> str:
    """The first bytes of a login, as RFC 7628 has them."""
    return str(get_sasl_mechanism("OAUTHBEARER")(**config).auth_bytes().decode())


def test_a_token_is_asked_for_with_the_clients_login_and_goes_to_the_broker_with_the_extensions(
    config: dict[str, Any], endpoint: TokenEndpoint
) -> None:
    assert _login(config) == "n,,\x01auth=Bearer t1\x01logicalCluster=lkc-1\x01\x01"
    assert endpoint.asked == [{"grant_type": ["client_credentials"], "scope": ["kafka"]}]


def test_a_token_is_used_again_for_four_fifths_of_its_life(
    config: dict[str, Any], endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(logins.time, "monotonic", lambda: now[0])
    first = _login(config)
    endpoint.reply = lambda: {"access_token": "t2", "expires_in": 100}
    now[0] += 79
    assert _login(config) == first
    now[0] += 2
    assert "Bearer t2" in _login(config)


def test_a_secret_that_changed_is_read_with_the_next_token(
    config: dict[str, Any], endpoint: TokenEndpoint, tmp_path: Path
) -> None:
    endpoint.reply = lambda: {"access_token": "t1"}  # without a life, so that it is asked for at each login
    endpoint.secret = "another"
    with pytest.raises(SaslAuthenticationFailedError, match="HTTP 401") as refused:
        _login(config)
    assert "hunter2" not in str(refused.value)
    (tmp_path / "secret").write_text("another\n")
    assert "Bearer t1" in _login(config)


@pytest.mark.parametrize("answer", [None, [], {}, {"access_token": "t", "expires_in": "soon"}, {"error": "x"}])
def test_an_answer_without_a_token_is_a_failed_login(
    config: dict[str, Any], endpoint: TokenEndpoint, answer: Any
) -> None:
    endpoint.reply = lambda: answer
    with pytest.raises(SaslAuthenticationFailedError, match="gave no token to the client 'me'"):
        _login(config)


def test_an_endpoint_that_cannot_be_reached_is_a_failed_login() -> None:
    kafka = KafkaSettings(
        sasl_mechanism="OAUTHBEARER",
        sasl_username="me",
        sasl_password="hunter2",
        sasl_oauth_token_url="http://127.0.0.1:1/token",
    )
    with pytest.raises(SaslAuthenticationFailedError, match=r"http://127\.0\.0\.1:1/token gave no token .*refused"):
        _login(kafka.client_config())


def test_a_token_file_is_read_at_each_login(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t1\n")
    config = KafkaSettings(sasl_mechanism="OAUTHBEARER", sasl_oauth_token_file=tmp_path / "token").client_config()
    assert _login(config) == "n,,\x01auth=Bearer t1\x01\x01"
    (tmp_path / "token").write_text("t2\n")
    assert _login(config) == "n,,\x01auth=Bearer t2\x01\x01"
