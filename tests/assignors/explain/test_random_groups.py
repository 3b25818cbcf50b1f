"""Every sentence on random groups is true: its facts are checked against the group, and all of them against the result.

The checks (`audit.py`) must pass for every group, whichever strategy and library computes it.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from random import Random
from typing import Any

import pytest

from assignors import Assignment, CannotTell, LeaderWouldFail, Library, assign, strategy_named, to_pairs
from assignors.explain import Explanation, brokers, clients, explain_line
from assignors.explain.clients import Facts
from assignors.jsonl import assign_line, write_client_line, write_server_line
from assignors.jsonl.lines import ClientLine, ServerLine, read
from tests.assignors.explain.audit import audit
from tests.assignors.random_groups import random_group, random_racks
from tests.assignors.random_server_groups import next_epoch, random_server_group
from tests.assignors.sticky_chains import chain
from tests.oracle.java_assignors import Case

DEALT = [("range", era) for era in strategy_named("range").eras] + [
    ("roundrobin", era) for era in strategy_named("roundrobin").eras
]
STICKY = [(name, era) for name in ("sticky", "cooperative-sticky") for era in strategy_named(name).eras]


def facts_of(line: dict[str, Any]) -> Facts:
    if line["strategy"].startswith("rocketmq:"):
        return Facts({client: frozenset() for client in line["clients"]}, {})
    if line["strategy"].startswith("server-"):
        return brokers.facts_of(read(line, ServerLine).group())
    asked = read(line, ClientLine)
    return clients.facts_of(asked.group(), asked.racks())


def explain_and_audit(line: dict[str, Any], seen: Counter[str]) -> Explanation | None:
    """The explanation of a line, audited; None where the line has no assignment either, or no steps."""
    line = json.loads(json.dumps(line))  # as a pipe would
    explained = explain_line(line)
    answer = assign_line(line)
    if explained.assignment is None:
        assert "error" in answer
        seen["not computed"] += 1
        return None
    if not line["strategy"].startswith(("server-", "rocketmq:")):
        given = {member: sorted(map(tuple, pairs)) for member, pairs in answer["assignment"].items()}
        assert given == {member: sorted(pairs) for member, pairs in to_pairs(explained.assignment).items()}
    if explained.reason is not None:
        seen[explained.reason] += 1
        return None
    if [step.kind for step in explained.steps] != ["result"]:  # not of a client with an algorithm of its own
        audit(explained.steps, facts_of(line), explained.assignment)
    seen["told"] += 1
    for step in explained.steps:
        assert step.text().endswith(".")
        for partition in list(step.about())[:3]:
            assert step.text_of(partition).endswith(".")
        seen[step.kind] += 1
    return explained


def library_of(era: Any) -> Library:
    return Library(era.library, era.since)


def decided(case: Case, *, library: Library) -> Assignment | None:
    try:
        return assign(case.strategy, case.group, library, case.racks)
    except (CannotTell, LeaderWouldFail):
        return None


def test_range_and_roundrobin_of_every_library_tell_what_they_do() -> None:
    random = Random("explain range and roundrobin")
    seen: Counter[str] = Counter()
    for number in range(500):
        strategy, era = DEALT[number % len(DEALT)]
        group = random_group(random, racks=number % 2 == 0)
        racks = random_racks(random, group) if number % 2 == 0 else None
        explain_and_audit(write_client_line(strategy, group, library_of(era), racks), seen)
    assert seen["told"] > 350, seen
    assert {"order", "blocks", "blocks_in_racks", "turns", "result"} <= set(seen)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_the_sticky_strategies_of_every_library_tell_what_they_do(strategy: str) -> None:
    random = Random(f"explain {strategy}")
    seen: Counter[str] = Counter()
    eras = [era for name, era in STICKY if name == strategy]
    groups = 0
    while groups < 500:
        era = eras[groups % len(eras)]
        library = library_of(era)

        for case in chain(
            random, strategy, partial(decided, library=library), steps=8,
            racks=random.random() < 0.4, tidy=random.random() < 0.5,
            large=random.random() < 0.05, kafka_python=era.library == "kafka-python",
        ):  # fmt: skip
            groups += 1
            explain_and_audit(write_client_line(strategy, case.group, library, case.racks), seen)
        groups += 1
    assert seen["told"] > 250, seen
    kinds = {"generations", "not_believed", "shares", "kept", "given_up", "given", "moved"}
    assert kinds <= set(seen), seen
    assert strategy == "sticky" or "held_back" in seen


def test_the_brokers_assignors_tell_what_they_do() -> None:
    random = Random("explain brokers")
    seen: Counter[str] = Counter()
    groups = 0
    while groups < 400:
        strategy = random.choice(("server-uniform", "server-uniform", "server-range"))
        release = random.choice(("3.8.0", "3.9.0", "4.0.0", "4.0.1"))
        group = random_server_group(random)
        for _ in range(6):
            groups += 1
            line = write_server_line(strategy, group, release)
            explain_and_audit(line, seen)
            answer = assign_line(json.loads(json.dumps(line))).get("assignment")
            if answer is None:
                break
            targets: dict[str, dict[str, list[int]]] = {member: {} for member in answer}
            for member, pairs in answer.items():
                for topic_id, partition in pairs:
                    targets[member].setdefault(topic_id, []).append(partition)
            group = next_epoch(random, group, {m: tuple(topics.items()) for m, topics in targets.items()})
    assert seen["told"] > 250, seen
    assert {"order", "blocks", "shares", "kept", "given_up", "given", "moved", "result"} <= set(seen), seen


def test_rocketmqs_strategies_tell_what_they_do() -> None:
    random = Random("explain rocketmq")
    seen: Counter[str] = Counter()
    for _ in range(300):
        brokers = random.sample(("A-b1", "A-b2", "B-b1", "C-b1", "r1@b", "r2@b", "日本-b"), random.randint(1, 4))
        clients = random.sample(("A-c1", "A-c2", "B-c1", "10.0.0.9@1", "10.0.0.10@1", "D-c1"), random.randint(1, 5))
        rooms = any("@" in one for one in (*brokers, *clients))
        strategy = random.choice(
            ("AVG", "AVG_BY_CIRCLE", "CONFIG", "MACHINE_ROOM", "CONSISTENT_HASH")
            + (() if rooms else ("MACHINE_ROOM_NEARBY-AVG", "MACHINE_ROOM_NEARBY-CONSISTENT_HASH"))
        )
        queues = [
            {"topic": topic, "broker": broker, "queue": number}
            for topic in ("TopicA", "TopicB")[: random.randint(1, 2)]
            for broker in brokers
            for number in range(random.choice((1, 2, 4, 16)))
        ]
        random.shuffle(queues)
        line = {
            "strategy": f"rocketmq:{strategy}",
            "queues": queues,
            "clients": clients,
            "options": {"room_separator": "-", "consumeridcs": ["r1"], "message_queue_list": queues[:3]},
        }
        explained = explain_and_audit(line, Counter())
        assert explained is not None, line
        assert explained.assignment is not None
        answer = assign_line(line)["assignment"]
        for client, mine in answer.items():
            shown = explained.assignment[client]
            assert sum(map(len, shown.values())) == len(mine)
            assert all(one["queue"] in shown[f"{one['topic']} on {one['broker']}"] for one in mine)
        seen[strategy] += 1
    assert len(seen) == 7, seen
