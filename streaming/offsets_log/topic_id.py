"""Topic ids as Kafka prints them (`org.apache.kafka.common.Uuid`): URL-safe base64 without padding."""

from __future__ import annotations

from base64 import urlsafe_b64encode

__all__ = ["ZERO", "printed"]

ZERO = bytes(16)


def printed(topic_id: bytes) -> str | None:
    """Print 16 bytes as Kafka does; None for the zero id, which stands for "not known"."""
    if topic_id == ZERO:
        return None
    return urlsafe_b64encode(topic_id)[:22].decode("ascii")
