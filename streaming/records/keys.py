"""The keys of the stateful operator: groups, and a few reserved keys.

Any string is a legal group id, so a reserved key could look like one: every key has a letter as prefix.
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
    """Key of rows that belong to a partition and not to a group (quarantine, gaps)."""
    return f"{_PARTITION}{topic}/{partition}"


def group_of(key: str) -> str | None:
    """Group id of a group's key; None for a reserved key."""
    return key[len(_GROUP) :] if key.startswith(_GROUP) else None
