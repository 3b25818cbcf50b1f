"""Two real brokers of one cluster, in the racks "a" and "b"; the first one has the controller."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from streaming.demo.broker import EmbeddedBroker

_CLUSTER_ID = "c29tZS1jbHVzdGVyLWlkMQ"


class Node(EmbeddedBroker):
    """One broker of several."""

    def _format(self) -> None:
        tool = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", self._properties]
        subprocess.run([*self._java(), *tool], check=True, capture_output=True)


@dataclass(frozen=True, slots=True)
class Pair:
    first: Node
    second: Node

    @property
    def bootstrap(self) -> str:
        return f"{self.first.bootstrap},{self.second.bootstrap}"


@contextmanager
def pair_of_brokers(folders: pytest.TempPathFactory, shared: Mapping[str, str]) -> Iterator[Pair]:
    """Start both; their node ids are 1 and 2, and each has all of the offsets log.

    Args:
        folders: Where their folders are made.
        shared: Settings of both.
    """
    shared = {"offsets.topic.replication.factor": "2", **shared}
    first = Node(folders.mktemp("first"), heap="384m", overrides={**shared, "broker.rack": "a"})
    second = Node(folders.mktemp("second"), heap="384m")
    second._overrides |= {
        **shared,
        "broker.rack": "b",
        "process.roles": "broker",
        "node.id": "2",
        "controller.quorum.voters": f"1@127.0.0.1:{first._controller_port}",
        "listeners": f"PLAINTEXT://{second.bootstrap}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    with first, second:
        yield Pair(first, second)
