"""How probe and job reach a cluster. Secrets are in files and in the environment only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from streaming.config.sources import cluster_variables
from streaming.exceptions import SetupError

KAFKA_SECRETS = ("sasl_password", "ssl_password")
"""Settings of the connection that are passed in files and in the environment only."""


def secret_variable(name: str, section: str = "kafka", cluster: str | None = None) -> str:
    """Name of the environment variable with a connection's secret.

    Args:
        name: The setting.
        section: `kafka`, `bus` or `rocketmq`.
        cluster: The cluster for which it holds; None for every one.
    """
    before = "EVENKEEL_" if cluster is None else cluster_variables(cluster)
    return f"{before}{section}__{name}".upper()


# The settings that `client` may have: known to kafka-python 3.0.12's consumer (the job's client), expressible in a
# file, and not secret. A list of what is allowed, because these settings appear in plans.
_CLIENT_SETTINGS = frozenset(
    {
        "allow_auto_create_topics",
        "api_version",
        "bootstrap_servers",
        "bootstrap_timeout_ms",
        "check_crcs",
        "client_dns_lookup",
        "client_id",
        "client_rack",
        "connections_max_idle_ms",
        "enable_incremental_fetch_sessions",
        "fetch_max_bytes",
        "fetch_max_wait_ms",
        "fetch_min_bytes",
        "isolation_level",
        "max_in_flight_requests_per_connection",
        "max_partition_fetch_bytes",
        "max_poll_records",
        "metadata_max_age_ms",
        "metrics_enabled",
        "metrics_num_samples",
        "metrics_sample_window_ms",
        "proxy_url",
        "receive_buffer_bytes",
        "receive_message_max_bytes",
        "reconnect_backoff_max_ms",
        "reconnect_backoff_ms",
        "request_timeout_ms",
        "retry_backoff_ms",
        "sasl_kerberos_domain_name",
        "sasl_kerberos_name",
        "sasl_kerberos_service_name",
        "sasl_mechanism",
        "sasl_plain_username",
        "security_protocol",
        "send_buffer_bytes",
        "socket_options",
        "socks5_proxy",
        "ssl_cafile",
        "ssl_certfile",
        "ssl_check_hostname",
        "ssl_ciphers",
        "ssl_crlfile",
        "ssl_keyfile",
    }
)

_PROXIES = ("proxy_url", "socks5_proxy")


class Section(BaseModel):
    """A section of the settings: unknown names and changes are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSettings(Section):
    """How probe and job reach a cluster; both take their client settings from here.

    Attributes:
        bootstrap_servers: "host:port,host:port".
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        sasl_mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM (extra `msk`), ...; None without
            SASL.
        sasl_username: User of PLAIN and SCRAM; client id at `sasl_oauth_token_url`.
        sasl_password: Its password or secret; `sasl_password_file` or the environment is the better place.
        sasl_password_file: File whose content, stripped, is the password; read at each login.
        sasl_oauth_token_file: File whose content, stripped, is the token of OAUTHBEARER; read at each login.
        sasl_oauth_token_url: Endpoint that gives this token to a client id with its secret (client credentials).
        sasl_oauth_scope: Scope to ask it for; None for its own choice.
        sasl_oauth_extensions: SASL extensions of an OAUTHBEARER login, such as Confluent Cloud's `logicalCluster`.
        ssl_cafile: PEM file of the certificate authorities; None takes the system's.
        ssl_certfile: PEM file of the client's certificate.
        ssl_keyfile: PEM file of the client's key.
        ssl_password: Password of the key.
        ssl_password_file: File whose content, stripped, is that password.
        ssl_check_hostname: Whether the brokers' host names are verified.
        request_timeout_ms: A request without an answer fails after this time.
        client: Any further kafka-python client setting, by its own name; no secret. `proxy_url` is one of them.
    """

    bootstrap_servers: str = "localhost:9092"
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    sasl_password_file: Path | None = None
    sasl_oauth_token_file: Path | None = None
    sasl_oauth_token_url: str | None = None
    sasl_oauth_scope: str | None = None
    sasl_oauth_extensions: dict[str, str] = Field(default_factory=dict)
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    ssl_password: SecretStr | None = None
    ssl_password_file: Path | None = None
    ssl_check_hostname: bool = True
    request_timeout_ms: int = 30_000
    client: dict[str, Any] = Field(default_factory=dict)

    @field_validator("client")
    @classmethod
    def _refuse_secrets(cls, client: dict[str, Any]) -> dict[str, Any]:
        # These settings are passed as an option of the job, which Spark shows in plans and logs.
        for name, value in client.items():
            if name not in _CLIENT_SETTINGS:
                told = name if name.isidentifier() else "…"  # what is no name could be a secret by mistake
                message = (
                    f"{told} is not allowed here: it is not a setting of kafka-python's clients, or it would show a "
                    "secret in plans; secrets go into sasl_password_file, ssl_password_file or the environment"
                )
                raise ValueError(message)
            if any("@" in text and ("://" in text or name in _PROXIES) for text in _texts(value)):
                message = f"{name} would show a login in plans: use a proxy that asks for none"
                raise ValueError(message)
        return client

    @field_validator("sasl_oauth_token_url")
    @classmethod
    def _without_secrets(cls, url: str | None) -> str | None:
        parts = urlsplit(url or "https://none")
        if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query:
            # Not repeated: it may hold a secret.
            message = "it must be https://HOST/PATH, without a login and a query"
            raise ValueError(message)
        return url

    @property
    def has_proxy(self) -> bool:
        """Whether the brokers are reached through a proxy."""
        return any(self.client.get(name) for name in _PROXIES)

    def client_config(self) -> dict[str, Any]:
        """Arguments of a kafka-python client, secrets in the clear: for a constructor, never for a log.

        Secrets in files are read again at each login (`streaming/logins.py`), and once here, so that one that is not
        there is a sentence at the start.

        Raises:
            SetupError: A secret's file cannot be read, or does not contain text; or OAUTHBEARER has no way to a token.
        """
        config: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "security_protocol": self.security_protocol,
            "request_timeout_ms": self.request_timeout_ms,
        }
        if self.sasl_mechanism:
            config["sasl_mechanism"] = self.sasl_mechanism
            config |= self._login()
        if self.security_protocol.endswith("SSL"):
            from streaming.logins import read_certificates_at_each_login  # noqa: PLC0415 - as in `_login`

            read_certificates_at_each_login()
            config["ssl_check_hostname"] = self.ssl_check_hostname
            for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
                if path := getattr(self, name):
                    config[name] = str(path)
            if password := _at_each_login(self.ssl_password, self.ssl_password_file):
                config["ssl_password"] = password
        return config | self.client

    def _login(self) -> dict[str, Any]:
        # Imported here, because it brings kafka-python, which most processes do without.
        from streaming.logins import ClientCredentials, TokenFile, read_passwords_at_each_login  # noqa: PLC0415

        password = _at_each_login(self.sasl_password, self.sasl_password_file)
        if self.sasl_mechanism != "OAUTHBEARER":
            read_passwords_at_each_login()
            return {"sasl_plain_username": self.sasl_username, "sasl_plain_password": password}
        if (self.sasl_oauth_token_url is None) == (self.sasl_oauth_token_file is None):
            message = "OAUTHBEARER wants a token: give either sasl_oauth_token_file or sasl_oauth_token_url."
            raise SetupError(message)
        if self.sasl_oauth_token_url is None:
            token = _at_each_login(None, self.sasl_oauth_token_file) or ""
            return {"sasl_oauth_token_provider": TokenFile(token, self.sasl_oauth_extensions)}
        if self.sasl_username is None or password is None:
            message = (
                "sasl_oauth_token_url wants the client's id as sasl_username, and its secret as sasl_password_file."
            )
            raise SetupError(message)
        client = ClientCredentials(
            self.sasl_oauth_token_url,
            self.sasl_username,
            password,
            self.sasl_oauth_scope,
            self.sasl_oauth_extensions,
            self.ssl_cafile,
        )
        return {"sasl_oauth_token_provider": client}

    def public(self) -> dict[str, Any]:
        """Everything except the secrets, as JSON values: safe in an option of the job and in a plan."""
        return self.model_dump(mode="json", exclude=set(KAFKA_SECRETS))

    @classmethod
    def from_public(cls, public: dict[str, Any], section: str, cluster: str) -> KafkaSettings:
        """Add the secrets of this process's environment to the values of `public`.

        Called by the job's tasks: secrets are passed by environment (`EVENKEEL_CLUSTERS__<NAME>__KAFKA__SASL_PASSWORD`,
        or for every cluster `EVENKEEL_KAFKA__SASL_PASSWORD`) or as files, never through Spark.

        Args:
            public: The values of `public`.
            section: Section of the settings with this connection, `kafka` or `bus`.
            cluster: The cluster's name.
        """
        found = {
            name: os.environ.get(secret_variable(name, section, cluster))
            or os.environ.get(secret_variable(name, section))
            for name in KAFKA_SECRETS
        }
        return cls.model_validate(public | {name: value for name, value in found.items() if value})

    def export_secrets(self, section: str, cluster: str) -> None:
        """Put the secrets into this process's environment, for its children; arguments as in `from_public`."""
        for name in KAFKA_SECRETS:
            value = getattr(self, name)
            if value is not None:
                os.environ[secret_variable(name, section, cluster)] = value.get_secret_value()


def _at_each_login(value: SecretStr | None, path: Path | None) -> str | Callable[[], str] | None:
    """A secret in the clear, or where a file is named a function that reads it again; raises as `secret_of`."""
    now = secret_of(value, path)
    if path is None:
        return now
    return lambda: secret_of(None, path) or ""


def secret_of(value: SecretStr | None, path: Path | None) -> str | None:
    """A secret in the clear, that of the file where one is named; None where there is none.

    Raises:
        SetupError: The file cannot be read, or is not text.
    """
    if path is None:
        if value is None:
            return None
        return value.get_secret_value()
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        message = f"The file {path} with a secret cannot be read ({error.strerror})."
    except UnicodeDecodeError:
        message = f"The file {path} with a secret is not text: it must be UTF-8."
    raise SetupError(message)


def _texts(value: object) -> Iterator[str]:
    """Every text in a value from a file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():
            yield from _texts(pair)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
