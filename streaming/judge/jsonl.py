"""The lines of `evenkeel judge`.

The records of a line are a log of one partition, their offsets 0, 1, 2, ...; the line's topics are what one closed
round behind the last of them saw. Both take the way that they take in the job: codec, fold, core.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from pydantic import ValidationError

from assignors import CustomStrategies, UnknownLibrary, parse_library
from streaming.config import GroupRules, StrategyRule
from streaming.groups import GroupConfig, Rows, advance
from streaming.log_health import UnreadableState, advance_partition
from streaming.offsets_log import Compactor
from streaming.records import Configured, GroupObservation, TopicObservation

CLUSTER: Final = "judge"
"""Name of the cluster in the rows."""

_TABLES = ("drift", "rebalance_churn", "members", "lag", "quarantine")

# The probe's default interval: so long after the last record is the round, where the line does not say.
_INTERVAL_MS = 10_000

# The last ms of the year 9999, the last day that the tables' types hold.
_LATEST = 253_402_300_799_999

# Most partitions of all topics of a line. The core keeps up to a KB of each, and no group that we know of has so many.
_MOST_PARTITIONS = 100_000

_UNKNOWN = -1

_Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Count = Annotated[int, Meta(ge=1, le=_MOST_PARTITIONS)]
_Time = Annotated[int, Meta(ge=0, le=_LATEST)]


class _Topic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    partitions: _Count
    id: str | None = None
    racks: tuple[tuple[str, ...], ...] | None = None
    start: tuple[_Offset | None, ...] | None = None
    end: tuple[_Offset | None, ...] | None = None


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str | None
    value: str | None
    time: _Long


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topics: dict[str, _Count | _Topic]
    records: tuple[_Record, ...]
    strategies: tuple[dict[str, Any], ...] = ()
    clients: tuple[str, ...] | None = None
    round_time: _Time | None = None


class _WrongQuestionError(ValueError):
    """What a line holds does not fit together."""


def judge_line(question: dict[str, Any], custom: CustomStrategies | None = None) -> dict[str, Any]:
    """Judge the groups of one line.

    Args:
        question: `topics` (a partition count each, or `partitions`, `id`, `racks`, `start`, `end`), `records` (`key`
            and `value` in hex or null, `time` in ms), and optionally `strategies` (`groups`, a name or a regular
            expression between slashes, `strategy`, `clients`), `clients` and `round_time` (ms).
        custom: The user's own strategies.

    Returns:
        The rows by table: columns by name, times in ms and dates in days since the epoch, bytes in hex; of `lag` those
        of topics with an `end`. Or `{"error": reason}`.
    """
    try:
        asked = msgspec.convert(question, _Question)
        records = [(_bytes(at, "key", one.key), _bytes(at, "value", one.value)) for at, one in enumerate(asked.records)]
        topics = {name: one if isinstance(one, _Topic) else _Topic(one) for name, one in asked.topics.items()}
        if sum(topic.partitions for topic in topics.values()) > _MOST_PARTITIONS:
            message = f"the topics have more than {_MOST_PARTITIONS} partitions"
            raise _WrongQuestionError(message)
        seen = tuple(_seen(name, topic) for name, topic in topics.items())
        rules = _rules(asked)
    except ValueError as error:
        return {"error": str(error)}
    log = Compactor(0, 1, [len(records)], _all, _all)
    for at, (key, value) in enumerate(records):
        log.add(at, asked.records[at].time, key, value)
    newest = max((record.time for record in asked.records), default=0)
    default = min(max(newest + _INTERVAL_MS, 0), _LATEST)
    time = default if asked.round_time is None else asked.round_time
    config = GroupConfig(CLUSTER, custom=custom or CustomStrategies())
    written = [
        advance(None, group, [*inputs, _round(len(records), time, seen, rules, group)], config)[1]
        for group, inputs in log.groups()
    ]
    written.append(advance_partition(UnreadableState(), log.unreadable(), CLUSTER)[1])
    return _printed(written, {name for name, topic in topics.items() if topic.end is not None})


def _rules(asked: _Question) -> GroupRules:
    """What the line says of its groups' strategies and clients, in the form of the settings."""
    try:
        rules = tuple(StrategyRule.model_validate(one) for one in asked.strategies)
        for client in asked.clients or ():
            parse_library(client)
    except ValidationError as error:
        message = error.errors(include_input=False)[0]["msg"].removeprefix("Value error, ")
        raise _WrongQuestionError(message) from None
    except UnknownLibrary as error:
        raise _WrongQuestionError(str(error)) from None
    return GroupRules(rules, asked.clients or ())


def _seen(name: str, topic: _Topic) -> TopicObservation:
    for field in ("racks", "start", "end"):
        given = getattr(topic, field)
        if given is not None and len(given) != topic.partitions:
            message = f"topic {name!r} has {topic.partitions} partitions, and {field} is of {len(given)}"
            raise _WrongQuestionError(message)
    ends = _packed(topic.end, topic.partitions)
    return TopicObservation(
        topic=name,
        topic_id=topic.id,
        partitions=topic.partitions,
        high_watermarks=ends,
        last_stable_offsets=ends,
        log_start_offsets=_packed(topic.start, topic.partitions),
        racks=topic.racks,
    )


def _packed(offsets: Sequence[int | None] | None, partitions: int) -> bytes:
    known = [None] * partitions if offsets is None else offsets
    return struct.pack(f"<{partitions}q", *(_UNKNOWN if offset is None else offset for offset in known))


def _round(
    position: int, time: int, topics: tuple[TopicObservation, ...], rules: GroupRules, group: str
) -> GroupObservation:
    """What the first round saw of a group behind all records; the coordinator's words are not known."""
    return GroupObservation(
        round=0,
        time=time,
        log_partition=0,
        log_position=position,
        state=None,
        protocol_type=None,
        group_type=None,
        gone=None,
        held_since=None,
        topics=topics,
        closed=time,
        configured=None if (says := rules.of(group)) is None else Configured(rules.version, *says),
    )


def _bytes(at: int, field: str, text: str | None) -> bytes | None:
    try:
        if text is None:
            return None
        return bytes.fromhex(text)
    except ValueError:
        message = f"the {field} of records[{at}] is not hex"
        raise _WrongQuestionError(message) from None


def _printed(written: Sequence[Rows], with_ends: set[str]) -> dict[str, Any]:
    found = {table: [row for rows in written for row in getattr(rows, table)] for table in _TABLES}
    found["lag"] = [row for row in found["lag"] if row.topic in with_ends]
    return {table: [_plain(row) for row in rows] for table, rows in found.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    return value


def _all(_: str) -> bool:
    return True
