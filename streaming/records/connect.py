"""What the configuration topic of a Connect group says at a round: its part of a `GroupObservation`.

Arrays in JSON and in msgpack: fields are only ever appended, with defaults.
"""

from __future__ import annotations

from typing import Final

import msgspec

STOPPED: Final = "STOPPED"
"""Target state of a connector without tasks (Kafka 3.5, KIP-875)."""

TASKS_UNKNOWN: Final = -1
"""`Connector.tasks` where compaction has left too little of the topic to tell."""


class Connector(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A connector that is configured.

    Attributes:
        name: Its name.
        tasks: Number of its tasks, by the newest commit; 0 before the first, or `TASKS_UNKNOWN`.
        state: Target state: "STARTED", "PAUSED", whose tasks are assigned all the same, or `STOPPED`.
    """

    name: str
    tasks: int
    state: str


class SeenConnectors(msgspec.Struct, frozen=True, array_like=True):
    """The connectors of a Connect group in one round.

    Attributes:
        topic: The configuration topic.
        connectors: All that are configured, by name.
    """

    topic: str
    connectors: tuple[Connector, ...]
