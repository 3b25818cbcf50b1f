"""Conditions of the rules: those of a table in one query over every row of a chunk, which returns the relevant rows.

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
from streaming.alerts.rules.expressions import connect, fill
from streaming.alerts.rules.rules import CLOCK_COLUMNS, CLOCK_FIELDS, Rule
from streaming.times import epoch_ms

_Order: TypeAlias = tuple[bool, tuple[int, ...]]
"""Orders the rows of one key in a round: whether it ends the key, and its age; the larger, the newer."""

_OrderedRow: TypeAlias = tuple[_Order, RuleRow]

# Columns of what a rule finds of a row; its place among the rules comes after it.
_CONDITION, _VALUE = "condition of ", "value of "


class Conditions:
    """Applies the rules to rows. Not for several threads."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._connection = connect()
        self._of_rounds = [rule for rule in rules if not rule.by_clock and not rule.of_events]
        self._of_events = [rule for rule in rules if rule.of_events]
        self._of_clock = [rule for rule in rules if rule.by_clock]

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
        judged = self._judge(self._of_rounds, chunk.rows, active)
        for rule in self._of_rounds:
            found = judged.get(rule.name, [])
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
        judged = self._judge(self._of_events, rows, ())
        found = [(order, seen) for rule in self._of_events for _, order, seen in judged.get(rule.name, ())]
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
        if not self._of_clock:
            return Observed(at, now=now)
        table = self._of_clock[0].table
        row = newest if newest is not None else table.arrow_schema.empty_table()
        if row.num_rows == 0:
            row = pa.Table.from_pylist([{"cluster": cluster}], schema=table.arrow_schema)
        for field in CLOCK_FIELDS:
            row = row.append_column(field, pa.array([known.get(field.name)], field.type))
        judged = self._judge(self._of_clock, {table.name: row}, {(rule.name, "{}") for rule in self._of_clock})
        return Observed(at, tuple(seen for found in judged.values() for _, _, seen in found), now)

    def _judge(
        self, rules: Iterable[Rule], rows: Mapping[str, pa.Table], active: Collection[AlertKey]
    ) -> dict[str, list[tuple[int, _Order, RuleRow]]]:
        """By rule the rows of the keys for which it holds anywhere in these rows, or is active: round, order, row."""
        alike: dict[tuple[str, tuple[str, ...]], list[Rule]] = {}
        for rule in rules:
            if rule.table.name in rows and rows[rule.table.name].num_rows:
                alike.setdefault((rule.table.name, rule.key), []).append(rule)
        found: dict[str, list[tuple[int, _Order, RuleRow]]] = {}
        for (table, key), together in alike.items():
            names = {rule.name for rule in together}
            known = {alert for alert in active if alert[0] in names}
            relevant = self._relevant(together, rows[table], {entity for _, entity in known})
            of_row = [(row, _entity(key, row)) for row in relevant]
            for place, rule in enumerate(together):
                holds = {entity for row, entity in of_row if row[f"{_CONDITION}{place}"]}
                found[rule.name] = [
                    (row.get("round") or 0, _order(rule, row), _seen(rule, place, row, entity))
                    for row, entity in of_row
                    if entity in holds or (rule.name, entity) in known
                ]
        return found

    def _relevant(self, rules: Sequence[Rule], rows: pa.Table, known: Iterable[str]) -> list[dict[str, Any]]:
        """The rows of the keys for which one of some rules of one table and key holds, and of the known entities."""
        table, key = rules[0].table, rules[0].key
        ended = {"ended"} if table.closes else set()
        rounds = set() if rules[0].of_events else {"round"}
        names = sorted({*rounds, *table.newest_by, *key, *ended}.union(*(rule.columns for rule in rules)))
        columns = [f'"{name}"' for name in names]
        for place, rule in enumerate(rules):
            # The rule's own expression, which `expressions.check` has seen. TRY: a row on which one fails (a cast, an
            # overflow) is not known; the others are.
            value = f"TRY({rule.value.sql})" if rule.value is not None else "NULL::DOUBLE"
            columns += [
                f'TRY(({rule.when.sql}\n)) AS "{_CONDITION}{place}"',
                f'{value} AS "{_VALUE}{place}"',
            ]
        sql = f"WITH judged AS (SELECT {', '.join(columns)} FROM rows_of_rule) SELECT * FROM judged "  # noqa: S608
        if key:
            keys = ", ".join(f'"{name}"' for name in key)
            holds = " OR ".join(f'"{_CONDITION}{place}"' for place in range(len(rules)))
            wanted = f"SELECT {keys} FROM judged WHERE {holds} UNION ALL SELECT {keys} FROM known_alerts"  # noqa: S608
            # A key may have NULL in it: an equal one, here.
            same = " AND ".join(f'judged."{name}" IS NOT DISTINCT FROM wanted."{name}"' for name in key)
            sql += f"SEMI JOIN ({wanted}) AS wanted ON {same}"
            schema = pa.schema([table.arrow_schema.field(name) for name in key])
            self._connection.register("known_alerts", pa.Table.from_pylist([*map(json.loads, known)], schema=schema))
        self._connection.register("rows_of_rule", rows)
        relevant: list[dict[str, Any]] = self._connection.sql(sql).to_arrow_table().to_pylist()
        return relevant


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


def _entity(key: Iterable[str], row: Mapping[str, Any]) -> str:
    """The key as `RuleRow` has it: columns that are NULL are left out."""
    known = {name: row[name] for name in key if row.get(name) is not None}
    return json.dumps(known, ensure_ascii=False, separators=(",", ":"))


def _seen(rule: Rule, place: int, row: Mapping[str, Any], entity: str) -> RuleRow:
    condition, value = row[f"{_CONDITION}{place}"], row[f"{_VALUE}{place}"]
    if row.get("ended"):
        return RuleRow(rule.name, entity, None, gone=True)
    if not condition:
        return RuleRow(rule.name, entity, condition, value=value)
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
