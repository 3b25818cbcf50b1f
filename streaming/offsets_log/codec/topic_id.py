"""Topic ids as Kafka prints them (`org.apache.kafka.common.Uuid`): URL-safe base64 without padding."""

from __future__ import annotations

from base64 import urlsafe_b64encode

__all__ = ["ZERO", "printed", "text_of"]

ZERO = bytes(16)


def printed(topic_id: bytes) -> str | None:
    """Print 16 bytes as Kafka does; None for the zero id, which stands for "not known"."""
    if topic_id == ZERO:
        return None
    return text_of(topic_id)


def text_of(uuid: bytes) -> str:
    """Print 16 bytes as Kafka prints a UUID, the zero one too."""
    return urlsafe_b64encode(uuid)[:22].decode("ascii")
