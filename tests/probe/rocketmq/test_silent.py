"""Clients that do not answer are left alone for longer and longer."""

from __future__ import annotations

from streaming.probe.rocketmq.members import SilentClients


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
