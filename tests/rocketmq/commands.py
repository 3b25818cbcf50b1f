"""What the demo and the tests tell a RocketMQ cluster to do: topics, messages, settings. The monitor never does."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

from streaming.exceptions import EvenkeelError
from streaming.rocketmq import Answer, Client, Credentials, Frame, Question, read_text
from tests.patience import until

_ANSWER_S = 10.0
_SYSTEM_BUSY = 2
"""A broker on a machine with other work refuses messages that it could not store within 200 ms."""

SEND_MESSAGE: Final = 10
UPDATE_CONSUMER_OFFSET: Final = 15
UPDATE_AND_CREATE_TOPIC: Final = 17
UPDATE_BROKER_CONFIG: Final = 25
HEART_BEAT: Final = 34
UNREGISTER_CLIENT: Final = 35
GET_CONSUMER_LIST_BY_GROUP: Final = 38
NOTIFY_CONSUMER_IDS_CHANGED: Final = 40
LOCK_BATCH_MQ: Final = 41
UNLOCK_BATCH_MQ: Final = 42
GET_ROUTEINFO_BY_TOPIC: Final = 105
GET_BROKER_CLUSTER_INFO: Final = 106
DELETE_SUBSCRIPTIONGROUP: Final = 207
GET_CONSUMER_RUNNING_INFO: Final = 307


class CommandRefused(EvenkeelError):
    """A server did not do what it was told."""


class Commands:
    """Commands to the servers of one cluster. A context manager; not for several threads."""

    def __init__(self, name_servers: Sequence[str], credentials: Credentials | None = None, tls: Any = None) -> None:
        self._name_servers = list(name_servers)
        self._client = Client(tls, credentials)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def brokers(self, name_server: str | None = None) -> dict[str, str]:
        """Address of each master that a name server knows (the first one by default), by broker name.

        Raises:
            Refused: The name server did not answer.
        """
        answer = self.ask(name_server or self._name_servers[0], GET_BROKER_CLUSTER_INFO, {})
        table = read_text(answer.body or b"{}").get("brokerAddrTable") or {}
        return {name: data["brokerAddrs"]["0"] for name, data in table.items() if "0" in data["brokerAddrs"]}

    def routed(self, topic: str, name_server: str | None = None) -> dict[str, int]:
        """Queues that can be read, by broker name, as a name server (the first by default) tells them; {} for none."""
        fields = {"topic": topic, "acceptStandardJsonOnly": "true"}
        answer = self.answer(name_server or self._name_servers[0], GET_ROUTEINFO_BY_TOPIC, fields)
        if not isinstance(answer, Frame) or answer.code or answer.body is None:
            return {}
        return {data["brokerName"]: data["readQueueNums"] for data in read_text(answer.body)["queueDatas"]}

    def create_topic(self, topic: str, queues: int, brokers: Iterable[str] | None = None) -> None:
        """Create a topic, or change its number of queues, on some brokers (all by default), by name.

        Returns when the name servers that these brokers register with route it.

        Raises:
            Refused: A broker did not.
        """
        addresses = self.brokers()
        named = sorted(addresses if brokers is None else brokers)
        for name in named:
            self.configure_topic(addresses[name], topic, queues, queues)
            self.register(addresses[name])
        until(
            lambda: all(self.routed(topic).get(name) == queues for name in named),
            pause_s=0.05,
            told=f"a route of topic {topic}",
        )

    def configure_topic(self, address: str, topic: str, read: int, write: int, perm: int = 6) -> None:
        """Create or change a topic on one broker; name servers hear of it when the broker registers next."""
        self.ask(
            address,
            UPDATE_AND_CREATE_TOPIC,
            {
                "topic": topic,
                "defaultTopic": "TBW102",
                "readQueueNums": str(read),
                "writeQueueNums": str(write),
                "perm": str(perm),
                "topicFilterType": "SINGLE_TAG",
                "topicSysFlag": "0",
                "order": "false",
            },
        )

    def delete_group(self, group: str, broker: str) -> None:
        """Delete a group with its offsets on the broker of this name."""
        fields = {"groupName": group, "cleanOffset": "true"}
        self.ask(self.brokers()[broker], DELETE_SUBSCRIPTIONGROUP, fields)

    def lock(self, group: str, client: str, topic: str, broker: str, queue: int) -> bool:
        """Ask for the lock of a queue that orderly members need, in the name of a client; whether it has it now.

        A broker gives it for 60 s, and to nobody else meanwhile.
        """
        answer = self._lock(LOCK_BATCH_MQ, group, client, topic, broker, queue)
        return bool(read_text(answer.body or b"{}").get("lockOKMQSet"))

    def unlock(self, group: str, client: str, topic: str, broker: str, queue: int) -> None:
        """Give up a client's lock of a queue."""
        self._lock(UNLOCK_BATCH_MQ, group, client, topic, broker, queue)

    def _lock(self, code: int, group: str, client: str, topic: str, broker: str, queue: int) -> Frame:
        place = {"topic": topic, "brokerName": broker, "queueId": queue}
        body = {"consumerGroup": group, "clientId": client, "mqSet": [place]}
        return self.ask(self.brokers()[broker], code, {}, json.dumps(body).encode())

    def register(self, address: str) -> None:
        """Make a broker register with its name servers now, in full; by itself it does so every 30 s.

        (A change of its permission makes it, also to the value that it has. It rewrites its settings file.)
        """
        self.ask(address, UPDATE_BROKER_CONFIG, {}, b"brokerPermission=6")

    def send(self, topic: str, broker: str, queue: int, bodies: Iterable[bytes]) -> None:
        """Send messages to one queue, one after the other."""
        address = self.brokers()[broker]
        for body in bodies:
            self.ask(
                address,
                SEND_MESSAGE,
                {
                    "producerGroup": "evenkeel-demo",
                    "topic": topic,
                    "defaultTopic": "TBW102",
                    "defaultTopicQueueNums": "4",
                    "queueId": str(queue),
                    "sysFlag": "0",
                    "bornTimestamp": str(int(time.time() * 1000)),
                    "flag": "0",
                    "properties": "",
                    "reconsumeTimes": "0",
                    "unitMode": "false",
                    "batch": "false",
                },
                body,
            )

    def ask(self, address: str, code: int, fields: Mapping[str, str], body: bytes | None = None) -> Frame:
        """One request that must succeed; a busy broker is asked again for a while.

        Raises:
            Refused: It did not, or was not answered.
        """
        deadline = time.monotonic() + _ANSWER_S
        answer = self.answer(address, code, fields, body)
        while isinstance(answer, Frame) and answer.code == _SYSTEM_BUSY and time.monotonic() < deadline:
            time.sleep(0.2)
            answer = self.answer(address, code, fields, body)
        if isinstance(answer, Frame) and answer.code == 0:
            return answer
        why = f"code {answer.code}: {answer.remark}" if isinstance(answer, Frame) else answer.reason
        raise CommandRefused(f"{address} did not do request {code} ({why})")

    def answer(self, address: str, code: int, fields: Mapping[str, str], body: bytes | None = None) -> Answer:
        """One request, whatever its answer."""
        self._client.forgive()
        [answer] = self._client.ask([Question(address, code, fields, body=body)], _ANSWER_S)
        return answer
