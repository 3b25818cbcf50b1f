"""The keys of the stateful operator: groups, and the few reserved ones that are no groups.

Any string is a legal group id, so a reserved key cannot be told by its look alone: every key carries a letter.
"""

from __future__ import annotations

__all__ = ["ROUNDS_KEY", "group_key", "group_of", "partition_key"]

ROUNDS_KEY = "r:"
"""Key of the closed rounds."""

_GROUP = "g:"
_PARTITION = "p:"


def group_key(group: str) -> str:
    """Key of a group."""
    return _GROUP + group


def partition_key(topic: str, partition: int) -> str:
    """Key of what belongs to a partition of a topic and to no group (quarantine, gaps)."""
    return f"{_PARTITION}{topic}/{partition}"


def group_of(key: str) -> str | None:
    """Group id of a group's key; None for a reserved key."""
    return key[len(_GROUP) :] if key.startswith(_GROUP) else None
