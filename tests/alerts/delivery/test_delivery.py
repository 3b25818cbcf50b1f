"""Each transition arrives at least once at every target, and a second copy is recognisable: over real HTTP."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from streaming.alerts import Alerter, open_targets, send_test
from streaming.config import AlertSettings, JobSettings, Settings
from streaming.demo.ports import free_port
from streaming.exceptions import SetupError
from streaming.tables import LakeReader
from tests.alerts.build import DRIFT, Writer, drifted, rules, until_idle
from tests.alerts.services import Receiver, Services

pytestmark = pytest.mark.turn(6)


class Lake:
    """A lake with present rounds, and alerters on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writer = Writer(folder)
        self.rules = rules(folder, DRIFT)
        self._round = (round(time.time() * 1000) - 1_800_000_000_000) // 10_000

    def write(self, **verdicts: str) -> None:
        self._round += 1
        self.writer.write(
            self._round,
            {"drift": [row for group, verdict in verdicts.items() for row in drifted(group, verdict=verdict)]},
        )

    def settings(self, **targets: str) -> Settings:
        alerts = AlertSettings(targets=targets, poll_ms=100, rules=self.folder / "alerts.yaml")
        return Settings(cluster="c", lake=self.writer.root, alerts=alerts, job=JobSettings())

    @contextmanager
    def alerter(self, **targets: str) -> Iterator[Alerter]:
        settings = self.settings(**targets)
        with Alerter(settings, self.rules, open_targets(settings)) as alerter:
            yield alerter

    def deliveries(self, target: str) -> list[tuple[str, str, int | None, str | None]]:
        rows = LakeReader(self.writer.root).rows(
            "SELECT outcome, state, attempt, reason FROM alert_deliveries WHERE target = ? AND outcome <> 'added' "
            "ORDER BY attempt_time, attempt",
            [target],
        )
        return [(row["outcome"], row["state"], row["attempt"], row["reason"]) for row in rows]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_message_says_what_holds_since_when_of_whom_and_which_copy_it_is(lake: Lake) -> None:
    with Receiver() as receiver, lake.alerter(ops=receiver.url) as alerter:
        lake.write(billing="drifted")
        (decided,) = alerter.poll()
        receiver.wait()
        until_idle(alerter)
    (message,) = receiver.messages
    assert message["title"] == "[firing] drift: billing (critical)"
    assert message["type"] == "failure"
    assert message["id"] == decided.transition_id
    assert (message["state"], message["rule"], message["group_id"], message["severity"], message["cluster"]) == (
        *("firing", "drift", "billing", "critical", "c"),
    )
    assert message["text"] == "billing drifted"
    assert message["message"].startswith("billing drifted\n\ncluster: c\ngroup: billing\nsince: 20")
    assert decided.transition_id in message["message"]
    assert lake.deliveries("ops") == [("delivered", "firing", 1, None)]


def test_hostile_names_arrive_as_the_text_they_are(lake: Lake) -> None:
    names = ["<b>bold</b> &amp; 'quoted'", 'two\nlines: "x"', "{value}", "*stars* _lines_ `observations`", "x" * 32_000]
    with Receiver() as receiver, lake.alerter(ops=receiver.url) as alerter:
        lake.write(**dict.fromkeys(names, "drifted"))
        alerter.poll()
        receiver.wait(len(names))
        until_idle(alerter)
    told = {message["group_id"] for message in receiver.messages}
    assert told == {*(name.replace("\n", "\\n") for name in names[:4]), f"{'x' * 99}…{'x' * 99}"}
    for message in receiver.messages:
        assert f"\ngroup: {message['group_id']}\n" in message["message"]
        assert "\n" not in message["title"]
        assert len(message["title"]) < 130


def test_what_was_told_to_fire_is_told_to_end_and_pending_is_told_to_nobody(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.rules = rules(tmp_path, DRIFT.replace("    severity", "    for: 1 rounds\n    severity"))
    with Receiver() as receiver, lake.alerter(ops=receiver.url) as alerter:
        for verdicts in ({"a": "drifted", "b": "drifted"}, {"b": "identical"}, {"a": "identical"}):
            lake.write(**verdicts)
            alerter.poll()
        until_idle(alerter)
    assert receiver.states_of_groups() == [("firing", "a"), ("resolved", "a")]
    assert receiver.messages[1]["type"] == "success"
    assert receiver.messages[0]["alert"] == receiver.messages[1]["alert"]


def test_an_answer_of_500_is_tried_again_until_the_target_takes_it(lake: Lake) -> None:
    with Receiver(500, 503) as receiver, lake.alerter(ops=receiver.url) as alerter:
        lake.write(a="drifted")
        alerter.poll()
        receiver.wait(3)
        until_idle(alerter)
    assert len({message["id"] for message in receiver.messages}) == 1
    assert lake.deliveries("ops") == [
        ("failed", "firing", 1, "the target answered HTTP 500 Internal Server Error"),
        ("failed", "firing", 2, "the target answered HTTP 503 Service Unavailable"),
        ("delivered", "firing", 3, None),
    ]


def test_a_dead_and_a_slow_target_hold_back_neither_another_nor_the_judging(lake: Lake) -> None:
    with ExitStack() as stack:
        good, slow = stack.enter_context(Receiver()), stack.enter_context(Receiver())
        slow.answers.clear()
        dead = f"json://127.0.0.1:{free_port()}"
        alerter = stack.enter_context(lake.alerter(dead=dead, slow=f"{slow.url}&rto=0.5", good=good.url))
        for group in "abc":
            lake.write(**{group: "drifted"})
            began = time.monotonic()
            assert [d.group_id for d in alerter.poll()] == [group]
            assert time.monotonic() - began < 20
        good.wait(3)
        slow.wait(2)
        slow.answers.set()
        while {group for _, group in slow.states_of_groups()} != set("abc"):
            slow.wait()
    assert [group for _, group in good.states_of_groups()] == ["a", "b", "c"]
    assert {outcome for outcome, *_ in lake.deliveries("good")} == {"delivered"}
    assert {(outcome, reason) for outcome, _, _, reason in lake.deliveries("dead")} == {
        ("failed", "the target could not be reached, or did not take it in time")
    }
    assert lake.deliveries("slow")[0][0] == "failed"


def test_a_message_that_a_target_refuses_again_and_again_does_not_block_those_of_others(lake: Lake) -> None:
    with Receiver() as receiver, lake.alerter(ops=receiver.url) as alerter:
        receiver.codes = [400, 200, 400]
        lake.write(a="drifted", b="drifted")
        alerter.poll()
        receiver.wait(2)
        assert len({message["id"] for message in receiver.messages[:2]}) == 2


def test_a_restart_sends_what_is_left_in_order_and_nothing_twice(lake: Lake) -> None:
    port = free_port()
    with lake.alerter(ops=f"json://127.0.0.1:{port}") as alerter:
        lake.write(a="drifted")
        lake.write(a="identical", b="drifted")
        alerter.poll()
    with Receiver() as receiver, lake.alerter(ops=receiver.url) as alerter:
        alerter.poll()
        until_idle(alerter)
    assert receiver.states_of_groups() == [("firing", "a"), ("resolved", "a"), ("firing", "b")]
    with Receiver() as receiver, lake.alerter(ops=receiver.url) as alerter:
        alerter.poll()
        until_idle(alerter)
    assert receiver.states_of_groups() == []


def test_a_new_target_gets_what_fires_now_and_not_what_was(lake: Lake) -> None:
    with lake.alerter() as alerter:
        lake.write(a="drifted")
        lake.write(a="identical", b="drifted")
        alerter.poll()
    with Receiver() as receiver, lake.alerter(new=receiver.url) as alerter:
        alerter.poll()
        receiver.wait()
        lake.write(b="identical")
        alerter.poll()
        until_idle(alerter)
    assert receiver.states_of_groups() == [("firing", "b"), ("resolved", "b")]


def test_a_test_message_goes_to_each_target_and_what_came_of_it_is_said_without_secrets(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    with Receiver() as good, Receiver(403) as refusing:
        settings = lake.settings(good=good.url, refusing=refusing.url)
        assert send_test(settings, said.append) == 1
    assert [line.split(" (")[0] for line in said] == [
        "good: took it",
        "refusing: the target answered HTTP 403 Forbidden",
    ]
    assert good.messages[0]["evenkeel"] == "test"
    out, err = capsys.readouterr()
    assert out == err == ""


def test_a_test_without_a_target_is_something_for_a_person(lake: Lake) -> None:
    with pytest.raises(SetupError, match="There is no alert target to test"):
        send_test(lake.settings(), print)


@pytest.mark.parametrize("url", ["nonsense", "hunter2secret://x", "json://", "slack://hunter2secret", "", "mailto://"])
def test_a_url_that_apprise_does_not_know_is_one_sentence_that_does_not_show_it(lake: Lake, url: str) -> None:
    with pytest.raises(SetupError, match=r"The URL of the alert target ops is not one that Apprise knows") as error:
        open_targets(lake.settings(ops=url))
    assert "hunter2secret" not in str(error.value)


def test_targets_come_from_a_file_too(tmp_path: Path) -> None:
    file = tmp_path / "targets"
    file.write_text("# the ops team\n\nops = json://user:pw@127.0.0.1:1/x?a=b=c\npager=xml://127.0.0.1\n")
    found = AlertSettings(targets_file=file, targets={"ops": "json://other", "third": "json://x"}).all_targets()  # type: ignore[dict-item]
    assert {name: url.get_secret_value() for name, url in found.items()} == {
        "ops": "json://user:pw@127.0.0.1:1/x?a=b=c",
        "third": "json://x",
        "pager": "xml://127.0.0.1",
    }
    file.write_text("ops json://user:hunter2secret@127.0.0.1\n")
    with pytest.raises(SetupError, match=r"Line 1 of .* is not a target") as error:
        AlertSettings(targets_file=file).all_targets()
    assert "hunter2secret" not in str(error.value)
    with pytest.raises(SetupError, match="cannot be read"):
        AlertSettings(targets_file=tmp_path / "nowhere").all_targets()


# Many simultaneous alerts are a few messages; an interruption loses none.


_CHAT = f"discord://{'4' * 24}/{'t' * 64}"


def _chat(services: Services) -> list[str]:
    return [request.json["content"].split("\r\n")[0] for request in services.requests if request.host == "discord.com"]


def _rows(lake: Lake, target: str) -> Counter[tuple[str, str]]:
    return Counter((outcome, state) for outcome, state, *_ in lake.deliveries(target))


@pytest.mark.nightly
def test_a_restart_in_the_middle_of_a_storm_sends_only_what_has_no_row(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.rules = rules(tmp_path, DRIFT, DRIFT.replace("name: drift", "name: seen").replace("critical", "warning"))
    lake.write(**dict.fromkeys((f"g{n}" for n in range(500)), "drifted"))
    # The first message is taken, the second refused; then the process ends.
    with Services(204, 500) as services, lake.alerter(chat=_CHAT) as alerter:
        alerter.poll()
        while len(services.requests) < 2:
            assert alerter.wake.wait(60)
            alerter.wake.clear()
            alerter.poll()
    assert _chat(services)[0] == "[firing] drift: 500 alerts (critical)"
    assert _rows(lake, "chat") == {("delivered", "firing"): 500, ("failed", "firing"): 1}
    with Services() as services, lake.alerter(chat=_CHAT) as alerter:
        alerter.poll()
        until_idle(alerter)
    assert _chat(services) == ["[firing] seen: 500 alerts (warning)"]
    assert _rows(lake, "chat") == {("delivered", "firing"): 1_000, ("failed", "firing"): 1}
