"""What can go wrong with the tables."""

from __future__ import annotations

from streaming.exceptions import EvenkeelError

__all__ = ["LakeUnreadableError"]


class LakeUnreadableError(EvenkeelError):
    """A table is there and cannot be read: broken, forbidden, or with features that its readers must not have."""
