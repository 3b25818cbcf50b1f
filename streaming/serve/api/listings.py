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

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# What fits into 64 bits, as the tables' numbers and DuckDB's parameters do.
_Long = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]


class CursorError(ValueError):
    """A text is no cursor of that list."""


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
        CursorError: It is none of this list.
    """
    plain: Any = tuple[tuple(str if kind is str else _Long for kind in kinds)]  # type: ignore[misc]  # a type by values
    try:
        values = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=plain)
        return [
            _EPOCH + timedelta(microseconds=value) if kind is datetime else value
            for value, kind in zip(values, kinds, strict=True)
        ]
    except (binascii.Error, ValueError, RecursionError, OverflowError) as error:
        raise CursorError from error


# A page of this size is a few hundred kilobytes; making its JSON holds up others for some milliseconds.
MOST: Final = 1_000


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of every list."""

    cluster: Annotated[str | None, Meta(description="One cluster, by its configured name; otherwise all.")] = None
    limit: Annotated[int, Meta(ge=1, le=MOST, description="Most rows of a page.")] = 100
    cursor: Annotated[str | None, Meta(description="`next` of the page before.")] = None


class GroupFilter(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of lists about groups."""

    group: Annotated[str | None, Meta(description="One group, by its id; otherwise all.")] = None


class DecisionFilter(GroupFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of decisions."""

    since: Annotated[
        Annotated[datetime, Meta(tz=True)] | None,
        Meta(description="How far to look back (RFC 3339); at most `serve.past_hours`, which is the default."),
    ] = None


class DriftFilter(GroupFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of verdicts."""

    verdict: Annotated[
        str | None, Meta(description="identical, drifted, unverified or not_applicable; otherwise all.")
    ] = None


class LagFilter(GroupFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of lag."""

    topic: Annotated[str | None, Meta(description="One topic; otherwise all.")] = None
    status: Annotated[str | None, Meta(description="One lag_status, for example stopped; otherwise all.")] = None


class TopicFilter(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of topics."""

    topic: Annotated[str | None, Meta(description="One topic; otherwise all.")] = None


class AdviceFilter(GroupFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of advice."""

    kind: Annotated[str | None, Meta(description="One kind, for example static_membership; otherwise all.")] = None


@dataclass(frozen=True, slots=True)
class Listing:
    """One list.

    Attributes:
        name: Last part of its path.
        told: What it lists, in a sentence.
        query: Name of the query.
        filters: Its parameters.
        key: Columns that order the rows, and that no two rows share; never NULL.
        tables: Tables whose columns the rows have: their comments become the descriptions.
        newest_first: Whether the order is from the largest key to the smallest.
    """

    name: str
    told: str
    query: str
    filters: type[Filter]
    key: tuple[str, ...]
    tables: tuple[str, ...]
    newest_first: bool = False


LISTINGS: Final = (
    Listing("groups", "Every living group, and what is wrong with it.", "groups", GroupFilter,
            ("cluster", "group_id"), ("group_health", "drift")),
    Listing("decisions", "Decisions on who owns what: why, and at what cost; the newest first.", "rebalances",
            DecisionFilter, ("record_time", "decision", "cluster", "group_id"), ("rebalance_churn", "drift"),
            newest_first=True),
    Listing("drift", "The newest verdict of each group, with the partitions that drifted.", "api_drift", DriftFilter,
            ("cluster", "group_id"), ("drift",)),
    Listing("lag", "Every partition of every group: lag, offsets, owner.", "api_lag", LagFilter,
            ("cluster", "group_id", "topic", "partition"), ("lag",)),
    Listing("members", "The members of each group, with their partitions.", "api_members", GroupFilter,
            ("cluster", "group_id", "member_id"), ("members",)),
    Listing("topics", "The topics of the cluster: rates, bytes, who reads them, and how far behind these are.",
            "topics", TopicFilter, ("cluster", "topic"), ("topics", "group_health", "lag")),
    Listing("what-if", "What other strategies would have done at each group's newest decision.", "api_what_if",
            GroupFilter, ("cluster", "group_id", "strategy"), ("what_if",)),
    Listing("advice", "The advice that holds: what to change, why, and what it costs.", "api_advice", AdviceFilter,
            ("cluster", "group_id", "kind"), ("advice",)),
    Listing("alerts", "The alerts that fire.", "alerts", GroupFilter, ("cluster", "alert_id"), ("alerts",)),
    Listing("mutes", "Mutes that are not over, also those that begin later; by their first end.", "mutes", Filter,
            ("until_time", "cluster", "mute_id"), ("mutes",)),
    Listing("marks", "What was done outside of Kafka, such as deploys; the newest first.", "marks", DecisionFilter,
            ("mark_time", "cluster", "mark_id"), ("marks",), newest_first=True),
)  # fmt: skip
"""All of them; a new one is a query file and an entry here."""
