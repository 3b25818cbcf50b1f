"""Messages of Kafka's protocol that kafka-python 3.0.12 has no schema for; it builds the classes from JSON files.

Source of the layouts: KIP-848, `ConsumerGroupDescribeRequest.json` and `…Response.json` of Kafka 4.3.1 (API key 69,
version 1 since 4.0); KIP-932 and KIP-1226, `ShareGroupDescribe…` (API key 77, version 1 since 4.1) and
`DescribeShareGroupOffsets…` (API key 90, version 1 since 4.2); KIP-1071, `StreamsGroupDescribe…` (API key 89, since
4.1). Remove when kafka-python has them.
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

__all__ = [
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsResponse",
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
    "StreamsGroupDescribeRequest",
    "StreamsGroupDescribeResponse",
]


class ConsumerGroupDescribeRequest(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]  # no types
    """Asks a coordinator for groups of the consumer protocol."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]  # no types
    """Its answer."""


class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]  # no types
    """Asks a coordinator for the start offsets and lag of share groups; null topics stand for all of a group's."""


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]  # no types
    """Its answer."""


class ShareGroupDescribeRequest(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]  # no types
    """Asks a coordinator for share groups."""


class ShareGroupDescribeResponse(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]  # no types
    """Its answer."""


class StreamsGroupDescribeRequest(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]  # no types
    """Asks a coordinator for streams groups."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]  # no types
    """Its answer."""
