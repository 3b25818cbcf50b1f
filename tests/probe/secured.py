"""One broker with a plain port, one port with logins, one with TLS, and one that asks for a certificate."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import operator
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.demo.broker import EmbeddedBroker
from streaming.demo.ports import free_port

PASSWORD = "not-a-secret"


_CERTIFICATE = "openssl req -x509 -newkey rsa:2048 -days 2"


def _broker_store(folder: Path) -> Path:
    """Create the broker's key store `broker.pem`; returns the file with its certificate."""
    certificate, key = folder / "ca.pem", folder / "ca.key"
    names = f"-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout {key} -out {certificate}"
    subprocess.run(shlex.split(f"{_CERTIFICATE} -nodes {names}"), check=True, capture_output=True)
    (folder / "broker.pem").write_text(key.read_text() + certificate.read_text())
    return certificate


def trust(folder: Path, certificate: Path) -> None:
    """Add a client's certificate to the store `clients.pem`, which the broker trusts."""
    with (folder / "clients.pem").open("a") as store:
        store.write(certificate.read_text())


def client_certificate(folder: Path, name: str, password: str) -> tuple[Path, Path]:
    """Create a certificate of the user "evenkeel" that nobody has signed, and its encrypted key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = f"{_CERTIFICATE} -subj /CN=evenkeel -passout pass:{password} -keyout {key} -out {certificate}"
    subprocess.run(shlex.split(command), check=True, capture_output=True)
    return certificate, key


@dataclass(frozen=True, slots=True)
class Tokens:
    """An issuer of tokens that a broker verifies by the key in a file.

    Attributes:
        keys: The file, a JSON Web Key Set.
        secret: Its only key.
    """

    keys: Path
    secret: bytes = b"a key of thirty-two bytes at least"

    def write_keys(self) -> None:
        key = {"kty": "oct", "alg": "HS256", "kid": "evenkeel-test", "k": _text(self.secret)}
        self.keys.write_text(json.dumps({"keys": [key]}), "ascii")

    def token(self, seconds: float = 600.0, user: str = "evenkeel") -> str:
        """A JSON Web Token for a user, which ends after this time."""
        now = time.time()
        parts = {"alg": "HS256", "kid": "evenkeel-test"}, {"sub": user, "iat": int(now), "exp": int(now + seconds)}
        signed = ".".join(_text(json.dumps(part).encode()) for part in parts)
        return f"{signed}.{_text(hmac.digest(self.secret, signed.encode(), hashlib.sha256))}"


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


_USER = "User:evenkeel"

# Operation, resource, name, pattern.
Right: TypeAlias = tuple[ACLOperation, ResourceType, str, ACLResourcePatternType]

# The manual's lines, one right each.
RIGHTS = (
    (ACLOperation.READ, ResourceType.TOPIC, "__consumer_offsets", ACLResourcePatternType.LITERAL),
    (ACLOperation.DESCRIBE, ResourceType.GROUP, "*", ACLResourcePatternType.LITERAL),
    (ACLOperation.DESCRIBE, ResourceType.TOPIC, "*", ACLResourcePatternType.LITERAL),
    (ACLOperation.CREATE, ResourceType.TOPIC, "evenkeel.", ACLResourcePatternType.PREFIXED),
    (ACLOperation.READ, ResourceType.TOPIC, "evenkeel.", ACLResourcePatternType.PREFIXED),
    (ACLOperation.WRITE, ResourceType.TOPIC, "evenkeel.", ACLResourcePatternType.PREFIXED),
)


@dataclass(frozen=True, slots=True)
class Secured:
    """A broker with an authorizer: anonymous clients may do anything, users only what ACLs allow.

    Attributes:
        broker: The broker; its plain port is `bootstrap`.
        port: The port with logins: PLAIN, SCRAM-SHA-512 with the user's present password (`set_password`), and
            OAUTHBEARER with what `tokens` issues.
        tls_port: The port with TLS.
        mutual_port: The port with TLS that asks for a client's certificate.
        ca_file: The certificate of both, which nobody else trusts.
        tokens: Issuer of tokens.
        admin: A client of the plain port.
    """

    broker: EmbeddedBroker
    port: int
    tls_port: int
    mutual_port: int
    ca_file: Path
    tokens: Tokens
    admin: KafkaAdminClient

    def settings(
        self,
        filters: Filters | None = None,
        password: str = PASSWORD,
        *,
        cluster_topics: bool = False,
        **probe: str,
    ) -> Settings:
        return Settings(
            cluster="secured",
            kafka=KafkaSettings(
                bootstrap_servers=f"127.0.0.1:{self.port}",
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="PLAIN",
                sasl_username="evenkeel",
                sasl_password=password,
            ),
            filters=filters or Filters(),
            probe=ProbeSettings(interval_ms=200, cluster_topics=cluster_topics, **probe),
        )

    def by_password(self, file: Path, mechanism: str = "SCRAM-SHA-512") -> KafkaSettings:
        """A connection whose password is in a file."""
        return KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{self.port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_username="evenkeel",
            sasl_password_file=file,
        )

    def by_token(self, **oauth: Any) -> KafkaSettings:
        """A connection by OAUTHBEARER."""
        return KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{self.port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            **oauth,
        )

    def by_certificate(self, folder: Path) -> KafkaSettings:
        """A connection by the certificate, which the broker trusts, and the key of a folder (`client_certificate`)."""
        return KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{self.mutual_port}",
            security_protocol="SSL",
            ssl_cafile=self.ca_file,
            ssl_certfile=folder / "client.pem",
            ssl_keyfile=folder / "client.key",
            ssl_password_file=folder / "key-password",
        )

    def set_password(self, password: str) -> None:
        """Change the user's password for SCRAM on the broker."""
        change = UserScramCredentialUpsertion("evenkeel", ScramMechanism.SCRAM_SHA_512, password)
        assert self.admin.alter_user_scram_credentials([change]) == {"evenkeel": None}

    def grant(self, *rights: Right) -> None:
        """Grant rights to the user, in addition to what it has; return once they apply."""
        self.admin.create_acls([_allow(right) for right in rights])
        self.wait_until_granted(*rights)

    def wait_until_granted(self, *rights: Right) -> None:
        """Wait until these rights apply, a moment after the broker has acknowledged them."""
        _until(lambda: set(rights) <= self._rights())

    def revoke_all(self) -> None:
        """Take every right from the user; return once none applies."""
        self.admin.delete_acls([_ALL])
        _until(lambda: not self._rights())

    def _rights(self) -> set[Right]:
        """The user's rights, as the broker's authorizer applies them."""
        found, _ = self.admin.describe_acls(_ALL)
        patterns = ((acl.operation, acl.resource_pattern) for acl in found)
        return {(operation, on.resource_type, on.resource_name, on.pattern_type) for operation, on in patterns}


_ALL = ACLFilter(
    _USER,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


_until = Retrying(retry=retry_if_result(operator.not_), wait=wait_fixed(0.02), stop=stop_after_delay(60), reraise=True)


def _allow(right: Right) -> ACL:
    operation, *resource = right
    return ACL(_USER, "*", operation, ACLPermissionType.ALLOW, ResourcePattern(*resource))


@contextmanager
def running(folder: Path, **overrides: str) -> Iterator[Secured]:
    """Start the broker, with a topic "orders", and a group "billing" with a member and a commit.

    Args:
        folder: For the broker, its keys, and those of a client whom it trusts: `client.pem`, `client.key`.
        overrides: Further settings of the broker, with "__" for a dot.
    """
    folder.mkdir(exist_ok=True)
    ca_file = _broker_store(folder)
    certificate, _ = client_certificate(folder, "client", PASSWORD)
    trust(folder, certificate)
    (folder / "key-password").write_text(PASSWORD + "\n", "utf-8")
    tokens = Tokens(folder / "keys.json")
    tokens.write_keys()
    broker = EmbeddedBroker(folder / "broker")
    # Kafka 4.0 and later read keys only from files that this names.
    broker.jvm += (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens.keys.as_uri()}",)  # type: ignore[misc]
    port, tls_port, mutual_port = free_port(), free_port(), free_port()
    for_clients = (
        f"PLAINTEXT://{broker.bootstrap},SASL_PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls_port},"
        f"MUTUAL://127.0.0.1:{mutual_port}"
    )
    security = "org.apache.kafka.common.security"
    login = "listener.name.sasl_plaintext"
    broker._overrides |= {
        "listeners": f"{for_clients},CONTROLLER://127.0.0.1:{broker._controller_port}",
        "advertised.listeners": for_clients,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,MUTUAL:SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        f"{login}.plain.sasl.jaas.config": f'{security}.plain.PlainLoginModule required user_evenkeel="{PASSWORD}";',
        f"{login}.scram-sha-512.sasl.jaas.config": f"{security}.scram.ScramLoginModule required;",
        f"{login}.oauthbearer.sasl.jaas.config": f"{security}.oauthbearer.OAuthBearerLoginModule required;",
        f"{login}.oauthbearer.sasl.server.callback.handler.class": f"{security}.oauthbearer."
        "OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": tokens.keys.as_uri(),
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.keystore.type": "PEM",
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.location": str(folder / "clients.pem"),
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        **{name.replace("__", "."): value for name, value in overrides.items()},
    }
    with broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics({"orders": {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
        producer.send("orders", b"value", partition=0).get(30)
        producer.close()
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap, group_id="billing", auto_offset_reset="earliest"
        )
        while not consumer.poll(timeout_ms=200):
            pass
        consumer.commit()
        yield Secured(broker, port, tls_port, mutual_port, ca_file, tokens, admin)
        consumer.close()
        admin.close()
