"""The rules: `conf/alerts.yaml` to checked values.

rules:
- name: imbalance                       # what the alert is called
  view: group_health_current            # what it reads: one row per group
  when: imbalance - imbalance_least > 0.5    # SQL over a row: true, false, or NULL for not known
  for: 6 rounds                         # or 5m; without it the alert fires at once
  severity: warning                     # info, warning or critical
  labels: {about: balance}              # what routes it; may hold {columns}
  value: imbalance - imbalance_least    # a number to show (optional)
  message: "{group_id} is {value} more uneven than it must be"
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pyarrow as pa
import yaml

from streaming.alerts.exceptions import RulesError
from streaming.alerts.expressions import Expression, ExpressionError, check, connect
from streaming.alerts.text import placeholders
from streaming.places import own_file, shipped
from streaming.tables.schema import Table, table_named

__all__ = ["SEVERITIES", "SHIPPED", "SILENT_S", "Rule", "load_rules"]

SHIPPED = shipped("alerts.yaml")
"""The rules that come with Evenkeel."""

SEVERITIES = ("info", "warning", "critical")

SILENT_S = "silent_s"
"""Column that `rounds_current` has for rules only: seconds since the newest round, by the alerter's clock."""

# Views whose rows belong to a round. Of others (members, churn, quarantine, gaps) nobody can say which round first
# shows a row, so an answer would depend on how the log was cut into batches.
_VIEWS = {f"{name}_current": table_named(name) for name in ("group_health", "lag", "drift", "rounds", "log_holds")}

_KEYS = ("name", "view", "when", "for", "severity", "labels", "value", "message")
_NEEDED = ("name", "view", "when", "severity", "message")

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FOR = re.compile(r"(\d+)\s*(ms|s|m|h|d|rounds?)")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE")


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

    @property
    def key(self) -> tuple[str, ...]:
        """Columns that name what an alert speaks of, beside the cluster."""
        return tuple(column for column in self.table.key if column != "cluster")

    @property
    def by_clock(self) -> bool:
        """It is judged by the alerter's clock, at every look, not once per round."""
        return SILENT_S in self.when.columns


def load_rules(file: Path | None = None) -> tuple[Rule, ...]:
    """Read and check the rules.

    Args:
        file: The file; None takes the user's `alerts.yaml` (`streaming/places.py`), and the shipped one where there is
            none.

    Raises:
        RulesError: The file cannot be read, or a rule is wrong: file, rule and reason in one sentence.
    """
    if file is None:
        try:
            file = own_file("alerts.yaml") or SHIPPED
        except OSError as error:
            raise RulesError(Path("alerts.yaml"), None, f"it cannot be looked for ({error})") from None
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RulesError(file, None, f"it cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise RulesError(file, None, f"it is no YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict) or list(content) != ["rules"] or not isinstance(content["rules"], list):
        raise RulesError(file, None, "it must hold one list called rules")
    rules: list[Rule] = []
    with connect() as connection:
        for number, given in enumerate(content["rules"], start=1):
            rule = _rule(connection, file, number, given)
            if any(other.name == rule.name for other in rules):
                raise RulesError(file, rule.name, "there is another rule of that name")
            rules.append(rule)
    return tuple(rules)


def _rule(connection: duckdb.DuckDBPyConnection, file: Path, number: int, given: object) -> Rule:
    name = given.get("name") if isinstance(given, dict) else None
    place = name if isinstance(name, str) else f"number {number}"
    try:
        if not isinstance(given, dict):
            _refuse("it must have keys: " + ", ".join(_KEYS))
        return _checked(connection, given)
    except ExpressionError as error:
        raise RulesError(file, place, str(error)) from None


def _refuse(reason: str) -> NoReturn:
    raise ExpressionError(reason)


def _checked(connection: duckdb.DuckDBPyConnection, given: dict[Any, Any]) -> Rule:
    unknown = [str(key) for key in given if key not in _KEYS]
    if unknown:
        _refuse(f"it has no key {unknown[0]!r}, only {', '.join(_KEYS)}")
    for key in _NEEDED:
        if key not in given:
            _refuse(f"it has no {key}")
    texts = {key: given.get(key) for key in ("name", "view", "severity", "message")}
    for key, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            _refuse(f"{key} must be a text")
    name, view, severity, message = (str(texts[key]) for key in ("name", "view", "severity", "message"))
    if not _NAME.fullmatch(name):
        _refuse("a name has small letters, digits and '_', and begins with a letter")
    table = _VIEWS.get(view)
    if table is None:
        _refuse(f"it cannot read {view}, only {', '.join(_VIEWS)}: their rows belong to rounds")
    if severity not in SEVERITIES:
        _refuse(f"severity {severity!r} is none of {', '.join(SEVERITIES)}")
    schema = table.arrow_schema
    if table.name == "rounds":
        schema = schema.append(pa.field(SILENT_S, pa.float64()))
    when = check(connection, schema, _sql(given["when"], "when"), ("BOOLEAN",))
    value = None
    if given.get("value") is not None:
        value = check(connection, schema, f"({_sql(given['value'], 'value')})::DOUBLE", ("DOUBLE",))
    labels = _labels(given.get("labels"))
    named = {word for template in (message, *(text for _, text in labels)) for word in placeholders(template)}
    strange = sorted(named - set(schema.names) - {"value"})
    if strange:
        _refuse(f"{{{strange[0]}}} is no column of {view}")
    if "value" in named and value is None:
        _refuse("{value} is used, but the rule has no value")
    columns = set(when.columns) | (set(value.columns) if value is not None else set()) | (named - {"value"})
    hold_ms, hold_rounds = _hold(given.get("for"))
    rule = Rule(
        name,
        table,
        when,
        hold_ms,
        hold_rounds,
        severity,
        labels,
        value,
        message,
        frozenset(columns & set(schema.names)),
    )
    if rule.by_clock and (hold_ms or hold_rounds):
        _refuse(f"{SILENT_S} is already a time: the rule can have no for")
    if SILENT_S in columns and not rule.by_clock:
        _refuse(f"only a rule with {SILENT_S} in its when can show it")
    return rule


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
            _refuse(f"the label {name!r} must be a name of small letters, digits and '_'")
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
