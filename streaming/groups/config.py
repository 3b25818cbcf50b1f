"""What the core is told by the configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["GroupConfig"]


def _none(_: str) -> None:
    return None


def _all(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Settings of the core, the same for every group of a cluster.

    Attributes:
        cluster: Configured name of the cluster.
        metadata_grace_ms: How long a leader may work with old metadata.
        heartbeat_ms: Rows are repeated after this time without a change.
        expected_strategy: Strategy that a group is expected to run; None when none is configured.
        watches_topic: Whether a topic passes the filters: no round shows one that does not.
    """

    cluster: str
    metadata_grace_ms: int = 600_000
    heartbeat_ms: int = 600_000
    expected_strategy: Callable[[str], str | None] = _none
    watches_topic: Callable[[str], bool] = _all
