"""The shipped rules for Prometheus on Evenkeel itself: each fires when it should, and only then, as promtool says.

`test_prometheus.py` lets a real Prometheus load them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from dashboards.export import export
from streaming.serve.metrics.modes import MODES, OWN

RULES = Path(__file__).parents[3] / "conf" / "deploy" / "prometheus" / "evenkeel-rules.yaml"

# Series of half an hour as promtool writes them, a value a minute, of a server that is well.
WELL = {
    "evenkeel_lake_readable{}": "1x30",
    'evenkeel_cluster_silent{cluster="c"}': "0x30",
    'evenkeel_job_rounds_behind{cluster="c"}': "0x30",
    'evenkeel_job_batch_duration_seconds{cluster="c"}': "2x30",
    'evenkeel_round_interval_seconds{cluster="c"}': "10x30",
    'evenkeel_alerter_late{cluster="c"}': "0x30",
    'evenkeel_alert_deliveries{cluster="c",target="ops",outcome="delivered"}': "7x30",
    'evenkeel_gaps{cluster="c"}': "3x30",
}

# What goes wrong from the start, the alert that says so, and from which minute on.
WRONG: list[tuple[dict[str, str], str, int]] = [
    ({"evenkeel_lake_readable{}": "_x30"}, "EvenkeelNoServer", 5),
    ({"evenkeel_lake_readable{}": "0x30"}, "EvenkeelTablesUnreadable", 5),
    ({'evenkeel_cluster_silent{cluster="c"}': "1x30"}, "EvenkeelNoRounds", 1),
    ({'evenkeel_job_rounds_behind{cluster="c"}': "60x30"}, "EvenkeelJobBehind", 15),
    ({'evenkeel_job_batch_duration_seconds{cluster="c"}': "11x30"}, "EvenkeelBatchesSlow", 15),
    ({'evenkeel_alerter_late{cluster="c"}': "1x30"}, "EvenkeelAlerterLate", 5),
    (
        {'evenkeel_alert_deliveries{cluster="c",target="ops",outcome="failed"}': "2x30"},
        "EvenkeelDeliveriesFail",
        10,
    ),
    ({'evenkeel_gaps{cluster="c"}': "3 3 3 4x27"}, "EvenkeelGap", 3),
]


def groups() -> list[dict[str, Any]]:
    return yaml.safe_load(RULES.read_text("utf-8"))["groups"]


def promtool(*arguments: str) -> str:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("no promtool on the PATH: python -m tests.programs prometheus installs it, as root on Debian")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def served() -> set[str]:
    """Names of our metrics: those of rows, and those of the server's own."""
    live = "lake_readable cluster_silent alerter_late series_left_out round_age_seconds batch_age_seconds"
    return {metric.name for metric in MODES[OWN].metrics} | {f"evenkeel_{name}" for name in live.split()}


@pytest.mark.parametrize("about", ["groups", "itself"])
def test_every_exported_board_asks_for_metrics_that_we_serve(about: Literal["groups", "itself"]) -> None:
    assert set(re.findall(r"evenkeel_\w+", export("grafana", about=about))) <= served()


def test_every_rule_asks_for_metrics_that_we_serve_and_says_what_to_do() -> None:
    rules = [rule for group in groups() for rule in group["rules"]]
    for rule in rules:
        assert set(re.findall(r"evenkeel_\w+", rule["expr"])) <= served()
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["description"].endswith(".")
    assert {"EvenkeelNoRounds", "EvenkeelJobBehind", "EvenkeelDeliveriesFail", "EvenkeelAlerterLate"} <= {
        rule["alert"] for rule in rules
    }


@pytest.mark.soak
def test_promtool_takes_the_rules() -> None:
    assert "SUCCESS: 9 rules found" in promtool("check", "rules", str(RULES))


@pytest.mark.soak
def test_each_rule_fires_when_it_should_and_no_other_one_does(tmp_path: Path) -> None:
    names = [rule["alert"] for group in groups() for rule in group["rules"]]
    tests: list[dict[str, Any]] = [_test(WELL, {minute: set() for minute in (1, 16, 29)}, names)]
    for changed, name, minute in WRONG:
        tests.append(_test(WELL | changed, {minute - 1: set(), minute + 1: {name}}, names))
    # JSON is YAML.
    file = tmp_path / "tests.yaml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", str(file))


def _test(series: dict[str, str], firing: dict[int, set[str]], names: list[str]) -> dict[str, Any]:
    """A test of promtool: which alerts fire at which minute."""
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    wanted = [
        {"expr": f'count by (alertname) (ALERTS{{alertname="{name}",alertstate="firing"}})', "eval_time": f"{minute}m",
         "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1}] if name in fire else []}
        for minute, fire in firing.items()
        for name in names
    ]  # fmt: skip
    return {"interval": "1m", "input_series": inputs, "promql_expr_test": wanted}
