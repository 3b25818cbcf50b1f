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
from typing import Annotated, NoReturn

import duckdb
import pyarrow as pa
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError

from streaming.alerts.exceptions import RulesError
from streaming.alerts.rules.expressions import (
    Expression,
    ExpressionError,
    check,
    connect,
    placeholders,
)
from streaming.config import Severity, Thresholds, read_rules_file, rules_file
from streaming.tables import Table, table_named, with_parameters
from streaming.terminal import printable
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

# Views whose rows belong to a round: for each row a rule holds or does not.
_VIEWS = {
    f"{name}_current": table_named(name) for name in ("group_health", "lag", "drift", "rounds", "open_transactions")
}

_MAY_BE_NULL: Mapping[str, frozenset[str]] = {"lag": frozenset({"broker"}), "drift": frozenset({"topic"})}
"""Columns of a view's key that are NULL in some rows, by table: both are filled in for RocketMQ alone."""

EVENTS = ("gaps", "quarantine", "alert_deliveries")
"""Tables whose rows are events that belong to no round: a row is judged once, when it is written."""

_EVENTS = {name: table_named(name) for name in EVENTS}

# How long an alert over events lasts after the last of them, unless the rule says otherwise.
_KEEP_MS = 3_600_000

_FOR = re.compile(r"(\d+)\s*(ms|s|m|h|d|rounds?)")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}


def _sql(given: object) -> object:
    # YAML reads `when: true` as a boolean and `value: 3` as a number; both are SQL as well.
    if isinstance(given, bool | int | float):
        return str(given).lower()
    return given


def _hold(given: object) -> tuple[int, int]:
    found = _FOR.fullmatch(given.strip()) if isinstance(given, str) else None
    if found is None:
        message = f"{given!r} is neither a duration (30s, 5m, 1h) nor a number of rounds (6 rounds)"
        raise ValueError(message)
    number, unit = int(found[1]), found[2]
    if unit.startswith("round"):
        return (0, number)
    return (number * _UNITS_MS[unit], 0)


def _keep(given: object) -> int:
    hold_ms, hold_rounds = _hold(given)
    if hold_rounds or not hold_ms:
        message = f"{given!r} is not a duration (30s, 5m, 1h)"
        raise ValueError(message)
    return hold_ms


_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
_Sql = Annotated[str, BeforeValidator(_sql), Field(pattern=r"\S")]


class _Given(BaseModel):
    """One rule as it is written."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    name: _Name
    enabled: StrictBool = True
    view: str
    when: _Sql
    hold: Annotated[tuple[int, int], BeforeValidator(_hold)] = Field(default=(0, 0), alias="for")
    per: tuple[str, ...] | None = None
    keep: Annotated[int | None, BeforeValidator(_keep)] = None
    severity: Severity
    labels: dict[_Name, str] = Field(default_factory=dict)
    value: _Sql | None = None
    message: str = Field(pattern=r"\S")
    runbook_url: str | None = Field(default=None, pattern=r"^https?://[!-~]+$")


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
        runbook_url: What to do, as a URL; None for none.
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
    runbook_url: str | None = None
    enabled: bool = True

    @property
    def by_clock(self) -> bool:
        """Whether it is judged by the alerter's own time, at every poll, not once per round."""
        return bool(CLOCK_COLUMNS & self.when.columns)

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
        return _checked(connection, _Given.model_validate(given), thresholds)
    except ExpressionError as error:
        reason = str(error)
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc'])) or 'all of it'}: {printable(first['msg'])}"
    raise RulesError(file, place, reason)


def _refuse(reason: str) -> NoReturn:
    raise ExpressionError(reason)


def _checked(connection: duckdb.DuckDBPyConnection, given: _Given, thresholds: Mapping[str, float]) -> Rule:
    table = _VIEWS.get(given.view) or _EVENTS.get(given.view)
    if table is None:
        _refuse(f"it cannot read {given.view}, only {', '.join(_VIEWS)}, and the events {', '.join(_EVENTS)}")
    schema = table.arrow_schema
    if table.name == "rounds":
        for column in CLOCK_FIELDS:
            schema = schema.append(column)
    when = check(connection, schema, _bounded(given.when, thresholds), ("BOOLEAN",))
    value = None
    if given.value is not None:
        value = check(connection, schema, f"({_bounded(given.value, thresholds)})::DOUBLE", ("DOUBLE",))
    labels = tuple(sorted(given.labels.items()))
    shown = _shown(given.message, labels, schema, given.view, has_value=value is not None)
    is_event = given.view in _EVENTS
    rule = Rule(
        name=given.name,
        table=table,
        when=when,
        hold_ms=given.hold[0],
        hold_rounds=given.hold[1],
        severity=given.severity,
        labels=labels,
        value=value,
        message=given.message,
        columns=when.columns | (value.columns if value is not None else set()) | shown,
        key=tuple(column for column in table.key if column != "cluster") if given.per is None else given.per,
        keep_ms=given.keep or (_KEEP_MS if is_event else 0),
        runbook_url=given.runbook_url,
        enabled=given.enabled,
    )
    for key, written in (("per", given.per), ("keep", given.keep)):
        if written is not None and not is_event:
            _refuse(f"{key} is for events only: an alert on current state is about one row, and ends with it")
    names = {column.name for column in table.columns} - {"cluster"}
    if not set(rule.key) <= names:
        _refuse(f"per must be a list of columns of {table.name}")
    _check_time(rule, given.view)
    return rule


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
