"""Errors in a group of the consumer protocol (KIP-848)."""

from __future__ import annotations

from assignors.exceptions import BadGroup

__all__ = ["BadTarget", "BadUuid"]


class BadUuid(BadGroup):
    """A topic id is not a UUID."""


class BadTarget(BadGroup):
    """A previous target that no record could contain: a topic twice, or a partition that is not an int32."""
