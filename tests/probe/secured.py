"""One broker with a plain port, one port with a login, and one with TLS."""

from __future__ import annotations

import operator
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

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
)
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.demo.broker import EmbeddedBroker
from streaming.demo.ports import free_port
from streaming.java import find_java

__all__ = ["PASSWORD", "RIGHTS", "Secured", "running"]

PASSWORD = "not-a-secret"

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
        port: The port with a login.
        tls_port: The port with TLS.
        ca_file: The certificate of that port, which nobody else trusts.
        admin: A client of the plain port.
    """

    broker: EmbeddedBroker
    port: int
    tls_port: int
    ca_file: Path
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
def running(folder: Path) -> Iterator[Secured]:
    """Start the broker, with a topic "orders", and a group "billing" with a member and a commit."""
    folder.mkdir(exist_ok=True)
    ca_file = _certificate(folder)
    broker = EmbeddedBroker(folder / "broker")
    port, tls_port = free_port(), free_port()
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    for_clients = f"PLAINTEXT://{broker.bootstrap},SASL_PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls_port}"
    broker._overrides |= {
        "listeners": f"{for_clients},CONTROLLER://127.0.0.1:{broker._controller_port}",
        "advertised.listeners": for_clients,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login} user_evenkeel="{PASSWORD}";',
        "ssl.keystore.location": str(folder / "broker.p12"),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
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
        yield Secured(broker, port, tls_port, ca_file, admin)
        consumer.close()
        admin.close()


def _certificate(folder: Path) -> Path:
    """Create the key store `broker.p12`; returns the file with its certificate."""
    keytool = find_java().resolve().with_name("keytool")
    store = ["-keystore", folder / "broker.p12", "-storetype", "PKCS12", "-storepass", PASSWORD, "-alias", "broker"]
    make = ["-genkeypair", "-keyalg", "RSA", "-dname", "CN=localhost", "-ext", "SAN=ip:127.0.0.1,dns:localhost"]
    ca_file = folder / "ca.pem"
    for command in (make, ["-exportcert", "-rfc", "-file", ca_file]):
        subprocess.run([keytool, *command, *store], check=True, capture_output=True)
    return ca_file
