"""Real streams groups (KIP-1071) of Kafka Streams applications with state, compared with Kafka's own tool.

`RECORDS=folder` keeps the records of the long test's group (recorded.py).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.real_groups.followed import Followed, until
from tests.real_groups.party import make_topics, produce
from tests.real_groups.real_log import record_group
from tests.real_groups.real_streams import Machine, configure_group, describe_streams_group

pytestmark = [pytest.mark.kafka, pytest.mark.turn(2)]

DECISIONS = 300
PARTITIONS = 5


class App:
    """One application on two machines, and what the core says of its group."""

    def __init__(self, bootstrap: str, unique: str, first: Machine, second: Machine, followed: Followed) -> None:
        self.bootstrap, self.group, self.topic = bootstrap, f"{unique}-app", unique
        self.first, self.second, self.followed = first, second, followed

    def rests(self, members: int) -> bool:
        """Whether the group has these members, and all of them have their target and have read everything."""
        if f"g:{self.group}" not in self.followed.rows:
            return False
        health = self.followed.health(self.group)
        settled = health.state == "Stable" and not health.findings and health.members == members
        return settled and health.lag_total == 0 and health.lag_unknown == 0

    def rest(self, members: int) -> None:
        """Make rounds until it rests; then every figure is what the tool shows."""
        self.followed.round_until(lambda: self.rests(members))
        told = describe_streams_group(self.bootstrap, self.group)
        self.followed.round()
        health, lag = self.followed.health(self.group), self.followed.lag(self.group)
        assert (health.group_type, health.state, health.generation) == ("streams", told.state, told.target_epoch)
        assert told.epoch == told.target_epoch
        shown = {}
        for name, row in self.followed.members(self.group).items():
            tasks: dict[str, dict[str, set[int]]] = {}
            for of in row.tasks or ():
                tasks.setdefault(of.kind, {})[of.subtopology] = set(of.tasks)
            shown[name] = row.client_id, tasks
        assert shown == {name: (of.client_id, of.target) for name, of in told.members.items()}
        assert all(of.current == of.target for of in told.members.values())
        assert {at: (row.committed_offset, row.high_watermark, row.lag) for at, row in lag.items()} == told.offsets
        owned = {(row.subtopology, row.partition): row.member_id for row in lag.values()}
        assert owned == {
            (part, number): name
            for name, of in told.members.items()
            for part, numbers in of.current.get("active", {}).items()
            for number in numbers
        }

    def verdicts(self) -> list[tuple[str, str | None]]:
        drift = self.followed.drift(self.group)
        churn = [row for row in self.followed.churn(self.group) if row.kind == "rebalance"]
        return [(drift[row.decision].verdict, drift[row.decision].reason) for row in churn if row.decision in drift]


@contextmanager
def application(bootstrap: str, unique: str, folder: Path) -> Iterator[App]:
    with ExitStack() as stack:
        machines = [folder / "first", folder / "second"]
        first, second = (stack.enter_context(Machine(bootstrap, f"{unique}-app", one)) for one in machines)
        yield App(bootstrap, unique, first, second, stack.enter_context(Followed(bootstrap, unique)))


@pytest.mark.nightly
def test_an_application_scaled_rolled_and_killed_is_as_the_broker_says(
    bootstrap: str, unique: str, tmp_path: Path
) -> None:
    make_topics(bootstrap, {unique: 4})
    produce(bootstrap, {unique: 4})
    with application(bootstrap, unique, tmp_path) as app:
        configure_group(bootstrap, app.group, streams_num_standby_replicas="1", streams_session_timeout_ms="6000")
        one = app.first.run(unique)
        app.rest(1)
        app.second.run(unique)
        app.rest(2)
        produce(bootstrap, {unique: 4})
        app.first.run(unique, threads=2)
        app.rest(4)
        app.first.stop(one)
        assert app.first.closed(one).wait(60)
        app.first.run(unique)
        app.rest(4)
        app.second.kill()
        app.rest(3)
        configure_group(bootstrap, app.group, streams_num_standby_replicas="0")
        app.followed.round_until(lambda: len(app.verdicts()) >= 7)
        app.rest(3)
        assert set(app.verdicts()) == {("identical", None)}
        churn = app.followed.churn(app.group)
        assert churn[0].joined is not None
        assert [c.evidence for c in churn[-1].causes or ()] == ["num.standby.replicas was 1 and is 0"]
        assert {row.partitions for row in churn if row.members} == {8}


@pytest.mark.nightly
def test_a_topology_whose_topics_are_wrong_or_gone_is_told(bootstrap: str, unique: str, tmp_path: Path) -> None:
    make_topics(bootstrap, {unique: 2})
    produce(bootstrap, {unique: 2})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with application(bootstrap, unique, tmp_path) as app:
        app.first.run(unique)
        app.rest(1)

        def details() -> dict[str, str]:
            return {one.finding: one.detail for one in app.followed.health(app.group).findings}

        admin.create_partitions([NewPartitions(unique, 4)])[unique].result(30)
        app.followed.round_until(lambda: "wrong_partition_counts" in details())
        assert f"{app.group}-store-repartition (needs 4, has 2)" in details()["wrong_partition_counts"]
        assert describe_streams_group(bootstrap, app.group).state == app.followed.health(app.group).state == "NotReady"
        admin.delete_topics([unique])[unique].result(30)
        app.followed.round_until(lambda: "missing_topics" in details())
        assert details()["missing_topics"] == f"the topology needs topics that do not exist: {unique} (source)"
        assert "drifted" not in {verdict for verdict, _ in app.verdicts()}


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_no_decision_under_churn_is_called_drifted(bootstrap: str, unique: str, tmp_path: Path) -> None:
    chance = Random(unique)
    make_topics(bootstrap, {unique: PARTITIONS})
    produce(bootstrap, {unique: PARTITIONS})
    with application(bootstrap, unique, tmp_path) as app:
        configure_group(bootstrap, app.group, streams_num_standby_replicas="1")
        running: list[tuple[Machine, str]] = []

        def decisions() -> int:
            if f"g:{app.group}" not in app.followed.rows:
                return 0
            return len(app.followed.churn(app.group))

        while decisions() < DECISIONS:
            before = decisions()
            if running and chance.random() < 0.1 + 0.15 * len(running):
                machine, name = running.pop(chance.randrange(len(running)))
                machine.stop(name)
            else:
                machine = chance.choice((app.first, app.second))
                running.append((machine, machine.run(unique, threads=chance.randint(1, 3))))
            app.followed.round()
            until(lambda made=before: decisions() > made, app.followed.round)  # type: ignore[misc]
        if not running:
            app.first.run(unique)
        app.followed.round_until(lambda: app.followed.health(app.group).state == "Stable")
        if folder := os.environ.get("RECORDS"):
            topics = (unique, f"{app.group}-store-repartition", f"{app.group}-store-changelog")
            path = Path(folder) / "streams-sticky.jsonl"
            record_group(bootstrap, app.group, dict.fromkeys(topics, PARTITIONS), path)
        counted = Counter(app.verdicts())
        assert "drifted" not in {verdict for verdict, _ in counted}
        assert counted["identical", None] >= 0.9 * counted.total(), counted
