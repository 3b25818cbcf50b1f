"""What the commands print, their exit codes, and the examples in their help."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import typer
from typer.testing import CliRunner

from streaming.cli import app, main
from streaming.demo.ports import free_port
from streaming.examples import EXAMPLES
from streaming.notes import KnownNames, mute
from streaming.tables import LakeReader, table_named
from tests.dashboards.made_lake import MadeGroup, MadeLake
from tests.empty_lake import empty_lake
from tests.examples import by_day

_ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("EVENKEEL_") or k == "EVENKEEL_CACHE"}

Evenkeel = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def evenkeel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evenkeel:
    """`evenkeel` with its arguments in an empty folder, in this process."""
    for name in os.environ.keys() - _ENVIRONMENT.keys():
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["evenkeel", *arguments])
        # What an option says is passed on to children by their environment.
        with patch.dict(os.environ), CliRunner().isolation(given) as (out, err, _):
            with pytest.raises(SystemExit) as ended:
                main()
            sys.stderr.flush()
            said = out.getvalue().decode(), err.getvalue().decode()
        return subprocess.CompletedProcess(arguments, ended.value.code or 0, *said)

    return run


def _run_as_process(*arguments: str, cwd: Path, stdout: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """`evenkeel` as a process, with three lines to read."""
    return subprocess.run(
        [sys.executable, "-c", "from streaming.cli import main; main()", *arguments],
        input="{}\n" * 3,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        cwd=cwd,
        env=_ENVIRONMENT | environment,
        check=False,
    )


@pytest.fixture
def closed_port() -> int:
    return free_port()


@pytest.mark.parametrize("command", by_day(["up", "run"], ["up"]))
def test_a_cluster_that_cannot_be_reached_is_one_sentence_and_exit_code_2(
    command: str, closed_port: int, tmp_path: Path
) -> None:
    done = _run_as_process(command, "--bootstrap", f"127.0.0.1:{closed_port}", cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert done.returncode == 2
    assert str(closed_port) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("PROBE__INTERVAL_MS", "soon", "The setting probe.interval_ms is wrong: "),
        ("ALERTS__TARGETS", "jsons://me:hunter2@hooks", "A variable of the environment cannot be read as JSON: "),
    ],
)
def test_a_wrong_setting_is_one_sentence_without_its_value_and_exit_code_2(
    variable: str, value: str, told: str, evenkeel: Evenkeel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"EVENKEEL_{variable}", value)
    done = evenkeel("probe")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(told)
    assert len(done.stderr.strip().splitlines()) == 1
    assert "hunter2" not in done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("module", ["streaming.job", "streaming.probe", "streaming.serve"])
def test_the_processes_of_up_say_it_in_the_same_sentence(module: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", module],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env=_ENVIRONMENT | {"EVENKEEL_ALERTS__TARGETS": "jsons://me:hunter2@hooks"},
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("A variable of the environment cannot be read as JSON: ")
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_demo_refuses_a_lake_that_has_something_in_it_and_quotes_its_name_without_escapes(
    evenkeel: Evenkeel, tmp_path: Path
) -> None:
    (tmp_path / "a\x1b[31m").mkdir()
    (tmp_path / "a\x1b[31m" / "thesis.txt").write_text("dear")
    done = evenkeel("demo", "--lake", "a\x1b[31m")
    assert done.returncode == 2
    assert "a\\x1b[31m is not empty" in done.stderr
    assert "\x1b" not in done.stderr
    assert (tmp_path / "a\x1b[31m" / "thesis.txt").read_text() == "dear"


def test_the_tools_answer_each_line_in_order_and_a_bad_line_with_its_reason(evenkeel: Evenkeel) -> None:
    member = {"topics": ["t"], "owned": [], "generation": None, "group_instance_id": None, "rack": None}
    good = {"strategy": "range", "partitions_per_topic": {"t": 2}, "members": {"a": member, "b": member}}
    lines = [json.dumps(good), "{", "", "[]", json.dumps(good | {"strategy": "nobody's"})]
    done = evenkeel("assign", given="\n".join(lines) + "\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert answers[0] == {"assignment": {"a": [["t", 0]], "b": [["t", 1]]}}
    assert [list(answer) for answer in answers[1:]] == [["error"]] * 4


@contextmanager
def _nobody_reads() -> Iterator[int]:
    """The writing end of a pipe that is closed at the other, as by `head`."""
    theirs, ours = os.pipe()
    os.close(theirs)
    try:
        yield ours
    finally:
        os.close(ours)


@pytest.mark.parametrize(
    "command",
    [
        ["assign"],  # all tools write their answers in the same way
        pytest.param(["--version"], marks=pytest.mark.nightly),
        pytest.param(["export", "grafana"], marks=pytest.mark.nightly),
        pytest.param(["alert", "--check"], marks=pytest.mark.nightly),
    ],
    ids=lambda command: command[0],
)
def test_a_command_whose_reader_has_gone_is_done(command: list[str], tmp_path: Path) -> None:
    with _nobody_reads() as output:
        done = _run_as_process(*command, cwd=tmp_path, stdout=output)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.nightly
def test_what_is_done_is_said_whatever_letters_the_terminal_lacks_and_whether_anybody_reads_it(tmp_path: Path) -> None:
    lake = empty_lake(tmp_path / "lake", [table_named("marks"), table_named("rounds")])
    command = ("mark", "деплой", "--lake", lake.root, "--cluster", "c")
    done = _run_as_process(*command, cwd=tmp_path, stdout=subprocess.PIPE, PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(": \\u0434\\u0435\\u043f\\u043b\\u043e\\u0439\n")
    with _nobody_reads() as output:
        done = _run_as_process(*command, cwd=tmp_path, stdout=output)
    assert (done.returncode, done.stderr) == (0, "")
    assert LakeReader(lake.root).rows("SELECT text FROM marks") == [{"text": "деплой"}] * 2


@pytest.mark.nightly
def test_a_command_whose_reader_has_gone_does_what_is_left_and_its_exit_code_says_what_came_of_it(
    closed_port: int, tmp_path: Path
) -> None:
    with _nobody_reads() as output:
        done = _run_as_process("doctor", "--bootstrap", f"127.0.0.1:{closed_port}", cwd=tmp_path, stdout=output)
    assert (done.returncode, done.stderr) == (2, "")


def test_assign_takes_the_inputs_of_a_verdict_in_hex(evenkeel: Evenkeel) -> None:
    line = b'{"strategy": "range", "partitions_per_topic": {"t": 1}, "members": {"a": {"topics": ["t"]}}}'
    packed = zlib.compress(line).hex()
    done = evenkeel("assign", given=f"{packed}\n{packed.upper()}\n{packed[:-2]}\n")
    whole, upper, cut = map(json.loads, done.stdout.splitlines())
    assert whole == upper == {"assignment": {"a": [["t", 0]]}}
    assert cut == {"error": "not JSON: this zlib stream is cut short, or too long: give the whole of drift.inputs"}


def test_a_member_that_stands_twice_or_a_name_that_cannot_be_written_is_an_error(evenkeel: Evenkeel) -> None:
    start = '{"strategy": "range", "partitions_per_topic": {"t": 2}, "members": '
    lines = [
        start + '{"a": {"topics": ["t"]}, "a": {"topics": ["t"]}}}',
        start + '{"a": {"topics": ["t"]}, "b\\ud800": {"topics": ["t"]}}}',
        start.replace("2", "Infinity") + "{}}",
    ]
    done = evenkeel("assign", given="\n".join(lines) + "\n")
    assert [json.loads(line)["error"] for line in done.stdout.splitlines()] == [
        "not JSON: the key 'a' appears twice in one object",
        "a text contains half of a surrogate pair and cannot be written",
        "not JSON: Infinity is no JSON",
    ]


def test_judge_answers_a_line_for_each_line_also_for_names_that_cannot_be_written(evenkeel: Evenkeel) -> None:
    question = shlex.split(EXAMPLES["judge"])[1]
    expects = '"strategies": [{"groups": "g", "strategy": "\\ud800"}], "records"'
    lines = [question, question.replace('"records"', expects), "[]"]
    done = evenkeel("judge", given="\n".join(lines) + "\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["verdict"] for row in answers[0]["drift"]] == ["identical"]
    assert answers[1:] == [
        {"error": "Input should be a valid string, unable to parse raw data as a unicode string"},
        {"error": "not a JSON object"},
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_what_if_answers_with_an_object_a_strategy(evenkeel: Evenkeel) -> None:
    question = {"partitions_per_topic": {"t": 2}, "members": {"a": {"topics": ["t"]}}, "current": {}}
    done = evenkeel("what-if", given=json.dumps(question) + "\n")
    assert set(json.loads(done.stdout)) == {"range", "roundrobin", "sticky", "cooperative-sticky"}


def test_decode_prints_a_record_in_kafkas_names(evenkeel: Evenkeel) -> None:
    # Key type 1: group "g", topic "t", partition 0; value version 3: offset 42, leader epoch 5, metadata "", time 7.
    key = "0001" + "0001" + "67" + "0001" + "74" + "00000000"
    value = "0003" + "000000000000002a" + "00000005" + "0000" + "0000000000000007"
    done = evenkeel("decode", given=json.dumps({"key": key, "value": value}) + "\n")
    assert json.loads(done.stdout) == {
        "type": "OffsetCommit",
        "key_type": 1,
        "value_version": 3,
        "key": {"group": "g", "topic": "t", "partition": 0},
        "value": {"offset": 42, "leaderEpoch": 5, "metadata": "", "commitTimestamp": 7},
    }


COMMANDS: Any = typer.main.get_command(app)

# They need a cluster, or run until they are stopped; tests/doctor, tests/up, tests/serve and others start them.
SERVERS = frozenset({"init", "up", "demo", "run", "submit", "probe", "serve"})

# There is no cluster here, which it says.
WRONG = {"doctor": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("examples")
    MadeLake(root / "lake", [MadeGroup("billing")], rounds=125)
    mute(str(root / "lake"), "demo", "billing", "2h", "to be ended", KnownNames((), ()))
    return root


def test_every_command_has_an_example_in_its_help() -> None:
    assert set(COMMANDS.commands) == set(EXAMPLES)
    for name, command in COMMANDS.commands.items():
        assert command.epilog == f"Example: {EXAMPLES[name]}"
        assert f"evenkeel {name}" in EXAMPLES[name]


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_the_example_of_a_server_is_one_that_the_program_knows(name: str) -> None:
    arguments = shlex.split(EXAMPLES[name])[2:]
    COMMANDS.commands[name].make_context(name, arguments)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - SERVERS))
def test_the_example_works(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    given, bar, line = EXAMPLES[name].rpartition(" | ")
    stdin = shlex.split(given)[1] + "\n" if bar else ""
    with patch.dict(os.environ):
        done = CliRunner().invoke(app, shlex.split(line)[1:], input=stdin)
    assert done.exit_code == WRONG.get(name, 0), done.output
    assert done.output.strip()
    if bar:
        assert "error" not in json.loads(done.output)
