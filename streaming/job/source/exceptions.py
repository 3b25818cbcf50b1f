"""Errors that end a streaming query on purpose; anything that can be waited for or put in a table is none of these."""

from __future__ import annotations

from streaming.exceptions import EvenkeelError


class SourceError(EvenkeelError):
    """Base class of this package's exceptions."""


class AnotherSourceError(SourceError):
    """Groups come from another source than the one that the checkpoint follows: a person must decide."""


class AnotherClusterError(SourceError):
    """The brokers belong to another Kafka cluster than the checkpoint: a person must decide which one is meant."""
