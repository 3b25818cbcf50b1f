"""Messages of Kafka's protocol that kafka-python 3.0.12 has no schema for; it builds the classes from JSON files.

Source of the layouts: KIP-848, `ConsumerGroupDescribeRequest.json` and `…Response.json` of Kafka 4.3.1 (API key 69,
version 1 since 4.0). Remove when kafka-python has them.
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

__all__ = ["ConsumerGroupDescribeRequest", "ConsumerGroupDescribeResponse"]


class ConsumerGroupDescribeRequest(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]  # no types
    """Asks a coordinator for groups of the consumer protocol."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]  # no types
    """Its answer."""
