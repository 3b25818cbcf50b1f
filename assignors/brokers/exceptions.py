"""What can be wrong with a group of the consumer protocol (KIP-848)."""

from __future__ import annotations

from assignors.exceptions import BadGroup

__all__ = ["BadTarget", "BadUuid"]


class BadUuid(BadGroup):
    """A topic id is no uuid."""


class BadTarget(BadGroup):
    """A previous target is none that a record could hold: a topic twice, or a partition that is no int32."""
