"""What a Kafka client logs in with, read at each login, so that a secret may change while the client lives.

kafka-python keeps the settings that it is made with, and uses them for every later connection, and again where brokers
end sessions (`connections.max.reauth.ms`, KIP-368). So it is given the file of a secret instead of its content:

- its mechanisms PLAIN and SCRAM are registered again here, and take a path for the password;
- an OAUTHBEARER token comes from an object of ours;
- `ssl_password` may be a function (`ssl.SSLContext.load_cert_chain`), and certificates are files already.

A secret that cannot be read at a later login is a `SaslAuthenticationFailedError`, and a certificate that does not fit
its key yet a `KafkaConnectionError`: an outage, until it can, or does.
"""

from __future__ import annotations

import json
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote_plus, urlencode
from urllib.request import Request, urlopen

from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError
from kafka.net import manager
from kafka.net.sasl import get_sasl_mechanism, register_sasl_mechanism
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.transport import KafkaSSLTransport

from streaming.exceptions import SetupError

_TOKEN_S = 5.0
"""Limit for a token endpoint's answer: the client's other connections wait as long."""

_USED_OF_LIFE: Final = 0.8
"""The share of a token's life in which it is used again: brokers end the session when it is over. (Kafka's own
`sasl.login.refresh.window.factor`.)"""

Secret = str | Callable[[], str]
"""A secret, or a function that returns it as it is now and raises SetupError where it cannot be read."""


def read_passwords_at_each_login() -> None:
    """Let kafka-python's mechanisms take a `Secret` as `sasl_plain_password`."""
    for name in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        mechanism = get_sasl_mechanism(name)
        if not issubclass(mechanism, _ReadAtLogin):
            register_sasl_mechanism(name, type(mechanism.__name__, (_ReadAtLogin, mechanism), {}), overwrite=True)


def read_certificates_at_each_login() -> None:
    """Let kafka-python take a certificate without its key for a failed handshake.

    To kafka-python 3.0.12 it is an error that is not Kafka's, with which its loop that asks for metadata ends: the
    client would never see another leader, or epoch of one, again.
    """
    manager.KafkaSSLTransport = _Transport


class _Transport(KafkaSSLTransport):  # type: ignore[misc]  # kafka-python ships no types
    def __init__(self, *given: Any, **config: Any) -> None:
        try:
            super().__init__(*given, **config)
        except (OSError, SetupError) as error:
            message = f"Handshake failed: {error}"
            raise KafkaConnectionError(message) from error


class _ReadAtLogin:
    """Goes before a mechanism of kafka-python, which makes one for each login."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config | {"sasl_plain_password": _now(config["sasl_plain_password"])})


def _now(secret: Secret) -> str:
    try:
        return secret() if callable(secret) else secret
    except SetupError as error:
        raise SaslAuthenticationFailedError(str(error)) from error


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python ships no types
    """The token is the content of a file that others renew, such as Kubernetes' projected service account token."""

    def __init__(self, content: Secret, extensions: Mapping[str, str]) -> None:
        """Prepare; nothing is read yet."""
        self._content, self._extensions = content, dict(extensions)

    def token(self) -> str:
        """The token. Raises SaslAuthenticationFailedError."""
        return _now(self._content)

    def extensions(self) -> dict[str, str]:
        """SASL extensions of the login (KIP-342)."""
        return self._extensions


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python ships no types
    """Tokens from an identity provider, for a client id and its secret (RFC 6749, section 4.4)."""

    def __init__(
        self,
        url: str,
        client: str,
        secret: Secret,
        scope: str | None,
        extensions: Mapping[str, str],
        cafile: Path | None,
    ) -> None:
        """Prepare; nothing is asked yet.

        Args:
            url: Token endpoint.
            client: Client id.
            secret: Its secret.
            scope: Wanted scope; None for the provider's own choice.
            extensions: SASL extensions of the login (KIP-342).
            cafile: Certificate authorities that are trusted beside the system's.
        """
        self._url, self._client, self._secret, self._scope = url, client, secret, scope
        self._extensions, self._cafile = dict(extensions), cafile
        self._token, self._until = "", 0.0

    def token(self) -> str:
        """A token that is still valid for a while. Raises SaslAuthenticationFailedError, without the secret."""
        if time.monotonic() >= self._until:
            asked = time.monotonic()
            self._token, seconds = self._asked()
            self._until = asked + _USED_OF_LIFE * seconds
        return self._token

    def extensions(self) -> dict[str, str]:
        """SASL extensions of the login."""
        return self._extensions

    def _asked(self) -> tuple[str, float]:
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        login = f"{quote_plus(self._client)}:{quote_plus(_now(self._secret))}".encode()
        headers = {"Authorization": f"Basic {b64encode(login).decode()}", "Accept": "application/json"}
        try:
            trusted = ssl.create_default_context()
            if self._cafile is not None:
                trusted.load_verify_locations(self._cafile)
            request = Request(self._url, urlencode(form).encode(), headers)  # noqa: S310 - the settings allow http only
            with urlopen(request, timeout=_TOKEN_S, context=trusted) as answer:  # noqa: S310
                found = json.loads(answer.read())
            return str(found["access_token"]), float(found.get("expires_in", 0))
        except HTTPError as error:
            why = f"HTTP {error.code}"
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"{type(error).__name__}: {error}" if isinstance(error, OSError) else "its answer has no token"
        message = f"{self._url} gave no token to the client {self._client!r} ({why})"
        raise SaslAuthenticationFailedError(message)
