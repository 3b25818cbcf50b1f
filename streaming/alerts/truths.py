"""Rows to truths: every rule over every row of a piece at once, in DuckDB, and only what matters comes out.

Of ten thousand rows a round hardly any matters: those that say true, those of alerts that are pending or firing, and
those that end something.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa

from streaming.alerts.expressions import connect, fetched
from streaming.alerts.feed import Chunk, Round
from streaming.alerts.firing import Key, Observed, Seen, Subject
from streaming.alerts.rules import SILENT_S, Rule
from streaming.alerts.text import fill

__all__ = ["Judge"]

_Age: TypeAlias = tuple[int, ...]
"""What orders the rows of one key: the larger, the newer."""


class Judge:
    """The rules over rows. Not for several threads."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._connection = connect()

    @property
    def columns(self) -> dict[str, frozenset[str]]:
        """Columns that the rules read, by table."""
        found: dict[str, frozenset[str]] = {}
        for rule in self._rules:
            found[rule.table.name] = found.get(rule.table.name, frozenset()) | (rule.columns - {SILENT_S})
        return found

    def rounds(self, chunk: Chunk, active: Collection[Key]) -> list[Observed]:
        """Judge a piece: what is new at each of its rounds, in order.

        Args:
            chunk: Rounds and rows.
            active: Alerts that are pending or firing: of them, false and NULL are told too.
        """
        by_round: list[dict[Key, tuple[tuple[bool, _Age], Seen]]] = [{} for _ in chunk.rounds]
        numbers = [r.number for r in chunk.rounds]
        for rule in self._rules:
            if rule.by_clock:
                continue
            rows = chunk.rows.get(rule.table.name)
            found = self._judge(rule, rows, active) if rows is not None and rows.num_rows else []
            if rule.table.name == "drift":
                found += _closings(rule, chunk.rows.get("group_health"))
            for number, age, seen in found:
                # A round that was passed over shows its rows with the next.
                at = min(bisect_left(numbers, number), len(numbers) - 1)
                order = (seen.gone, age)
                kept = by_round[at].get((rule.name, seen.subject.entity))
                if kept is None or kept[0] <= order:
                    by_round[at][rule.name, seen.subject.entity] = (order, seen)
        return [
            Observed(r.number, r.time, r.interval_ms, tuple(seen for _, seen in found.values()))
            for r, found in zip(chunk.rounds, by_round, strict=True)
        ]

    def silence(self, cluster: str, newest: pa.Table | None, at: Round | None, since: int, silent_s: float) -> Observed:
        """Judge the rules by the clock.

        Args:
            cluster: The cluster.
            newest: The newest row of `rounds`; None before the first.
            at: The same; None before the first.
            since: Where there is no round: when the alerter began to wait, ms.
            silent_s: Seconds of silence.
        """
        schema = next((r.table.arrow_schema for r in self._rules if r.by_clock), None)
        if schema is None:
            return _nothing(at, since)
        row = newest if newest is not None else schema.empty_table()
        if row.num_rows == 0:
            row = pa.Table.from_pylist([{"cluster": cluster}], schema=schema)
        row = row.append_column(SILENT_S, pa.array([silent_s], pa.float64()))
        seen = [
            found
            for rule in self._rules
            if rule.by_clock
            for _, _, found in self._judge(rule, row, {(rule.name, "{}")})
        ]
        empty = _nothing(at, since)
        return Observed(empty.round, empty.time, empty.interval_ms, tuple(seen))

    def _judge(self, rule: Rule, rows: pa.Table, active: Iterable[Key]) -> list[tuple[int, _Age, Seen]]:
        # TRY: a row on which an expression fails (a cast, an overflow) is not known; the others are.
        value = f"TRY({rule.value.sql})" if rule.value is not None else "NULL::DOUBLE"
        closed = {"closed"} if rule.table.closes else set()
        names = sorted({"round", *rule.table.newest_by, *rule.columns, *rule.key, *closed})
        columns = ", ".join(f'"{name}"' for name in names)
        keys = ", ".join(f'"{name}"' for name in rule.key)
        sql = f"""
            WITH judged AS (SELECT {columns}, TRY(({rule.when.sql}
            )) AS "_truth", {value} AS "_value" FROM rows_of_rule)
            SELECT * FROM judged
        """  # noqa: S608 - the rule's own expression, which `expressions.check` has seen
        if rule.key:
            told = f'SELECT {keys} FROM judged WHERE "_truth" UNION ALL SELECT {keys} FROM known_alerts'  # noqa: S608
            sql += f"SEMI JOIN ({told}) AS wanted USING ({keys})"
            known = [json.loads(entity) for name, entity in active if name == rule.name]
            schema = pa.schema([rule.table.arrow_schema.field(name) for name in rule.key])
            self._connection.register("known_alerts", pa.Table.from_pylist(known, schema=schema))
        self._connection.register("rows_of_rule", rows)
        found = fetched(self._connection, sql).to_pylist()
        return [(row["round"] or 0, _age(rule, row), _seen(rule, row)) for row in found]


def _age(rule: Rule, row: Mapping[str, Any]) -> _Age:
    values = (row[column] for column in rule.table.newest_by)
    return tuple(_ms(value) if value is None or isinstance(value, datetime) else int(value) for value in values)


def _seen(rule: Rule, row: Mapping[str, Any]) -> Seen:
    subject = _subject(rule, row)
    value = row["_value"]
    if row.get("closed"):
        return Seen(rule.name, subject, None, gone=True)
    if not row["_truth"]:
        return Seen(rule.name, subject, row["_truth"], value=value)
    values = {**row, "value": value}
    labels = tuple((name, fill(template, values)) for name, template in rule.labels)
    return Seen(rule.name, subject, True, value=value, message=fill(rule.message, values), labels=labels)


def _subject(rule: Rule, row: Mapping[str, Any]) -> Subject:
    entity = json.dumps({name: row[name] for name in rule.key}, ensure_ascii=False, separators=(",", ":"))
    return Subject(
        entity,
        row["group_id"] if "group_id" in rule.key else None,
        row["topic"] if "topic" in rule.key else None,
        row["partition"] if "partition" in rule.key else None,
    )


def _closings(rule: Rule, health: pa.Table | None) -> list[tuple[int, _Age, Seen]]:
    """A group that closes takes its verdict with it."""
    if health is None or health.num_rows == 0:
        return []
    closed = health.filter(health["closed"]).to_pylist()
    return [
        (row["round"], (_ms(row["round_time"]), row["round"]), Seen(rule.name, _subject(rule, row), None, gone=True))
        for row in closed
    ]


def _nothing(at: Round | None, since: int) -> Observed:
    return Observed(None, since, 0) if at is None else Observed(at.number, at.time, at.interval_ms)


def _ms(time: datetime | None) -> int:
    return round(time.timestamp() * 1000) if time is not None else 0
