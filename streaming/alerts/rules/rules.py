"""The rules: `conf/alerts.yaml` to checked values.

thresholds:
  imbalance: 0.5                        # what the page draws in red, too

rules:
- name: imbalance                       # what the alert is called
  view: group_health_current            # what it reads: one row per group
  when: imbalance - imbalance_optimal > :imbalance    # SQL over a row: true, false, or NULL for not known
  for: 6 rounds                         # or 5m; without it the alert fires at once
  severity: warning                     # info, warning or critical
  labels: {about: balance}              # what routes it; may hold {columns}
  value: imbalance - imbalance_optimal    # a number to show (optional)
  message: "{group_id} is {value} more uneven than it must be"
- name: gaps
  view: gaps                            # events: each row once, when it is written
  per: [kind, topic]                    # one alert for each of these
  keep: 1h                              # resolved when no such row has come for so long
  when: kind = 'log'
  enabled: false                        # checked and listed, and never judged
  ...
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pyarrow as pa

from streaming.alerts.exceptions import RulesError
from streaming.alerts.routes import KEYS, UNSAID, RuleRoute, route_of
from streaming.alerts.rules.expressions import (
    Expression,
    ExpressionError,
    check,
    connect,
    is_compared_once,
    placeholders,
)
from streaming.config import SEVERITIES, Thresholds, read_rules_file, rules_file
from streaming.tables import Table, table_named, with_parameters
from streaming.times import DAY_MS

SILENT_S, UNJUDGED_S, UNJUDGED_REASON = "silent_s", "unjudged_s", "unjudged_reason"
MOST_FILES, MOST_FILES_TABLE = "most_files", "most_files_table"

CLOCK_FIELDS = (
    pa.field(SILENT_S, pa.float64()),
    pa.field(UNJUDGED_S, pa.float64()),
    pa.field(UNJUDGED_REASON, pa.string()),
    pa.field(MOST_FILES, pa.int64()),
    pa.field(MOST_FILES_TABLE, pa.string()),
)
"""Columns that `rounds_current` has for rules only, by what the alerter itself observes: seconds since a round with a
new number was read; seconds for which the tables could not be judged (0 when they can), and why; the number of files of
the table that has the most, and its name (counted every ten minutes)."""

CLOCK_COLUMNS = frozenset(field.name for field in CLOCK_FIELDS)

TIME_BEHIND = "time_behind_seconds"
"""Column that `group_health_current` has for rules only: how far the group is behind at the round that is judged, in
seconds. It is known as bounds, so a rule with it is NULL where its answer depends on what lies between them."""

LOSES_DATA = "loses_data_in_seconds"
"""The same for the time until the group loses data."""

OVER_TIME = frozenset({TIME_BEHIND, LOSES_DATA})
"""Both."""

# Views whose rows belong to a round: for each row a rule holds or does not.
_VIEWS = {
    f"{name}_current": table_named(name) for name in ("group_health", "lag", "drift", "rounds", "open_transactions")
}

_MAY_BE_NULL: Mapping[str, frozenset[str]] = {"lag": frozenset({"broker"}), "drift": frozenset({"topic"})}
"""Columns of a view's key that are NULL in some rows, by table: both are filled in for RocketMQ alone."""

EVENTS = ("gaps", "quarantine", "alert_deliveries")
"""Tables whose rows are events that belong to no round: a row is judged once, when it is written."""

_EVENTS = {name: table_named(name) for name in EVENTS}

_KEYS = ("name", "enabled", "view", "when", "for", "per", "keep", "severity", "labels", "value", "message", *KEYS)
_NEEDED = ("name", "view", "when", "severity", "message")

# How long an alert over events lasts after the last of them, unless the rule says otherwise.
_KEEP_MS = 3_600_000

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FOR = re.compile(r"(\d+)\s*(ms|s|m|h|d|rounds?)")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        name: Name of the alert.
        table: Table whose `_current` view it reads.
        when: The predicate over a row; NULL means not known.
        hold_ms: How long it must have been true, by the rounds' clock.
        hold_rounds: In how many further rounds it must have been true; one of the two is 0.
        severity: info, warning or critical.
        labels: Label templates by name, sorted.
        value: A number to show; None for none.
        message: Template of the message.
        columns: Columns of the row that predicate, value, message and labels read.
        key: Columns that identify what an alert is about, beside the cluster.
        keep_ms: For a rule over events: how long after the last true row it resolves, by the rounds' clock; 0 for a
            rule over current rows.
        route: What it says of its delivery.
        enabled: Whether it is judged.
    """

    name: str
    table: Table
    when: Expression
    hold_ms: int
    hold_rounds: int
    severity: str
    labels: tuple[tuple[str, str], ...]
    value: Expression | None
    message: str
    columns: frozenset[str]
    key: tuple[str, ...]
    keep_ms: int = 0
    route: RuleRoute = UNSAID
    enabled: bool = True

    @property
    def by_clock(self) -> bool:
        """Whether it is judged by the alerter's own time, at every poll, not once per round."""
        return bool(CLOCK_COLUMNS & self.when.columns)

    @property
    def over_time(self) -> bool:
        """Whether it is judged at every round over rows that do not change: groups get older while they are behind."""
        return bool(OVER_TIME & self.when.columns)

    @property
    def of_events(self) -> bool:
        """Whether it reads events: rows that are judged once, when they are written."""
        return self.keep_ms > 0

    def may_be_about(self, entity: str) -> bool:
        """Whether a row that the rule reads can have this key, a JSON object without columns that are NULL.

        False says that the alert is of an earlier view of the rule. True for all that a rule over events ever found:
        it ends by itself.
        """
        if self.of_events:
            return True
        named, key = frozenset(json.loads(entity)), frozenset(self.key)
        return key - _MAY_BE_NULL.get(self.table.name, frozenset()) <= named <= key


def load_rules(file: Path | None = None, *, disabled_too: bool = False) -> tuple[Rule, ...]:
    """Read and check the rules.

    Args:
        file: The file; None for the user's `alerts.yaml` (`streaming/places.py`), or the shipped one if there is none.
        disabled_too: Return those that are turned off, too. All are checked.

    Raises:
        RulesError: The file cannot be read, or a rule is wrong: file, rule and reason in one sentence.
    """
    file = file or rules_file()
    content = read_rules_file(file)
    if not {"rules"} <= set(content) <= {"rules", "thresholds"} or not isinstance(content["rules"], list):
        raise RulesError(file, None, "it must contain one list called rules, and may hold thresholds")
    thresholds = Thresholds.of(content.get("thresholds"), file).by_name()
    rules: list[Rule] = []
    with connect() as connection:
        for number, given in enumerate(content["rules"], start=1):
            rule = _rule(connection, file, number, given, thresholds)
            if any(other.name == rule.name for other in rules):
                raise RulesError(file, rule.name, "there is another rule of that name")
            rules.append(rule)
    return tuple(rule for rule in rules if rule.enabled or disabled_too)


def _rule(
    connection: duckdb.DuckDBPyConnection, file: Path, number: int, given: object, thresholds: Mapping[str, float]
) -> Rule:
    name = given.get("name") if isinstance(given, dict) else None
    place = name if isinstance(name, str) else f"number {number}"
    try:
        if not isinstance(given, dict):
            _refuse("it must have keys: " + ", ".join(_KEYS))
        return _checked(connection, given, thresholds)
    except ExpressionError as error:
        raise RulesError(file, place, str(error)) from None


def _refuse(reason: str) -> NoReturn:
    raise ExpressionError(reason)


def _checked(connection: duckdb.DuckDBPyConnection, given: dict[Any, Any], thresholds: Mapping[str, float]) -> Rule:
    name, view, severity, message = _texts(given)
    table = _VIEWS.get(view) or _EVENTS.get(view)
    if table is None:
        _refuse(f"it cannot read {view}, only {', '.join(_VIEWS)}, and the events {', '.join(_EVENTS)}")
    if severity not in SEVERITIES:
        _refuse(f"severity {severity!r} is not one of {', '.join(SEVERITIES)}")
    schema = table.arrow_schema
    if table.name == "rounds":
        for column in CLOCK_FIELDS:
            schema = schema.append(column)
    if table.name == "group_health":
        for name_over_time in sorted(OVER_TIME):
            schema = schema.append(pa.field(name_over_time, pa.float64()))
    when = check(connection, schema, _bounded(_sql(given["when"], "when"), thresholds), ("BOOLEAN",))
    value = None
    if given.get("value") is not None:
        number = f"({_bounded(_sql(given['value'], 'value'), thresholds)})::DOUBLE"
        value = check(connection, schema, number, ("DOUBLE",))
    labels = _labels(given.get("labels"))
    shown = _shown(message, labels, schema, view, has_value=value is not None)
    hold_ms, hold_rounds = _hold(given.get("for"))
    rule = Rule(
        name=name,
        table=table,
        when=when,
        hold_ms=hold_ms,
        hold_rounds=hold_rounds,
        severity=severity,
        labels=labels,
        value=value,
        message=message,
        columns=when.columns | (value.columns if value is not None else set()) | shown,
        key=_per(given.get("per"), table, is_event=view in _EVENTS),
        keep_ms=_keep(given.get("keep"), is_event=view in _EVENTS),
        route=route_of(given),
        enabled=_enabled(given.get("enabled")),
    )
    _check_time(rule, view)
    bounded = sorted(OVER_TIME & rule.columns)
    if len(bounded) > 1:
        _refuse(f"{' and '.join(bounded)} are known as bounds: use one of them in a rule")
    if bounded and not is_compared_once(connection, when.sql, bounded[0]):
        _refuse(f"{bounded[0]} is known as bounds: compare it once in when, with <, <=, > or >=")
    return rule


def _texts(given: dict[Any, Any]) -> tuple[str, str, str, str]:
    """Check the keys of a rule; returns its name, view, severity and message."""
    unknown = [str(key) for key in given if key not in _KEYS]
    if unknown:
        _refuse(f"it has no key {unknown[0]!r}, only {', '.join(_KEYS)}")
    for key in _NEEDED:
        if key not in given:
            _refuse(f"it has no {key}")
    texts = {key: given[key] for key in ("name", "view", "severity", "message")}
    for key, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            _refuse(f"{key} must be a text")
    if not _NAME.fullmatch(texts["name"]):
        _refuse("a name consists of lowercase letters, digits and '_', and starts with a letter")
    return texts["name"], texts["view"], texts["severity"], texts["message"]


def _shown(
    message: str, labels: tuple[tuple[str, str], ...], schema: pa.Schema, view: str, *, has_value: bool
) -> frozenset[str]:
    """Columns that message and labels show."""
    named = placeholders(message).union(*(placeholders(text) for _, text in labels))
    strange = sorted(named - set(schema.names) - {"value"})
    if strange:
        _refuse(f"{{{strange[0]}}} is not a column of {view}")
    if "value" in named and not has_value:
        _refuse("{value} is used, but the rule has no value")
    return named - {"value"}


def _check_time(rule: Rule, view: str) -> None:
    """Check that a rule's `for` goes with what it reads, and that only a rule by the clock reads the clock."""
    by_clock = sorted(CLOCK_COLUMNS & rule.columns)
    if rule.by_clock and (rule.hold_ms or rule.hold_rounds):
        _refuse(f"{by_clock[0]} belongs to no round, so the rule cannot have a for")
    if by_clock and not rule.by_clock:
        _refuse(f"only a rule with {by_clock[0]} in its when can show it")
    if rule.of_events and (rule.hold_ms or rule.hold_rounds):
        _refuse(f"{view} holds events: each row is judged once, so the rule cannot have a for")


def _bounded(sql: str, thresholds: Mapping[str, float]) -> str:
    """Replace thresholds by their numbers."""

    def number(name: str) -> str:
        if name not in thresholds:
            _refuse(f":{name} is not one of the thresholds {', '.join(thresholds)}")
        return f"({thresholds[name]!r}::DOUBLE)"

    return with_parameters(sql, number)


def _per(given: object, table: Table, *, is_event: bool) -> tuple[str, ...]:
    if given is None:
        return tuple(column for column in table.key if column != "cluster")
    names = [column.name for column in table.columns if column.name != "cluster"]
    if not is_event:
        _refuse("per is for events only: an alert on current state is about one row")
    if not isinstance(given, list) or not all(name in names for name in given):
        _refuse(f"per must be a list of columns of {table.name}")
    return tuple(given)


def _keep(given: object, *, is_event: bool) -> int:
    if not is_event:
        if given is not None:
            _refuse("keep is for events only: an alert on current state ends when its condition does")
        return 0
    if given is None:
        return _KEEP_MS
    found = _FOR.fullmatch(given.strip()) if isinstance(given, str) else None
    if found is None or found[2].startswith("round") or int(found[1]) == 0:
        _refuse(f"keep {given!r} is not a duration (30s, 5m, 1h)")
    return int(found[1]) * _UNITS_MS[found[2]]


def _enabled(given: object) -> bool:
    if given is not None and not isinstance(given, bool):
        _refuse("enabled is true or false")
    return given is not False


def _sql(given: object, key: str) -> str:
    # YAML reads `when: true` as a boolean and `value: 3` as a number; both are SQL as well.
    if isinstance(given, bool | int | float):
        return str(given).lower()
    if not isinstance(given, str) or not given.strip():
        _refuse(f"{key} must be an SQL expression")
    return str(given).strip()


def _labels(given: object) -> tuple[tuple[str, str], ...]:
    if given is None:
        return ()
    if not isinstance(given, dict):
        _refuse("labels must be names with values")
    for name, value in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            _refuse(f"the label {name!r} must be a name of lowercase letters, digits and '_'")
        if isinstance(value, dict | list) or value is None:
            _refuse(f"the label {name} must be a text")
    return tuple(sorted((name, str(value)) for name, value in given.items()))


def _hold(given: object) -> tuple[int, int]:
    if given is None:
        return 0, 0
    found = _FOR.fullmatch(given.strip()) if isinstance(given, str) else None
    if found is None:
        _refuse(f"for {given!r} is neither a duration (30s, 5m, 1h) nor a number of rounds (6 rounds)")
    number, unit = int(found[1]), found[2]
    return (0, number) if unit.startswith("round") else (number * _UNITS_MS[unit], 0)
