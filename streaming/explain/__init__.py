"""Who should own what in a group, and why: a verdict's row told in words, for the terminal, the page and the API."""

from __future__ import annotations

from streaming.explain.in_words import (
    NoSuchPartitionError,
    PartitionError,
    VerdictInWords,
    read_partition,
    verdict_in_words,
    verdicts_in_words,
)
from streaming.explain.run import VERDICT, print_explanation

__all__ = [
    "VERDICT",
    "NoSuchPartitionError",
    "PartitionError",
    "VerdictInWords",
    "print_explanation",
    "read_partition",
    "verdict_in_words",
    "verdicts_in_words",
]
