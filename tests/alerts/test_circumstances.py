"""What preceded an alert: the group's newest rebalance, brokers, moved coordinators, marks; and the command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.alerts.circumstances import Happened
from streaming.alerts.delivery.wording import Wording
from streaming.alerts.transitions import Transition
from streaming.notes import Mark
from streaming.tables import table_named
from tests.alerts.build import START, transition
from tests.empty_lake import empty_lake

MINUTE = 60_000

_FIRING = transition(cluster="c", rule="drift", group_id="g", since=START, round=7, round_time=START)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = str(tmp_path_factory.mktemp("before") / "lake")
    lake = empty_lake(root)

    def decided(group: str, decision: int, minutes: float, *causes: tuple[str, str] | None) -> list[object]:
        time = round(START + minutes * MINUTE)
        named = {
            "cluster": "c", "group_id": group, "decision": decision, "record_time": time, "revision": 1,
            "event_date": time // 86_400_000,
            "causes": None if None in causes else [(*cause, None, [], None, None, None) for cause in causes if cause],
        }  # fmt: skip
        return [named.get(column.name) for column in table_named("rebalance_churn").columns]

    rows = [
        decided("g", 1, -30, ("member_joined", "x")),
        decided("g", 2, -4, ("member_gone", "worker-2 on 10.0.0.7")),
        decided("g", 3, 6, ("member_joined", "y")),
        decided("h", 4, -20, ("coordinator_moved", "")),
        decided("i", 5, -10, ("coordinator_moved", ""), ("member_joined", "")),
        decided("j", 6, -45, ("coordinator_moved", "")),
        decided("k", 7, 20, ("broker_down", "")),
        decided("l", 8, 40, ("broker_up", "")),
        decided("m", 9, -20, ("member_joined", "x")),
        decided("m", 10, -5, None),
    ]
    lake.append("rebalance_churn", rows, "made", 0)
    lake.append("rounds", [_round(50 + minutes, minutes) for minutes in range(-50, 50)], "made", 0)
    return root


# Broker 2 is missed from the 20th to the 30th minute, broker 3 from 40 minutes before to 40 after the first alert.
def _round(number: int, minutes: int) -> list[object]:
    gone = [(3, "kafka-3", None, START - 40 * MINUTE)] if -40 <= minutes < 40 else []
    gone += [(2, "kafka-2", None, START + 20 * MINUTE)] if 20 <= minutes < 30 else []
    time = START + minutes * MINUTE
    named = {
        "cluster": "c", "round": number, "round_time": time, "event_date": time // 86_400_000, "brokers_gone": gone,
    }  # fmt: skip
    return [named.get(column.name) for column in table_named("rounds").columns]


def _before(lake: str, alert: Transition, *marks: Mark) -> str | None:
    (found,) = Happened(lake, "c").with_circumstances([alert], marks)
    return found.before


def test_the_newest_rebalance_before_the_alert_is_named_with_its_cause_and_no_later_one(lake: str) -> None:
    said = _before(lake, _FIRING)
    assert said == (
        "rebalance 4 min earlier (member_gone: worker-2 on 10.0.0.7); "
        "the coordinator of 2 groups moved in the half hour before: a broker restarted or went away"
    )


def test_a_rebalance_whose_causes_are_not_known_gets_none_of_the_one_before(lake: str) -> None:
    assert (_before(lake, replace(_FIRING, group_id="m")) or "").startswith("rebalance 5 min earlier; ")


def test_two_alerts_of_one_look_each_get_what_preceded_them(lake: str) -> None:
    later = replace(_FIRING, alert_id="u", since=START + 10 * MINUTE, round_time=START + 10 * MINUTE)
    first, second = Happened(lake, "c").with_circumstances([_FIRING, later], ())
    assert [one.rebalance for one in (first, second)] == [2, 3]


@pytest.mark.parametrize(
    ("minutes", "broker", "groups"),
    [(25, "went down 5 min earlier", "1 group"), (45, "went down 25 min earlier, and is back", "2 groups")],
)
def test_a_broker_that_went_down_in_the_half_hour_before_is_named(
    lake: str, minutes: int, broker: str, groups: str
) -> None:
    time = START + minutes * MINUTE
    said = _before(lake, replace(_FIRING, group_id="other", since=time, round_time=time))
    assert said == f"broker 2 (kafka-2) {broker}; the coordinator of {groups} moved in the half hour before"


def test_moved_coordinators_are_counted_before_each_alert_of_a_look(lake: str) -> None:
    later = replace(_FIRING, alert_id="u", since=START + 25 * MINUTE, round_time=START + 25 * MINUTE)
    found = Happened(lake, "c").with_circumstances([_FIRING, later], ())
    assert "the coordinator of 2 groups moved" in (found[0].before or "")
    assert "the coordinator of 1 group moved" in (found[1].before or "")


def test_marks_of_the_hour_before_that_concern_the_group_are_named(lake: str) -> None:
    def mark(minutes: float, group: str | None, text: str) -> Mark:
        return Mark(text, "c", text, group, "ann@host", round(START + minutes * MINUTE))

    alert = replace(_FIRING, group_id="other")
    said = _before(
        lake,
        alert,
        mark(-90, None, "old"),
        mark(-30, "g", "another's"),
        mark(-20, None, "all"),
        mark(-3, "other", "own"),
    )
    assert said is not None
    assert "mark 20 min earlier: all (ann@host); mark 3 min earlier: own (ann@host)" in said
    assert "old" not in said
    assert "another's" not in said


@pytest.mark.parametrize(
    ("group", "word"),
    [
        ("billing", "billing"),
        ("it's; rm -rf /", "'it'\"'\"'s; rm -rf /'"),
        ("$(reboot)`reboot`", "'$(reboot)`reboot`'"),
    ],
)
def test_a_name_in_a_command_is_one_word_of_a_shell(group: str, word: str) -> None:
    command = Wording(bootstrap="kafka-1:9092").command(replace(_FIRING, group_id=group))
    assert command == f"kafka-consumer-groups --bootstrap-server kafka-1:9092 --describe --group {word}"


def test_a_name_that_nobody_can_type_has_no_command() -> None:
    for group in ("two\nlines", "\u202eevil", "x" * 201):
        assert Wording(bootstrap="kafka-1:9092").command(replace(_FIRING, group_id=group)) is None


def test_a_link_leads_to_the_page_as_of_then() -> None:
    wording = Wording(public_url="https://keel.example.org/x", tables={"drift": "drift"})
    assert wording.link(replace(_FIRING, rule="lag", group_id="a/b c")) == (
        "https://keel.example.org/x/groups/a%2Fb%20c?cluster=c&from=2027-01-15T07%3A15Z&to=2027-01-15T08%3A15Z"
    )
    assert wording.link(replace(_FIRING, rule="silence", group_id=None)) == (
        "https://keel.example.org/x/alerts/silence?cluster=c&from=2027-01-15T07%3A15Z&to=2027-01-15T08%3A15Z"
    )
    assert Wording().link(_FIRING) is None
