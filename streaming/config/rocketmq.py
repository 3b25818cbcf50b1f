"""How the probe reaches a RocketMQ cluster, and what only its operators know of its groups' strategies."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field, SecretStr

from streaming.config.forms import Pattern, fits
from streaming.config.kafka import Section, secret_of
from streaming.exceptions import SetupError

ROCKETMQ_SECRETS = ("secret_key", "ssl_password")
"""Settings of the connection that are passed in files and in the environment only."""


class QueueSetting(Section):
    """A message queue, as `AllocateMessageQueueByConfig` is given them.

    Attributes:
        topic: Topic.
        broker: Broker name.
        queue: Queue id.
    """

    topic: str = Field(min_length=1)
    broker: str = Field(min_length=1)
    queue: int = Field(ge=0)


class RocketMQStrategy(Section):
    """What the members of some groups gave their strategy, which no server knows.

    Attributes:
        groups: Literal name or "/regular expression/"; the first entry that fits a group counts.
        virtual_node_cnt: Virtual nodes of AllocateMessageQueueConsistentHash.
        consumeridcs: Rooms of AllocateMessageQueueByMachineRoom.
        room_separator: The rule of AllocateMachineRoomNearby's resolver: the room is what stands before it in a
            broker's name and in a client id.
        delegate: Name of the strategy that AllocateMachineRoomNearby hands over to, AVG for instance.
        message_queue_list: The list of AllocateMessageQueueByConfig.
    """

    groups: Pattern = Field(min_length=1)
    virtual_node_cnt: int | None = Field(default=None, ge=0)
    consumeridcs: tuple[str, ...] | None = None
    room_separator: str | None = Field(default=None, min_length=1)
    delegate: str | None = Field(default=None, min_length=1)
    message_queue_list: tuple[QueueSetting, ...] | None = None


class RocketMQSettings(Section):
    """How the probe reaches a RocketMQ cluster; it finds the brokers by its name servers.

    Attributes:
        name_servers: "HOST:PORT;HOST:PORT", all of them: each is asked, and compared with the others.
        access_key: User, where the servers have access control.
        secret_key: Its secret; `secret_key_file` or the environment is the better place.
        secret_key_file: File whose content, stripped, is the secret.
        tls: Whether to speak TLS with name servers and brokers.
        ssl_cafile: PEM file of the certificate authorities; None takes the system's.
        ssl_certfile: PEM file of the client's certificate.
        ssl_keyfile: PEM file of the client's key.
        ssl_password: Password of the key; rather in the environment.
        ssl_check_hostname: Whether certificates must name the host. Routes have the brokers' addresses as numbers, and
            their own certificates seldom name them: then False, with an `ssl_cafile` of yours.
        strategies: What members gave their strategies.
    """

    name_servers: str = Field(min_length=1)
    access_key: str | None = Field(default=None, min_length=1)
    secret_key: SecretStr | None = None
    secret_key_file: Path | None = None
    tls: bool = False
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    ssl_password: SecretStr | None = None
    ssl_check_hostname: bool = True
    strategies: tuple[RocketMQStrategy, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The name servers, in the order of the setting, each once; without a port it is 9876."""
        parts = [part.strip() for part in re.split("[;,]", self.name_servers)]
        return tuple(dict.fromkeys(part for part in parts if part))

    def stamp(self) -> tuple[int | None, ...]:
        """Another value when a file with a secret, a certificate or a key has changed; None of one that is away."""
        files = (self.secret_key_file, self.ssl_cafile, self.ssl_certfile, self.ssl_keyfile)
        return tuple(path.stat().st_mtime_ns if path is not None and path.exists() else None for path in files)

    def login(self) -> tuple[str, str] | None:
        """Access key and secret key in the clear; None without access control.

        Raises:
            SetupError: The secret's file cannot be read, or only one of the two keys is given. (Asked here, because
                processes that do not log in have settings without secrets.)
        """
        secret = secret_of(self.secret_key, self.secret_key_file)
        if self.access_key is None and secret is None:
            return None
        if self.access_key is None or secret is None:
            message = "rocketmq.access_key and secret_key (or secret_key_file) belong together: give both or neither."
            raise SetupError(message)
        return self.access_key, secret

    def tls_context(self) -> ssl.SSLContext | None:
        """What connections are made with; None for plain ones.

        Raises:
            SetupError: A file cannot be read, or is no certificate or key.
        """
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=None if self.ssl_cafile is None else str(self.ssl_cafile))
            context.check_hostname = self.ssl_check_hostname
            if self.ssl_certfile is not None:
                key = None if self.ssl_keyfile is None else str(self.ssl_keyfile)
                context.load_cert_chain(str(self.ssl_certfile), key, secret_of(self.ssl_password, None))
        except (OSError, ValueError) as error:
            message = f"The certificates of section rocketmq cannot be used ({error}): correct ssl_cafile and others."
            raise SetupError(message) from None
        return context


def strategy_of(strategies: Iterable[RocketMQStrategy], group: str) -> RocketMQStrategy | None:
    """What the members of a group gave their strategy; None where no entry fits."""
    return next((one for one in strategies if fits(group, one.groups)), None)
