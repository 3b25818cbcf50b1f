"""The rules file: its valid contents, the errors for invalid ones, and that rules have no clock."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from streaming.alerts.exceptions import RulesError
from streaming.alerts.rules.expressions import ExpressionError, check, connect
from streaming.alerts.rules.rules import load_rules
from streaming.cli import app
from streaming.config import SHIPPED_RULES
from streaming.exceptions import SetupError
from tests.alerts.build import DRIFT, UNEVEN, rules
from tests.serve.client import EVENKEEL

_GOOD = {
    "name": "lag",
    "view": "lag_current",
    "when": "lag > 5",
    "severity": "info",
    "message": "x",
}


def _file(folder: Path, **changes: str | None) -> Path:
    lines = [f"{key}: {value}" for key, value in (_GOOD | changes).items() if value is not None]
    file = folder / "mine.yaml"
    file.write_text("rules:\n  - " + "\n    ".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_rule_is_a_few_lines(tmp_path: Path) -> None:
    runbook = "https://wiki.example.org/lag?a=1"
    more = {"for": "90s", "labels": "{team: '{client_id}', tier: 1}", "value": "lag", "runbook_url": runbook}
    (rule,) = load_rules(_file(tmp_path, **more))
    assert (rule.name, rule.table.name, rule.hold_ms, rule.hold_rounds) == ("lag", "lag", 90_000, 0)
    assert rule.labels == (("team", "{client_id}"), ("tier", "1"))
    assert rule.columns == {"lag", "client_id"}
    assert (rule.by_clock, rule.runbook_url) == (False, runbook)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("6 rounds", (0, 6)), ("1 round", (0, 1)), ("250ms", (250, 0)), ("5m", (300_000, 0)), ("2 h", (7_200_000, 0))],
)
def test_for_is_a_duration_or_a_number_of_rounds(tmp_path: Path, text: str, expected: tuple[int, int]) -> None:
    (rule,) = load_rules(_file(tmp_path, **{"for": text}))
    assert (rule.hold_ms, rule.hold_rounds) == expected


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"when": None}, "when: Field required"),
        ({"when": "[1]"}, "when: Input should be a valid string"),
        ({"when": "lag >"}, "is not an SQL expression"),
        ({"when": "lag > 1) OR (true"}, "is not an SQL expression"),
        ({"when": "true) FROM lag WHERE (true"}, "is not an SQL expression"),
        ({"when": "true AS x"}, "is not an SQL expression"),
        ({"when": "true, false"}, "is more than one expression"),
        ({"when": "lag > 1; DROP TABLE lag"}, "is not an SQL expression"),
        ({"when": "lagg > 1"}, "there is no column lagg"),
        ({"when": "'len(list_filter([1], lambda x: y > x)) > 0'"}, "there is no column y"),
        ({"when": "lag + 1"}, "is BIGINT, it must be BOOLEAN"),
        ({"when": "lag > (SELECT avg(lag) FROM lag)"}, "a subquery reads more than the row"),
        ({"when": "EXISTS (SELECT 1)"}, "a subquery reads more than the row"),
        ({"when": "max(lag) > 1"}, "max may depend on more than"),
        ({"when": "lag(lag) OVER () > 1"}, "a window reads more than the row"),
        ({"when": "now() > round_time"}, "now may depend on more than"),
        ({"when": "random() > 0.5"}, "random may depend on more than"),
        ({"when": "ago(INTERVAL 1 HOUR) > round_time"}, "ago may depend on more than"),
        ({"when": "current_date > event_date"}, "there is no column current_date"),
        ({"when": "lag > $1"}, "a parameter reads more than the row"),
        ({"when": "frobnicate(lag)"}, "there is no function frobnicate"),
        ({"when": "read_text('/etc/passwd') IS NULL"}, "read_text may depend on more than"),
        ({"when": "getenv('HOME') = 'x'"}, "there is no function getenv"),
        ({"value": "topic || 'x' || random()"}, "random may depend on more than"),
        ({"view": "members_current"}, "it cannot read members_current, only group_health_current"),
        ({"view": "lag"}, "it cannot read lag, only"),
        ({"severity": "urgent"}, "severity: Input should be 'info', 'warning' or 'critical'"),
        ({"name": "Lag"}, "name: String should match pattern"),
        ({"for": "soon"}, "for: Value error, 'soon' is neither a duration"),
        ({"for": "5"}, "for: Value error, 5 is neither a duration"),
        ({"message": "'{topic} {nothing}'"}, "{nothing} is not a column of lag_current"),
        ({"message": "'{value}'"}, "{value} is used, but the rule has no value"),
        ({"labels": "{team: '{nobody}'}"}, "{nobody} is not a column of lag_current"),
        ({"labels": "[a, b]"}, "labels: Input should be a valid dictionary"),
        ({"labels": "{Team: a}"}, "labels.Team.[key]: String should match pattern"),
        ({"unless": "1"}, "unless: Extra inputs are not permitted"),
        ({"runbook_url": "javascript:alert(1)"}, "runbook_url: String should match pattern"),
        ({"runbook_url": "'https://wiki/a b'"}, "runbook_url: String should match pattern"),
        ({"view": "lag_current", "per": "[topic]"}, "per is for events only"),
        ({"view": "lag_current", "keep": "1h"}, "keep is for events only"),
        ({"view": "gaps", "when": "true", "for": "5m"}, "gaps holds events"),
        ({"view": "gaps", "when": "true", "per": "[shoe]"}, "per must be a list of columns of gaps"),
        ({"view": "gaps", "when": "true", "keep": "3 rounds"}, "keep: Value error, '3 rounds' is not a duration"),
        ({"view": "rounds_current", "when": "silent_s > 1", "for": "5m"}, "silent_s belongs to no round"),
        ({"view": "rounds_current", "when": "groups = 0", "message": "'{silent_s}'"}, "only a rule with silent_s"),
    ],
)
def test_a_wrong_rule_is_one_sentence_with_file_rule_and_reason(
    tmp_path: Path, changes: dict[str, str | None], reason: str
) -> None:
    file = _file(tmp_path, **changes)
    with pytest.raises(RulesError) as error:
        load_rules(file)
    said = str(error.value)
    assert said.startswith(f"{file}, rule {changes.get('name', 'lag')}: ")
    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("rules: [", "it is not YAML"),
        ("- a", "it must contain one list called rules"),
        ("rules:\n  - 5", "rule number 1: all of it: Input should be a valid dictionary"),
        ("", "it must contain one list called rules"),
    ],
)
def test_a_file_that_holds_no_rules_is_one_sentence(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises(SetupError, match=reason):
        load_rules(file)


def test_two_rules_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match="rule drift: there is another rule of that name"):
        rules(tmp_path, DRIFT, UNEVEN, DRIFT)


def test_the_shipped_rules_are_right_and_the_rules_of_the_working_folder_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = [rule.name for rule in load_rules()]
    assert shipped == [rule.name for rule in load_rules(SHIPPED_RULES)]
    assert {"drift", "imbalance", "lag", "silence"} <= set(shipped)
    (tmp_path / "conf").mkdir()
    _file(tmp_path / "conf").rename(tmp_path / "conf" / "alerts.yaml")
    assert [rule.name for rule in load_rules()] == ["lag"]


def test_every_shipped_rule_is_explained() -> None:
    page = (SHIPPED_RULES.parents[1] / "docs" / "alerts.md").read_text(encoding="utf-8")
    rules = load_rules(SHIPPED_RULES, disabled_too=True)
    assert [rule.name for rule in rules if f"| `{rule.name}` |" not in page] == []


def test_a_rule_that_is_off_is_checked_and_listed_and_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _file(tmp_path, enabled="false")
    assert load_rules(file) == ()
    assert [rule.name for rule in load_rules(file, disabled_too=True)] == ["lag"]
    monkeypatch.setenv("EVENKEEL_ALERTS__RULES", str(file))
    done = CliRunner().invoke(app, ["alert", "--check", "--lake", str(tmp_path / "lake")])
    assert done.output.splitlines()[:2] == ["rules: none", "off: lag"]
    with pytest.raises(RulesError, match="there is no column lagg"):
        load_rules(_file(tmp_path, enabled="false", when="lagg > 5"))
    with pytest.raises(RulesError, match="enabled: Input should be a valid boolean"):
        load_rules(_file(tmp_path, enabled="sometimes"))


@pytest.mark.nightly
def test_an_alerter_with_a_wrong_rule_ends_with_code_2_and_its_sentence(tmp_path: Path) -> None:
    file = _file(tmp_path, severity="urgent")
    environment = {"EVENKEEL_ALERTS__RULES": str(file), "EVENKEEL_LAKE": str(tmp_path / "lake"), "PATH": ""}
    done = subprocess.run(
        [EVENKEEL, "alert"],
        env=environment,
        cwd=SHIPPED_RULES.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"{file}, rule lag: severity: Input should be 'info', 'warning' or 'critical'. "
        "See docs/alerts.md for how to write a rule.\n"
    )
    assert not (tmp_path / "lake").exists()


def test_check_says_what_the_rules_and_targets_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_ALERTS__RULES", str(_file(tmp_path)))
    monkeypatch.setenv("EVENKEEL_ALERTS__TARGETS__OPS", "json://user:hunter2secret@127.0.0.1/x")
    done = CliRunner().invoke(app, ["alert", "--check", "--lake", str(tmp_path / "lake")])
    assert done.output.splitlines() == [
        "rules: lag",
        "no rule reads silent_s: nobody is alerted when no more rounds arrive",
        "no rule reads unjudged_s: nobody is alerted when the tables cannot be evaluated",
        "no rule reads most_files: nobody is alerted when the lake is not maintained",
        "targets: ops",
    ]
    assert done.exit_code == 0


_BOUNDED = """\
thresholds: {imbalance: 0.25, mine: 7}
rules:
  - name: uneven
    view: group_health_current
    when: imbalance - imbalance_optimal > :imbalance
    severity: info
    message: x
  - {name: own, view: lag_current, when: "lag::DOUBLE > :mine AND topic <> ':imbalance'", severity: info, message: x}
  - {name: silence, view: rounds_current, when: "silent_s > :silent_at_least_s", severity: info, message: x}
"""


def test_a_rule_reads_the_thresholds_of_its_file_and_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(_BOUNDED, encoding="utf-8")
    uneven, own, silence = load_rules(file)
    assert uneven.when.sql == "imbalance - imbalance_optimal > (0.25::DOUBLE)"
    assert own.when.sql == "lag::DOUBLE > (7.0::DOUBLE) AND topic <> ':imbalance'"
    assert silence.when.sql == "silent_s > (20.0::DOUBLE)"


@pytest.mark.parametrize(
    ("thresholds", "reason"),
    [
        ("[1]", "thresholds must be names with numbers"),
        ("{imbalance: a lot}", "thresholds must be names with numbers"),
        ("{imbalance: true}", "thresholds must be names with numbers"),
        ("{mine: 7}", ":other is not one of the thresholds imbalance, silent_intervals, silent_at_least_s, mine"),
    ],
)
def test_a_wrong_threshold_is_one_sentence(tmp_path: Path, thresholds: str, reason: str) -> None:
    file = tmp_path / "mine.yaml"
    rule = "{name: a, view: lag_current, when: 'lag > :other', severity: info, message: x}"
    file.write_text(f"thresholds: {thresholds}\nrules:\n  - {rule}\n", encoding="utf-8")
    with pytest.raises(SetupError, match=reason):
        load_rules(file)


_ROW = pa.schema(
    [("topic", pa.string()), ("seen", pa.timestamp("us", tz="UTC")), ("began", pa.timestamp("us", tz="UTC"))]
)

# Reviewed functions with their numbers of arguments: those of DuckDB 2.0.0 that a rule may use. After a new release,
# review the functions that the test reports as new: if the result depends only on the arguments, add the function here;
# else add it to `_CLOCKS` in streaming/alerts/rules/expressions.py.
_LOOKED_AT = Path(__file__).with_name("functions.txt")

_REFUSAL = "may depend on more than the row's values"


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as made:
        yield made


@pytest.mark.turn(6)
@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("age(seen) > INTERVAL 1 DAY", "age"),
        ("AGE(seen) > INTERVAL 1 DAY", "age"),
        ('"age"(seen) > INTERVAL 1 DAY', "age"),
        ("list_transform([seen], lambda x: age(x))[1] > INTERVAL 1 DAY", "age"),
        ("current_localtimestamp() > seen::TIMESTAMP", "current_localtimestamp"),
        ("current_localtime() IS NULL", "current_localtime"),
        ("today() > seen::DATE", "today"),
        ("get_current_time() IS NULL", "get_current_time"),
        ("transaction_timestamp() > seen", "transaction_timestamp"),
        ("current_setting('TimeZone') = 'UTC'", "current_setting"),
        ("getvariable('x') IS NULL", "getvariable"),
        ("uuid() IS NULL", "uuid"),
        ("nextval('x') > 1", "nextval"),
    ],
)
def test_a_function_that_knows_a_clock_is_refused_by_name(
    connection: duckdb.DuckDBPyConnection, sql: str, name: str
) -> None:
    with pytest.raises(ExpressionError) as error:
        check(connection, _ROW, sql, ("BOOLEAN",))
    assert str(error.value).startswith(f"{name} {_REFUSAL}")


@pytest.mark.turn(6)
def test_the_time_between_two_values_of_a_row_is_no_clock(connection: duckdb.DuckDBPyConnection) -> None:
    assert check(connection, _ROW, "age(seen, began) > INTERVAL 1 DAY", ("BOOLEAN",)).columns == {"seen", "began"}


@pytest.mark.turn(6)
@pytest.mark.parametrize("sql", ["topic.lower() = 'x'", "seen.age() > INTERVAL 1 DAY", "main.age(seen) IS NULL"])
def test_a_function_behind_a_dot_is_refused_since_its_column_would_not_be_seen(
    connection: duckdb.DuckDBPyConnection, sql: str
) -> None:
    with pytest.raises(ExpressionError, match=r"(lower|age) follows a dot: write (lower|age)\(...\)"):
        check(connection, _ROW, sql, ("BOOLEAN",))


@pytest.mark.turn(6)
@pytest.mark.nightly
def test_every_function_that_a_rule_may_use_was_looked_at(connection: duckdb.DuckDBPyConnection) -> None:
    listed = connection.execute(
        "SELECT DISTINCT function_name, len(parameters) FROM duckdb_functions() "
        "WHERE function_type = 'scalar' ORDER BY ALL"
    ).fetchall()
    # An operator may consist of several words.
    allowed = {f"{name.replace(' ', '_')}/{n}" for name, n in listed if _is_allowed(connection, name, n)}
    looked_at = set(_LOOKED_AT.read_text(encoding="utf-8").split())
    assert sorted(allowed - looked_at) == []
    assert sorted(looked_at - allowed) == []
    assert len(looked_at) > 800


def _is_allowed(connection: duckdb.DuckDBPyConnection, name: str, arguments: int) -> bool:
    """Whether a call is accepted up to DuckDB's own check of its arguments."""
    given = ", ".join(["NULL"] * arguments)
    try:
        check(connection, _ROW, f'"{name}"({given})', ())
    except ExpressionError as error:
        return _REFUSAL not in str(error)
    return True
