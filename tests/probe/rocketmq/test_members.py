"""Through which brokers a client is asked, and when its silence is its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.config import Filters
from streaming.demo.ports import free_port
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.members import MemberQuestions, SilentClients
from streaming.records import NOT_ASKED, OK, TIMEOUT, BrokerSeen
from streaming.rocketmq import Answer, Client, Frame, Question, Unanswered


def test_each_silence_doubles_the_pause_up_to_five_minutes() -> None:
    silent, time, pauses = SilentClients(), 1_000_000, []
    for _ in range(7):
        silent.heard("g", "c", time, answered=False)
        began = time
        while silent.is_left_alone("g", "c", time):
            time += 10_000
        pauses.append((time - began) // 1000)
    assert pauses == [20, 40, 80, 160, 300, 300, 300]


def test_an_answer_ends_it_and_another_client_is_not_concerned() -> None:
    silent = SilentClients()
    silent.heard("g", "c", 0, answered=False)
    assert [silent.is_left_alone("g", one, 10_000) for one in ("c", "d")] == [True, False]
    silent.heard("g", "c", 20_000, answered=True)
    assert not silent.is_left_alone("g", "c", 20_000)


def test_who_is_on_no_list_any_more_is_forgotten() -> None:
    silent = SilentClients()
    silent.heard("g", "c", 0, answered=False)
    silent.forget(set())
    assert not silent.is_left_alone("g", "c", 10_000)


_A, _B, _C = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:10911"


class Brokers:
    """Brokers, some of which say nothing; notes who was asked for whom."""

    def __init__(self, *silent: str) -> None:
        self.silent = silent
        self.asked: list[tuple[str, str]] = []

    def ask(self, questions: Sequence[Question], deadline: Deadline) -> list[Answer]:
        del deadline
        self.asked += [(one.address, one.fields["clientId"]) for one in questions]
        late = Unanswered("no answer within 2.0 s", late=True)
        return [late if one.address in self.silent else Frame(0, 1, 1, body=b'{"mqTable":{}}') for one in questions]


def answers(asking: MemberQuestions, addresses: Sequence[str], clients: Sequence[str], time: int = 0) -> dict[str, str]:
    brokers = [BrokerSeen(address, 0, address, OK, clients=tuple(clients)) for address in addresses]
    found = asking.ask({"g": brokers}, {"g": set()}, time, Deadline.after(60))
    return {one.client_id: one.answer for one in found["g"]}


def test_a_client_that_is_silent_through_one_broker_is_asked_through_another() -> None:
    brokers = Brokers(_A)
    assert answers(MemberQuestions(brokers.ask), [_A, _B, _C], ["c1"]) == {"c1": OK}
    assert brokers.asked == [(_A, "c1"), (_B, "c1")]


def test_a_client_that_is_silent_through_two_brokers_is_left_alone_for_two_rounds() -> None:
    brokers = Brokers(_A, _B, _C)
    asking = MemberQuestions(brokers.ask)
    assert answers(asking, [_A, _B, _C], ["c1"]) == {"c1": TIMEOUT}
    assert brokers.asked == [(_A, "c1"), (_B, "c1")]
    assert answers(asking, [_A, _B, _C], ["c1"], 10_000) == {"c1": NOT_ASKED}
    brokers.silent = ()
    assert answers(asking, [_A, _B, _C], ["c1"], 20_000) == {"c1": OK}


def test_brokers_that_say_nothing_are_not_asked_for_more_than_a_batch_of_clients_each() -> None:
    brokers = Brokers(_A, _B)
    found = answers(MemberQuestions(brokers.ask), [_A, _B], [f"c{number:02}" for number in range(40)])
    assert len(brokers.asked) <= 4 * 8
    assert set(found.values()) == {TIMEOUT, NOT_ASKED}


HOUR = 3_600_000


def test_a_server_that_cannot_be_asked_is_named_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    address = f"127.0.0.1:{free_port()}"
    said = []
    with Client() as client:
        cluster = RocketMQCluster(client, [address], Filters())
        for time in (0, 10_000, HOUR - 1, HOUR, HOUR + 10_000, 5_000):  # (The last clock goes back.)
            caplog.clear()
            with pytest.raises(RoundAbandonedError):
                cluster.observe_groups([], frozenset(), time, Deadline.after(30))
            said.append([record.getMessage() for record in caplog.records])
    named = [f"{address} cannot be asked: connection refused."]
    assert said == [named, [], [], named, [], named]
