"""The runbook of docs/operations.md names every alert, and every warning in the words that a log has.

`PLAYED` says which test plays what a row promises: that nothing is lost, or that it mends.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
RUNBOOK = (ROOT / "docs" / "operations.md").read_text("utf-8").split("\n## On call\n")[1].split("\n## ")[0]
ROOMS = ("probe", "job", "serve", "alerts", "maintain", "process", "up", "tables", "record_batches", "groups")

_BATCH_AGAIN = (
    "tests/tables/test_object_store.py::test_an_outage_is_one_sentence_and_afterwards_the_batch_is_written_once"
)
_BROKEN_CHECKPOINT = (
    "tests/e2e/test_endings.py::test_a_deleted_table_and_a_cut_file_of_the_checkpoint_are_told_and_mended_row_for_row"
)
_DELIVERED = "tests/alerts/delivery/test_delivery.py::test_an_answer_of_500_is_tried_again_until_the_target_takes_it"
_FLEET = (
    "tests/up/test_fleet.py"
    "::test_a_cluster_that_is_away_or_poisoned_changes_nothing_in_the_others_and_the_file_is_followed"
)
_FIRES = "tests/serve/metrics/test_rules.py::test_each_rule_fires_when_it_should_and_no_other_one_does"
_HEALS = "tests/alerts/test_trouble.py::test_a_table_that_heals_is_judged_on_and_the_alert_resolves"
_KEPT = "tests/process/test_programs.py::test_who_is_killed_or_needs_a_person_is_back_and_the_others_go_on"
_KILLED = "tests/up/test_up.py::test_every_process_that_is_killed_is_back"
_OUTAGE = "tests/job/source/test_planner.py::test_an_outage_is_waited_out"
_RESENT = (
    "tests/alerts/delivery/test_alertmanager.py"
    "::test_what_fires_is_sent_again_with_a_later_end_and_a_watchdog_while_rounds_are_judged"
)
_ROUND_AGAIN = "tests/probe/test_run.py::test_a_broker_that_dies_in_a_round_leaves_it_open_and_the_next_one_closes"
_SILENCE = (
    "tests/alerts/judging/test_judge.py::test_silence_fires_after_three_intervals_and_resolves_with_the_next_round"
)
_STANDBY = "tests/alerts/test_fleet.py::test_the_second_stands_by_and_rows_and_messages_are_those_of_one_alone"
_STOOD_STILL = "tests/alerts/test_fleet.py::test_one_that_stood_still_finds_that_it_was_succeeded_and_ends"
_UNJUDGED = "tests/alerts/test_trouble.py::test_tables_that_cannot_be_judged_are_an_alert_and_then_an_end"

# By the alert, or by words of the sentence.
PLAYED = {
    "silence": _SILENCE,
    "EvenkeelNoRounds": _FIRES,
    "unjudged": _HEALS,
    "EvenkeelTablesUnreadable": _FIRES,
    "EvenkeelAlerterLate": "tests/alerts/test_fleet.py"
    "::test_one_that_dies_is_succeeded_after_its_lease_was_watched_in_vain_and_what_it_owed_is_sent",
    "EvenkeelNoServer": _KILLED,
    "undelivered": _DELIVERED,
    "EvenkeelDeliveriesFail": _FIRES,
    "gap": "tests/job/source/test_source.py::test_a_log_that_was_deleted_in_part_gives_a_gap_and_goes_on",
    "EvenkeelGap": _FIRES,
    "undecodable": "tests/alerts/test_trouble.py::test_an_event_fires_once_and_resolves_when_none_has_come_for_a_while",
    "unknown_records": "tests/groups/test_later_kafka.py"
    "::test_a_group_whose_commits_cannot_be_read_any_more_has_unknown_lag_and_has_not_stopped",
    "unmaintained": "tests/alerts/judging/test_restarts.py"
    "::test_a_table_of_many_files_fires_and_compaction_resolves_it",
    "EvenkeelJobBehind": "tests/serve/metrics/test_own.py"
    "::test_the_newest_batch_is_told_by_phase_with_what_it_left_behind",
    "EvenkeelBatchesSlow": _FIRES,
    "EvenkeelSeriesLeftOut": "tests/serve/metrics/test_own.py"
    "::test_whole_metrics_are_left_out_beyond_the_limit_and_named",
    # up.log
    "was killed": _KILLED,
    "ended with code": _KILLED,
    "cannot run: ": _KEPT,
    "the guard of ": "tests/process/test_programs.py"
    "::test_a_killed_guard_is_replaced_with_its_program_and_nothing_of_the_old_run_is_left",
    "The settings file is not taken over: ": "tests/config/test_settings.py"
    "::test_a_file_that_is_wrong_or_empty_now_changes_nothing_and_is_told_once",
    # probe.log
    "No round closes": _ROUND_AGAIN,
    "Rounds close again": _ROUND_AGAIN,
    "Standing by: probe ": "tests/probe/standby/test_real.py"
    "::test_a_second_process_stands_by_and_takes_over_at_an_end_and_after_a_kill",
    "What is configured for Connect group ": "tests/probe/kafka/test_connect.py"
    "::test_a_topic_that_cannot_be_read_is_said_once_in_its_third_round_and_read_when_it_is_there",
    "A round took ": "tests/probe/test_deadline.py::test_a_slow_pace_is_said_once_and_its_end_once",
    "has too many partitions": "tests/probe/test_deadline.py"
    "::test_a_group_that_no_record_can_hold_loses_its_topics_and_the_others_keep_theirs",
    "cannot be asked: ": "tests/probe/rocketmq/test_observe.py"
    "::test_a_server_that_cannot_be_asked_is_named_once_an_hour",
    # job.log
    "Spark's JVM is gone": _KILLED,
    "the Spark query has ended: ": "tests/job/source/test_source.py"
    "::test_a_batch_that_failed_is_read_again_the_same_after_a_restart",
    "Its query starts again in ": _FLEET,
    "source: no answer": _OUTAGE,
    "there is an answer again": _OUTAGE,
    "Nothing could be read of ": "tests/record_batches/test_ranges.py"
    "::test_a_broker_that_stays_away_fails_in_one_sentence",
    "The checkpoint … is lost: ": "tests/job/test_lost.py::test_a_lost_checkpoint_is_told",
    "has lost what the checkpoint ": _BROKEN_CHECKPOINT,
    "is older than the lake ": "tests/job/test_lost.py::test_a_checkpoint_of_an_older_backup_is_told",
    "The checkpoint … is broken ": _BROKEN_CHECKPOINT,
    "The checkpoint … cannot be read: ": "tests/job/test_lost.py::test_nothing_starts_while_its_store_does_not_answer",
    "The brokers belong to the Kafka cluster ": "tests/job/source/test_positions.py"
    "::test_the_brokers_of_another_cluster_are_refused_in_one_sentence_with_the_way_out",
    "the checkpoint holds state": "tests/job/test_run.py"
    "::test_a_state_of_a_later_release_needs_a_person_who_is_told_the_two_ways_on",
    "The table … cannot be written: ": _BATCH_AGAIN,
    "the rows of ": "tests/job/test_in_spark.py::test_rows_wait_for_a_store_that_does_not_answer_which_is_logged_once",
    "maintenance failed": "tests/job/test_run.py::test_a_failure_is_a_warning_an_hour_and_the_job_goes_on",
    "record … of the rounds topic": "tests/job/source/test_planner.py"
    "::test_what_a_record_holds_reaches_the_log_as_visible_text_and_in_few_lines",
    "show groups from the source ": "tests/job/source/test_events.py"
    "::test_a_query_passes_over_another_source_says_so_and_goes_on_once_its_own_is_back",
    "a topic ends before what was read of it": "tests/job/source/test_positions.py"
    "::test_a_log_that_stays_shorter_than_what_was_read_is_a_gap_and_goes_on_at_its_new_end",
    "job.shuffle_partitions is ": "tests/e2e/test_endings.py"
    "::test_a_checkpoint_keeps_its_state_partitions_and_says_so_until_a_rebuild_makes_others",
    # server.log
    "now, retrying in a moment": _HEALS,
    "the tables could not be evaluated": _UNJUDGED,
    "since the last decision are gone": "tests/alerts/judging/test_feed.py"
    "::test_commits_that_were_cleaned_up_under_a_sleeper_mean_a_new_beginning",
    "did not accept ": _DELIVERED,
    "did not take what still fires": _RESENT,
    "takes no metrics": "tests/serve/metrics/test_own.py"
    "::test_a_receiver_that_is_away_is_logged_once_and_so_is_its_return",
    # all
    "Standing by: the ": _STANDBY,
    "stop that one": "tests/up/test_up.py::test_a_second_job_on_its_lake_is_refused",
    "The lease could not be renewed": "tests/process/test_lease.py"
    "::test_a_holder_has_stopped_before_anybody_can_take_over",
    "The lease was taken over": _STOOD_STILL,
    "ignores the conditions": "tests/process/test_lease.py::test_a_store_that_ignores_conditions_is_refused",
}


def rows(heading: str) -> list[list[str]]:
    """The cells of each row in the tables of a section of the runbook, without their heads."""
    section = RUNBOOK.split(f"\n### {heading}\n")[1].split("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    heads = {
        above for above, below in zip(section.splitlines(), section.splitlines()[1:], strict=False) if "|---" in below
    }
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line not in heads]


def quoted(rows: list[list[str]]) -> set[str]:
    """What the first cells quote: names of alerts, or sentences with … for what differs."""
    return {name for first, *_ in rows for name in re.findall(r"`([^`]+)`", first)}


OWN_ALERTS, GROUP_ALERTS = quoted(rows("Alerts about Evenkeel")), quoted(rows("Alerts about groups"))
SENTENCES = quoted(rows("What the logs say"))


def test_every_alert_rule_has_its_row_and_no_row_is_of_a_rule_that_is_gone() -> None:
    shipped = {rule["name"] for rule in yaml.safe_load((ROOT / "conf/alerts.yaml").read_text("utf-8"))["rules"]}
    of_prometheus = (ROOT / "conf/deploy/prometheus/evenkeel-rules.yaml").read_text("utf-8")
    watching = {rule["alert"] for group in yaml.safe_load(of_prometheus)["groups"] for rule in group["rules"]}
    assert shipped | watching == OWN_ALERTS | GROUP_ALERTS
    assert not OWN_ALERTS & GROUP_ALERTS


def test_each_sentence_of_the_runbook_is_one_that_the_program_says() -> None:
    said = "\0".join(text for _, text in texts())
    assert len(SENTENCES) > 50
    assert [sentence for sentence in sorted(SENTENCES) if not pattern(sentence).search(said)] == []


def test_every_warning_and_error_of_a_log_is_in_the_runbook() -> None:
    warnings = [text for logged, text in texts() if logged]
    assert len(warnings) > 25
    assert [text for text in warnings if not any(pattern(sentence).search(text) for sentence in SENTENCES)] == []


@pytest.mark.parametrize("what", sorted(OWN_ALERTS | PLAYED.keys()))
def test_what_the_runbook_promises_is_played_by_a_test(what: str) -> None:
    assert what in OWN_ALERTS or any(what in sentence for sentence in SENTENCES)
    file, name = PLAYED[what].split("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text("utf-8")


def pattern(sentence: str) -> re.Pattern[str]:
    """A text with the same words, whatever stands for the rest."""
    return re.compile("[^\0]*".join(map(re.escape, sentence.strip("…").split("…"))))


@cache
def texts() -> tuple[tuple[bool, str], ...]:
    """Every text of the processes, with … for what is filled in, and whether it is a warning or an error of a log.

    A warning that only passes on what it is given is none.
    """
    found: list[tuple[bool, str]] = []
    program = ROOT / "streaming"
    for path in (*program.glob("*.py"), *(file for room in ROOMS for file in (program / room).rglob("*.py"))):
        tree = ast.parse(path.read_text("utf-8"))
        logged = {
            id(node.args[0])
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and getattr(node.func, "attr", None) in {"warning", "error", "exception"}
            and ast.unparse(node.func.value) == "_LOG"
        }
        found += [
            (id(node) in logged and len(re.findall(r"\w{2,}", text)) > 2, text)
            for node in ast.walk(tree)
            if (text := text_of(node))
        ]
    return tuple(found)


def text_of(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "…" for part in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[\d.,]*[sdrf]", "…", node.value)
    return ""
