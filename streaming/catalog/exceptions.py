"""What can be wrong with a lake as a whole."""

from __future__ import annotations

from streaming.exceptions import EvenkeelError


class LakeIncompleteError(EvenkeelError):
    """Tables of a lake cannot be read, or are gone; its text names them."""
