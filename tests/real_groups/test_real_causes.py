"""Causes in the rows of real groups against causes that this test made: none wrong, and hardly any unknown.

Several groups of one library and protocol take the same steps at the same time; each step makes one cause. The counts
of what the rows name for each are the confusion matrix of docs/causes.md.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from streaming.demo.broker import EmbeddedBroker
from streaming.probe import RoundAbandonedError
from tests.conftest import Tell
from tests.oracle.members_process import MembersProcess
from tests.real_groups.followed import Followed, until
from tests.real_groups.party import make_topics
from tests.real_groups.real_log import offsets_log
from tests.real_groups.real_members import LIBRARIES, LibrdkafkaMembers

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(0), pytest.mark.turn(0)]

CYCLES = int(os.environ.get("CYCLES", "5"))
GROUPS = int(os.environ.get("CAUSE_GROUPS", "8"))
"""Groups that take the steps at the same time: 5 cycles of 8 groups make 40 of each cause."""

_SESSION_MS = 20_000
_RESTS_S = 1.5
"""A group rests when it has not decided for this long; members learn of a rebalance within 300 ms."""


_JAVA = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


@dataclass
class RealGroup:
    """One group.

    Attributes:
        name: Its id.
        topics: Its topics, both subscribed.
        members: Names of its members in `process`, by what they are to the steps.
        partitions: Partition count of its first topic.
        size: Number of members that it should have.
        told: Number of decisions that the steps so far have accounted for.
    """

    name: str
    topics: tuple[str, str]
    members: dict[str, str] = field(default_factory=dict)
    partitions: int = 4
    size: int = 0
    told: int = 0


@dataclass
class Steps:
    """What the groups of one library and protocol do, and what the rows say of it."""

    library: str
    protocol: str
    strategy: str
    bootstrap: str
    followed: Followed
    process: MembersProcess
    groups: list[RealGroup]
    matrix: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def start(self, group: RealGroup, role: str, process: MembersProcess, **settings: str) -> None:
        protocol = settings.pop("protocol", self.protocol)
        config = {"bootstrap.servers": self.bootstrap, "group.id": group.name, "group.protocol": protocol}
        refresh = "topic.metadata.refresh.interval.ms" if self.library == "librdkafka" else "metadata.max.age.ms"
        config |= {refresh: "1000", "enable.auto.commit": "false"}
        if protocol == "classic":
            config |= {"session.timeout.ms": str(_SESSION_MS), "heartbeat.interval.ms": "300"}
            strategies = settings.pop("strategies", self.strategy).split(",")
            if self.library == "java":
                strategies = ["org.apache.kafka.clients.consumer." + _JAVA[strategy] for strategy in strategies]
            config["partition.assignment.strategy"] = ",".join(strategies)
        if self.library == "librdkafka":
            config["log_level"] = "0"
        config |= {name.replace("_", "."): value for name, value in settings.items()}
        group.members[role] = process.start(group.topics, config)
        group.size += 1

    def stop(self, group: RealGroup, role: str) -> None:
        self.process.stop(group.members.pop(role))
        group.size -= 1

    def do(self, made: str, step: Callable[[RealGroup], None], want: set[str], *also: str) -> None:
        """Take a step in all groups, and compare what the rows say.

        Args:
            made: Name of the step in the matrix.
            step: What to do in one group.
            want: Causes that have to be told of the decisions that follow.
            also: Causes that may be told, because members may rejoin a second time.
        """
        for group in self.groups:
            step(group)
        self.settle()
        for group in self.groups:
            rows = self.followed.churn(group.name)
            said = [{found.cause for found in row.causes or ()} for row in rows[group.told :]]
            group.told = len(rows)
            self.matrix[made, "; ".join("+".join(sorted(words)) for words in said)] += 1
            told = set().union(*said)
            if not want <= told <= want | set(also):
                self.wrong.append(f"{group.name}, {made}: {[row.causes for row in rows[-len(said) :]]}")

    def settle(self) -> None:
        """Wait until each group has decided, has all its members, and rests."""
        before = {group.name: group.told for group in self.groups}
        newest: dict[str, tuple[int, float]] = {}

        def rest(group: RealGroup) -> bool:
            rows = self.followed.churn(group.name)
            now = time.monotonic()
            if group.name not in newest or newest[group.name][0] != len(rows):
                newest[group.name] = len(rows), now
            return (
                len(rows) > before[group.name]
                and rows[-1].members == group.size
                and not rows[-1].partitions_pending_handover
                and now - newest[group.name][1] >= _RESTS_S
            )

        def all_rest() -> bool:
            resting = [rest(group) for group in self.groups]
            return all(resting)

        self.followed.round_until(all_rest)


def cycle(steps: Steps, admin: AdminClient) -> None:
    """One of each cause in each group, which is afterwards as before."""
    classic = steps.protocol == "classic"
    left, again = ("member_left", "rejoined") if classic else ("member_gone", "unknown")
    steps.do("join", lambda g: steps.start(g, "new", steps.process), {"member_joined"}, again)
    steps.do("leave", lambda g: steps.stop(g, "new"), {left}, again)
    if classic:
        asks = {"strategies": "roundrobin"}
        other = "strategy_changed"
        steps.do(
            "join, strategy", lambda g: steps.start(g, "new", steps.process, **asks), {"member_joined", other}, again
        )
        steps.do("leave, strategy", lambda g: steps.stop(g, "new"), {left, other}, again)

    def subscribe(group: RealGroup, topics: Sequence[str]) -> None:
        steps.process.subscribe(group.members["dynamic"], topics)

    # A Java leader that gives up a topic may forget its partitions before it assigns for those who still read it: it
    # assigns without them, and again (seen with ten busy processes on two cores, not on a free machine).
    forgets = ["partitions_changed"] if steps.library == "java" and classic else []
    steps.do("topic removed", lambda g: subscribe(g, g.topics[:1]), {"subscription_changed"}, again, *forgets)
    steps.do("topic added", lambda g: subscribe(g, g.topics), {"subscription_changed"}, again)

    def grow(group: RealGroup) -> None:
        group.partitions += 1
        for done in admin.create_partitions([NewPartitions(group.topics[0], group.partitions)]).values():
            done.result()

    steps.do("partition added", grow, {"partitions_changed"}, again)
    if classic:
        steps.do("static member returns", lambda g: restart(steps, g), {"static_replacement"}, again)
    with LIBRARIES[steps.library]() as doomed:
        steps.do("join", lambda g: steps.start(g, "doomed", doomed), {"member_joined"}, again)
    for group in steps.groups:
        group.size -= 1
    steps.do("crash", lambda _: None, {"member_gone"}, again)


def restart(steps: Steps, group: RealGroup) -> None:
    """A static member stops, and comes back within its session under another id."""
    name = group.members["static"]
    steps.stop(group, "static")
    until(steps.process.closed(name).is_set)
    steps.start(group, "static", steps.process, group_instance_id="i")


def handovers(steps: Steps) -> None:
    """A member joins a cooperative group, which takes two rebalances, and leaves."""
    steps.do("join, cooperative", lambda g: steps.start(g, "new", steps.process), {"member_joined", "handover"})
    steps.do("leave, cooperative", lambda g: steps.stop(g, "new"), {"member_left"}, "rejoined")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    quick = {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.min.session.timeout.ms": "3000",
        "group.consumer.session.timeout.ms": "6000",
        "group.consumer.min.heartbeat.interval.ms": "300",
        "group.consumer.heartbeat.interval.ms": "300",
    }
    with EmbeddedBroker(tmp_path_factory.mktemp("causes"), overrides=quick) as running:
        with offsets_log(running.bootstrap):
            pass  # There is no round before the log exists.
        yield running


Began = Callable[..., AbstractContextManager[Steps]]


@pytest.fixture
def begun(broker: EmbeddedBroker, unique: str) -> Began:
    """Begins groups with a dynamic member each, and a static one if wanted, and lets them rest."""

    @contextmanager
    def begin(library: str, protocol: str, strategy: str, what: str, *, static: bool = False) -> Iterator[Steps]:
        prefix = f"{library}-{what}-{unique[-6:]}"
        names = [f"{prefix}-{number}" for number in range(GROUPS)]
        groups = [RealGroup(name, (f"{name}-x", f"{name}-y")) for name in names]
        make_topics(broker.bootstrap, {topic: 4 for group in groups for topic in group.topics})
        with Followed(broker.bootstrap, prefix) as followed, LIBRARIES[library]() as process:
            steps = Steps(library, protocol, strategy, broker.bootstrap, followed, process, groups)
            for group in groups:
                steps.start(group, "dynamic", process)
                if static:
                    steps.start(group, "static", process, group_instance_id="i")
            steps.settle()
            for group in groups:
                group.told = len(followed.churn(group.name))
            yield steps

    return begin


def told_in(steps: Steps) -> list[str]:
    """Lines of the table in docs/causes.md."""
    who = f"{steps.library}, {steps.protocol}, {steps.strategy}"
    return [f"| {who} | {made} | {said or '-'} | {count} |" for (made, said), count in sorted(steps.matrix.items())]


@pytest.mark.parametrize(
    ("library", "protocol"),
    [
        ("java", "classic"),
        ("librdkafka", "classic"),
        ("kafka-python", "classic"),
        ("java", "consumer"),
        ("librdkafka", "consumer"),
    ],
)
def test_what_is_told_of_real_groups_is_what_was_made(library: str, protocol: str, begun: Began, tell: Tell) -> None:
    with begun(library, protocol, "range,roundrobin", protocol, static=True) as steps:
        admin = AdminClient({"bootstrap.servers": steps.bootstrap})
        for _ in range(CYCLES):
            cycle(steps, admin)
    tell(*told_in(steps), *steps.wrong, *steps.process.failures)
    assert steps.wrong == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_second_half_of_a_real_cooperative_rebalance_is_told_as_a_handover(
    library: str, begun: Began, tell: Tell
) -> None:
    with begun(library, "classic", "cooperative-sticky", "cooperative") as steps:
        for _ in range(CYCLES):
            handovers(steps)
    rows = [row for group in steps.groups for row in steps.followed.churn(group.name)]
    protocols = Counter(row.rebalance_protocol for row in rows if row.kind == "rebalance")
    tell(*told_in(steps), *steps.wrong, protocols)
    assert steps.wrong == []


def test_an_upgrade_and_a_downgrade_of_real_groups_are_told_as_migrations(begun: Began, tell: Tell) -> None:
    joins, leaves = {"migration", "member_joined"}, {"migration", "member_gone"}
    with begun("java", "classic", "range", "migrating") as steps:
        for _ in range(CYCLES):
            steps.do("upgrade", lambda g: steps.start(g, "new", steps.process, protocol="consumer"), joins, "unknown")
            steps.do("downgrade", lambda g: steps.stop(g, "new"), leaves, "rejoined", "handover")
    tell(*told_in(steps), *steps.wrong)
    assert steps.wrong == []


def test_a_coordinator_that_was_elected_anew_is_told_beside_the_cause(tmp_path: Path, unique: str) -> None:
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(tmp_path / "broker"))
        with offsets_log(broker.bootstrap):
            pass
        make_topics(broker.bootstrap, {f"{unique}-x": 4, f"{unique}-y": 4})
        process = stack.enter_context(LibrdkafkaMembers())
        group = RealGroup(unique, (f"{unique}-x", f"{unique}-y"))
        followed = stack.enter_context(Followed(broker.bootstrap, unique))
        steps = Steps("librdkafka", "classic", "range", broker.bootstrap, followed, process, [group])
        steps.start(group, "dynamic", process)
        steps.settle()
        group.told = len(followed.churn(unique))
        broker.restart()

        def answers() -> bool:
            try:
                followed.round()
            except RoundAbandonedError:
                return False
            return True

        until(answers)
        steps.do("join", lambda g: steps.start(g, "new", process), {"member_joined", "coordinator_moved"}, "rejoined")
        steps.do("leave", lambda g: steps.stop(g, "new"), {"member_left"}, "rejoined")
    assert steps.wrong == []
