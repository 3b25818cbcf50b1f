"""Members of a group that are Java's own `DefaultMQPushConsumer`s, in a JVM of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from streaming.jars import classpath
from streaming.rocketmq import Client, Frame, Question, Request, answers
from tests.oracle import java_classes
from tests.patience import until

_LIMIT_S = 60.0
_JARS = "rocketmq-server-5.5.0"
_SOURCE = Path(java_classes.__file__).with_name("RocketMqMembers.java")


class JavaMembers:
    """Members that share a JVM; a context manager."""

    def __init__(
        self,
        name_servers: Sequence[str],
        group: str,
        topics: Sequence[str],
        members: Sequence[tuple[str, str, str]],
        jars: Sequence[Path] | None = None,
        *,
        orderly: bool = False,
        options: Sequence[str] = (),
    ) -> None:
        """Prepare them.

        Args:
            name_servers: Their name servers.
            group: Their group.
            topics: What they subscribe to.
            members: Strategy, address and instance of each; its id is "ADDRESS@INSTANCE".
            jars: The client's jars; default: those of 5.5.0.
            orderly: They take messages in order, under the broker's locks.
            options: Further options of the JVM.
        """
        self._way = "orderly" if orderly else "start"
        self._name_servers, self._group, self._members = tuple(name_servers), group, list(members)
        java, *rest = java_classes.java_command(_SOURCE, jars or classpath(_JARS), "128m")
        self._command = [java, *options, *rest, ";".join(name_servers), group, ",".join(topics)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for strategy, address, instance in self._members:
            self.start(strategy, address, instance)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        """Their JVM's process id."""
        return self._process.pid

    def start(self, strategy: str, address: str, instance: str) -> None:
        """Start one more."""
        self._order(f"{self._way} {strategy} {address} {instance}")

    def stop(self, client_id: str) -> None:
        """Let one leave."""
        self._order(f"stop {client_id}")

    def until_all_hold(self, topic: str, queues: int) -> None:
        """Return when together they hold so many queues of a topic, as they say themselves."""
        with Client() as client:
            told = f"not all of {queues} queues are held"
            until(lambda: self._held(client, topic) == queues, pause_s=0.2, told=told)

    def _held(self, client: Client, topic: str) -> int:
        [info] = client.ask([Question(self._name_servers[0], Request.GET_BROKER_CLUSTER_INFO)], 5)
        table = answers.read_body(answers.ClusterInfo, info.body).brokerAddrTable
        broker = min(data.brokerAddrs["0"] for data in table.values())
        ids = [f"{address}@{instance}" for _, address, instance in self._members]
        code = Request.GET_CONSUMER_RUNNING_INFO
        questions = [Question(broker, code, {"consumerGroup": self._group, "clientId": one}) for one in ids]
        found: set[str] = set()
        for answer in client.ask(questions, 12):
            if isinstance(answer, Frame) and answer.code == 0:
                table_of = answers.read_body(answers.RunningInfo, answer.body).mqTable or {}
                found |= {key for key in table_of if answers.queue_of(key).topic == topic}
        return len(found)

    def _order(self, line: str) -> None:
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "ok\n"
