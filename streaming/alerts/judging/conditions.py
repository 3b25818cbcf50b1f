"""Conditions of the rules: each over every row of a chunk at once, in DuckDB; only relevant ones are returned.

Hardly any of ten thousand rows a round is relevant: those that are true, those of alerts that are pending or firing,
and those that end something.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa

from streaming.alerts.judging.feed import Chunk
from streaming.alerts.judging.firing import AlertKey, FeedRound, Observed, RuleRow
from streaming.alerts.rules.expressions import connect, fetched, fill
from streaming.alerts.rules.rules import CLOCK_COLUMNS, CLOCK_FIELDS, Rule
from streaming.times import epoch_ms

_Order: TypeAlias = tuple[bool, tuple[int, ...]]
"""Orders the rows of one key in a round: whether it ends the key, and its age; the larger, the newer."""

_OrderedRow: TypeAlias = tuple[_Order, RuleRow]


class Conditions:
    """Applies the rules to rows. Not for several threads."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._connection = connect()

    def columns(self, *, of_events: bool = False) -> dict[str, frozenset[str]]:
        """Columns that the rules over rounds read, by table, or those over events."""
        found: dict[str, frozenset[str]] = {}
        for rule in self._rules:
            if rule.of_events is of_events:
                read = (rule.columns | set(rule.key)) - CLOCK_COLUMNS
                found[rule.table.name] = found.get(rule.table.name, frozenset()) | read
        return found

    def rounds(self, chunk: Chunk, active: Collection[AlertKey]) -> list[Observed]:
        """Judge a chunk: the news of each of its rounds, in order.

        Args:
            chunk: Rounds and rows.
            active: Alerts that are pending or firing: for these, false and NULL are returned too.
        """
        by_round: list[list[_OrderedRow]] = [[] for _ in chunk.rounds]
        numbers = [r.number for r in chunk.rounds]
        for rule in self._rules:
            if rule.by_clock or rule.of_events:
                continue
            rows = chunk.rows.get(rule.table.name)
            found = self._judge(rule, rows, active) if rows is not None and rows.num_rows else []
            if rule.table.name == "drift":
                entities = {entity for name, entity in active if name == rule.name}
                entities |= {seen.entity for *_, seen in found}
                found += _closings(rule, chunk.rows.get("group_health"), entities)
            for number, order, seen in found:
                # The rows of a round that was passed over come with the next one.
                by_round[min(bisect_left(numbers, number), len(numbers) - 1)].append((order, seen))
        return [Observed(one, _newest(found)) for one, found in zip(chunk.rounds, by_round, strict=True)]

    def events(self, rows: Mapping[str, pa.Table], at: FeedRound | None, now: int) -> Observed:
        """Judge new rows of events: only true ones are returned, one per rule and subject.

        Args:
            rows: By table.
            at: The newest round; None before the first.
            now: The alerter's clock, ms.
        """
        found: list[_OrderedRow] = []
        for rule in self._rules:
            if rule.of_events and rule.table.name in rows:
                found += [(order, seen) for _, order, seen in self._judge(rule, rows[rule.table.name], ())]
        return Observed(at, _newest((order, seen) for order, seen in found if seen.condition), now)

    def by_clock(
        self, cluster: str, newest: pa.Table | None, at: FeedRound | None, now: int, known: Mapping[str, Any]
    ) -> Observed:
        """Judge the rules by the clock.

        Args:
            cluster: The cluster.
            newest: The newest row of `rounds`; None before the first.
            at: The same; None before the first.
            now: The alerter's clock, ms.
            known: What the alerter knows by itself, by the names of `CLOCK_FIELDS`; what is missing is not known.
        """
        schema = next((r.table.arrow_schema for r in self._rules if r.by_clock), None)
        if schema is None:
            return Observed(at, now=now)
        row = newest if newest is not None else schema.empty_table()
        if row.num_rows == 0:
            row = pa.Table.from_pylist([{"cluster": cluster}], schema=schema)
        for field in CLOCK_FIELDS:
            row = row.append_column(field, pa.array([known.get(field.name)], field.type))
        seen = [
            found
            for rule in self._rules
            if rule.by_clock
            for _, _, found in self._judge(rule, row, {(rule.name, "{}")})
        ]
        return Observed(at, tuple(seen), now)

    def _judge(self, rule: Rule, rows: pa.Table, active: Iterable[AlertKey]) -> list[tuple[int, _Order, RuleRow]]:
        # TRY: a row on which an expression fails (a cast, an overflow) is not known; the others are.
        value = f"TRY({rule.value.sql})" if rule.value is not None else "NULL::DOUBLE"
        ended = {"ended"} if rule.table.closes else set()
        rounds = set() if rule.of_events else {"round"}
        names = sorted({*rounds, *rule.table.newest_by, *rule.columns, *rule.key, *ended})
        columns = ", ".join(f'"{name}"' for name in names)
        keys = ", ".join(f'"{name}"' for name in rule.key)
        # The rule's own expression, which `expressions.check` has seen.
        judged = f'SELECT {columns}, TRY(({rule.when.sql}\n)) AS "_condition", {value} AS "_value" FROM rows_of_rule'  # noqa: S608
        sql = f"WITH judged AS ({judged}) SELECT * FROM judged "  # noqa: S608
        if rule.key:
            relevant = f'SELECT {keys} FROM judged WHERE "_condition" UNION ALL SELECT {keys} FROM known_alerts'  # noqa: S608
            # A key may have NULL in it: an equal one, here.
            same = " AND ".join(f'judged."{name}" IS NOT DISTINCT FROM wanted."{name}"' for name in rule.key)
            sql += f"SEMI JOIN ({relevant}) AS wanted ON {same}"
            known = [json.loads(entity) for name, entity in active if name == rule.name]
            schema = pa.schema([rule.table.arrow_schema.field(name) for name in rule.key])
            self._connection.register("known_alerts", pa.Table.from_pylist(known, schema=schema))
        self._connection.register("rows_of_rule", rows)
        found = fetched(self._connection, sql).to_pylist()
        return [(row.get("round") or 0, _order(rule, row), _seen(rule, row)) for row in found]


def _order(rule: Rule, row: Mapping[str, Any]) -> _Order:
    values = (row[column] for column in rule.table.newest_by)
    age = tuple(epoch_ms(value) if isinstance(value, datetime) else int(value or 0) for value in values)
    return bool(row.get("ended")), age


def _newest(rows: Iterable[_OrderedRow]) -> tuple[RuleRow, ...]:
    """The newest row of each key, in the order in which the keys came."""
    newest: dict[AlertKey, _OrderedRow] = {}
    for order, seen in rows:
        if seen.key not in newest or newest[seen.key][0] <= order:
            newest[seen.key] = order, seen
    return tuple(seen for _, seen in newest.values())


def _seen(rule: Rule, row: Mapping[str, Any]) -> RuleRow:
    # Columns of the key that are NULL are left out.
    key = {name: row[name] for name in rule.key if row.get(name) is not None}
    entity = json.dumps(key, ensure_ascii=False, separators=(",", ":"))
    value = row["_value"]
    if row.get("ended"):
        return RuleRow(rule.name, entity, None, gone=True)
    if not row["_condition"]:
        return RuleRow(rule.name, entity, row["_condition"], value=value)
    values = {**row, "value": value}
    labels = tuple((name, fill(template, values)) for name, template in rule.labels)
    return RuleRow(rule.name, entity, True, value=value, message=fill(rule.message, values), labels=labels)


def _closings(rule: Rule, health: pa.Table | None, entities: Iterable[str]) -> list[tuple[int, _Order, RuleRow]]:
    """A group that ends ends its verdicts too: those that are active or were just found, for any of its topics."""
    if health is None or health.num_rows == 0:
        return []
    ended: dict[str | None, list[int]] = {}
    for row in health.filter(health["ended"]).select(["group_id", "round"]).to_pylist():
        ended.setdefault(row["group_id"], []).append(row["round"])
    return [
        (number, (True, (number,)), RuleRow(rule.name, entity, None, gone=True))
        for entity in entities
        for number in ended.get(json.loads(entity).get("group_id"), ())
    ]
