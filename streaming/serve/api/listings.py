"""The listings of the API, and the cursors between their pages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from starlette.exceptions import HTTPException

from streaming.serve.page import quoted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# What fits into 64 bits, as the tables' numbers and DuckDB's parameters do.
_Long = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]


def encode_cursor(values: Sequence[Any]) -> str:
    """The cursor of the page after a row, from the values of its key."""
    plain = [(v - _EPOCH) // timedelta(microseconds=1) if isinstance(v, datetime) else v for v in values]
    return base64.urlsafe_b64encode(msgspec.json.encode(plain)).decode().rstrip("=")


def decode_cursor(cursor: str, kinds: Sequence[type]) -> list[Any]:
    """The values of the key.

    Args:
        cursor: What a client has sent.
        kinds: The types of the key's columns: str, int or datetime.

    Raises:
        HTTPException: It is none of this list.
    """
    plain: Any = tuple[tuple(str if kind is str else _Long for kind in kinds)]  # type: ignore[misc]  # a type by values
    try:
        values = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=plain)
        return [
            _EPOCH + timedelta(microseconds=value) if kind is datetime else value
            for value, kind in zip(values, kinds, strict=True)
        ]
    except (binascii.Error, ValueError, RecursionError, OverflowError):
        message = f"cursor does not belong to this list: {quoted(cursor)}; use `next` of the previous page."
        raise HTTPException(400, message) from None


# A page of this size is a few hundred kilobytes; making its JSON holds up others for some milliseconds.
MOST: Final = 1_000


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a list: the first three of every list, the others of those that name them.

    Attributes:
        cluster: One cluster, by its configured name; None for all.
        limit: Most rows of a page.
        cursor: `next` of the page before.
        group: One group, by its id.
        topic: One topic.
        status: One lag_status, for example stopped.
        verdict: identical, drifted, unverified or not_applicable.
        kind: One kind of advice, for example static_membership.
        since: How far to look back; at most `serve.past_hours`, which is the default.
    """

    cluster: str | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 100
    cursor: str | None = None
    group: str | None = None
    topic: str | None = None
    status: str | None = None
    verdict: str | None = None
    kind: str | None = None
    since: Annotated[datetime, Meta(tz=True)] | None = None


class ExplainFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of an explanation.

    Attributes:
        group: The group's id.
        cluster: The cluster, by its configured name.
        generation: A generation or epoch; None for the newest verdict.
        decision: Number of a decision; None for the newest.
        partition: Only this partition, as TOPIC/NUMBER. For RocketMQ the queues of this number on every broker; with
            TOPIC@BROKER as the topic, that one.
    """

    group: str
    cluster: str | None = None
    generation: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    decision: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """One list.

    Attributes:
        name: Last part of its path.
        query: Name of the query.
        takes: Its parameters beside those of every list.
        key: Columns that order the rows, and that no two rows share; never NULL.
        newest_first: Whether the order is from the largest key to the smallest.
    """

    name: str
    query: str
    takes: tuple[str, ...]
    key: tuple[str, ...]
    newest_first: bool = False


LISTINGS: Final = (
    Listing("groups", "groups", ("group",), ("cluster", "group_id")),
    Listing(
        "decisions", "rebalances", ("group", "since"), ("record_time", "decision", "cluster", "group_id"),
        newest_first=True,
    ),
    Listing("drift", "api_drift", ("group", "verdict"), ("cluster", "group_id")),
    Listing("lag", "api_lag", ("group", "topic", "status"), ("cluster", "group_id", "topic", "partition")),
    Listing("members", "api_members", ("group",), ("cluster", "group_id", "member_id")),
    Listing("topics", "topics", ("topic",), ("cluster", "topic")),
    Listing("what-if", "api_what_if", ("group",), ("cluster", "group_id", "strategy")),
    Listing("advice", "api_advice", ("group", "kind"), ("cluster", "group_id", "kind")),
    Listing("alerts", "alerts", ("group",), ("cluster", "alert_id")),
    Listing("mutes", "mutes", (), ("until_time", "cluster", "mute_id")),
    Listing("marks", "marks", ("group", "since"), ("mark_time", "cluster", "mark_id"), newest_first=True),
)  # fmt: skip
"""All of them (docs/metrics.md says what each lists); a new one is a query file and an entry here."""
