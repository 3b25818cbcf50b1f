"""What a round leaves to the next, and what a new probe reads back of it."""

from __future__ import annotations

from streaming.config import Filters
from streaming.probe.kafka.holds import HELD_ROUNDS, BlockedPartition
from streaming.probe.kafka.look import Description
from streaming.probe.kafka.memory import Memory, memory_after, recall, topics_of_groups
from streaming.records import HeldPartition, RoundClosed
from tests.probe.kafka.build import ALL, LOG, MakeHead, events_of, look_at, topic


def test_a_group_has_the_topics_it_subscribes_to_and_those_it_committed_for() -> None:
    described = {"g": Description("Stable", "consumer", frozenset({"orders"}), complete=True)}
    found = topics_of_groups(["g"], described, {"g": frozenset({"old"})}, Memory({"g": frozenset({"older"})}), ALL)
    assert found == {"g": ("old", "orders")}


def test_a_rebalance_does_not_make_topics_vanish() -> None:
    described = {"g": Description("PreparingRebalance", "consumer", frozenset(), complete=False)}
    found = topics_of_groups(["g"], described, {}, Memory({"g": frozenset({"orders"})}), ALL)
    assert found == {"g": ("orders",)}


def test_ignored_topics_are_not_reported() -> None:
    found = topics_of_groups(
        ["g"], {}, {"g": frozenset({"a", "b", "audit-1"})}, Memory(), Filters(ignore_topics=("/^audit/", "b"))
    )
    assert found == {"g": ("a",)}


def test_a_restarted_probe_knows_what_the_stopped_one_knew(make_head: MakeHead) -> None:
    head = make_head(holds=(None, BlockedPartition(20, 300, HELD_ROUNDS + 1), None))
    look = look_at({"a": topic("a", [5], [4])}, g=("a",), h=())
    events = events_of(head, look, Memory())
    closed = RoundClosed(
        1, "prod", "p", 100, 7, 1_000, LOG, (10, 25, 30), {}, 2, 3, holds=(HeldPartition(1, 300, 20, 25, 1),)
    )
    recalled = recall(closed, events)
    assert recalled.topics == memory_after(head, look, Memory()).topics == {"g": {"a"}, "h": set()}
    assert recalled.time == head.time == memory_after(head, look, Memory()).time
    assert recalled.holds == (None, BlockedPartition(20, 300, HELD_ROUNDS + 1), None)
