"""Who should own what in a group, and why: a verdict's row told in words, for the terminal, the page and the API."""

from __future__ import annotations

from streaming.explain.partition import PartitionError, read_partition
from streaming.explain.run import print_explanation
from streaming.explain.told import Told, tell

__all__ = ["PartitionError", "Told", "print_explanation", "read_partition", "tell"]
