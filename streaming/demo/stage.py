"""The stage that the demo's stories play on: the clock, the topics, the flow of records, the members, the scenes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaException, Producer
from kafka import KafkaAdminClient
from kafka.admin import NewPartitions, NewTopic
from kafka.errors import TopicAlreadyExistsError

from streaming.demo.evidence import Expectation
from streaming.demo.journal import CommitLedger, Journal

QUIET_LIBRDKAFKA = 2
"""`log_level` for librdkafka: critical only. It prints to standard error, where the demo's live table is shown."""

_TICK_S = 0.25
"""Interval between bursts of records: short enough for 1 record/s, long enough to cost nothing."""

_FLUSH_S = 3.0
"""Interval between flushes of the ledger to the journal."""

_CALM_S = 8.0
"""A member that could not leave in time expires after 6 s, and until then its partitions have no owner: only a
longer quiet period counts. (Members hear of a rebalance within 3 s, with their next heartbeat.)"""

_PATIENCE_S = 60.0
"""Limit for members to consume the rest, or to leave; normally they take 2 s."""


class StageOverError(Exception):
    """Raised inside a story when the demo goes quiet or ends: the story stops at that point."""


class ClientMember(Protocol):
    """A group member with a real client, running in its own threads or processes."""

    @property
    def settled(self) -> bool:
        """Whether it has consumed everything and made its last commit since the stage went quiet."""

    def leave(self) -> None:
        """Close the client as a well-behaved application does, and wait for it. May be called twice."""


Player = Callable[["Stage"], ClientMember]
"""Starts a member."""

Act = tuple[Any, ...]
"""Something that happens in a story: a function, and what it is called with behind the cast."""

Scene = tuple[float, *tuple[Act, ...]]
"""A second of the demo's clock, and what happens then."""


@dataclass(frozen=True, slots=True)
class Story:
    """One story of the demo: who plays, when, and what the tables must say.

    Attributes:
        number: Its number in the demo's list.
        title: What it shows, in a few words.
        groups: Names of all groups that it ever has.
        topics: Partitions by topic, created before any story starts; stories may share topics.
        players: How each of its members starts, by the name that scenes use.
        scenes: What happens, in order.
        checks: What the tables must say.
        alerts: The states that are notified, in order, by rule, for the group that an alert names; None for those of
            the cluster. Any other alert is an error.
        rates: Records per second by topic, from the start until the stage goes quiet.
        again: Scenes that repeat, with the seconds since the last one of `scenes` (a demo without an end stays alive).
        again_s: Length of each repetition.
        at_end: What must happen however the story ends.
    """

    number: int
    title: str
    groups: tuple[str, ...]
    topics: Mapping[str, int]
    players: Mapping[str, Player]
    scenes: tuple[Scene, ...]
    checks: tuple[Expectation, ...]
    alerts: Mapping[tuple[str, str | None], tuple[str, ...]] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    again: tuple[Scene, ...] = ()
    again_s: float = 0.0
    at_end: tuple[Act, ...] = ()


class Cast:
    """A story while it plays: its members by name, those that have joined. For the story's own thread alone."""

    def __init__(self, story: Story, stage: Stage) -> None:
        self.story, self.stage = story, stage
        self.members: dict[str, Any] = {}

    def play(self) -> None:
        """Play all scenes; raises StageOverError when the stage goes quiet meanwhile."""
        try:
            begin = self._scenes(self.story.scenes, 0.0)
            while self.story.again:
                self._scenes(self.story.again, begin)
                begin += self.story.again_s
        finally:
            self._act(self.story.at_end)

    def join(self, *names: str) -> None:
        """Start members."""
        for name in names:
            self.members[name] = self.story.players[name](self.stage)
            self.stage.enter(self.members[name])
        self.step(f"joined: {', '.join(names)}")

    def leave(self, *names: str) -> None:
        """Let members leave at the same time."""
        self.stage.exit(*(self.members[name] for name in names))
        self.step(f"left: {', '.join(names)}")

    def step(self, did: str, **where: object) -> None:
        """Write a step to the journal."""
        self.stage.journal.write("step", story=self.story.number, did=did, second=round(self.stage.elapsed, 1), **where)

    def _act(self, acts: Iterable[Act]) -> None:
        for function, *given in acts:
            function(self, *given)

    def _scenes(self, scenes: tuple[Scene, ...], begin: float) -> float:
        """Play scenes; returns the second of the last one."""
        for second, *acts in scenes:
            self.stage.until(begin + second)
            self._act(acts)
        return begin + scenes[-1][0]


class Stage:
    """The running demo, as a story sees it. All methods may be called from any thread."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        """Connect.

        Args:
            bootstrap: `HOST:PORT` of the cluster.
            folder: Folder of the journal (`journal.jsonl`) and of the logs of member processes.

        Raises:
            kafka.errors.KafkaError: The cluster does not answer.
        """
        self.bootstrap = bootstrap
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(folder / "journal.jsonl")
        self.ledger = CommitLedger(self.journal)
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap, client_id="demo-stage")
        self.quiet = threading.Event()
        """The stage goes quiet: stories stop, no record is produced."""
        self.drained = threading.Event()
        """Set after the last record was produced: members consume the rest, commit once more, and are settled."""
        self.failures: list[str] = []
        """One sentence for each story that ended with an error, and for each member whose thread did."""
        self.groups: list[str] = []
        """All groups of the stories that play."""
        self._partitions: dict[str, int] = {}
        self._rates: dict[str, float] = {}
        self._members: list[ClientMember] = []
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._began = time.monotonic()
        self._latest_s = 0.0

    # the clock

    @property
    def elapsed(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._began

    def sleep(self, seconds: float) -> None:
        """Wait; raises StageOverError when the stage goes quiet meanwhile."""
        if self.quiet.wait(max(0.0, seconds)):
            raise StageOverError

    def until(self, second: float) -> None:
        """Wait until this second of the demo's clock; raises StageOverError when the stage goes quiet meanwhile."""
        self.sleep(second - self.elapsed)

    # members

    def enter(self, *members: ClientMember) -> None:
        """Register members, so that they leave at the end."""
        with self._lock:
            self._members.extend(members)

    def exit(self, *members: ClientMember) -> None:
        """Let members leave their groups at the same time, and wait until they have."""
        leaving = [threading.Thread(target=member.leave, daemon=True) for member in members]
        for thread in leaving:
            thread.start()
        for thread in leaving:
            thread.join(_PATIENCE_S)
        with self._lock:
            self._members = [member for member in self._members if member not in members]

    # topics and the flow of records

    def create_topics(self, partitions: Mapping[str, int]) -> None:
        """Create the topics that do not exist yet."""
        for topic, wanted in partitions.items():
            count = wanted
            try:
                self.admin.create_topics([NewTopic(topic, wanted, 1)])
            except TopicAlreadyExistsError:
                # The topic exists from an earlier run on this cluster or from another story, and may have grown since.
                count = len(self.admin.describe_topics([topic])[0]["partitions"]) or wanted
            with self._lock:
                self._partitions[topic] = max(count, self._partitions.get(topic, 0))

    def grow_topic(self, topic: str, count: int) -> None:
        """Give a topic more partitions; records flow into them at once."""
        self.admin.create_partitions({topic: NewPartitions(count)})
        with self._lock:
            self._partitions[topic] = count

    def delete_topic(self, topic: str) -> None:
        """Stop the flow into a topic and delete it."""
        with self._lock:
            self._rates.pop(topic, None)
        self.admin.delete_topics([topic])

    def partitions_of(self, topic: str) -> int:
        """Return the partition count that this stage has set."""
        with self._lock:
            return self._partitions[topic]

    def let_flow(self, rates: Mapping[str, float]) -> None:
        """Add records per second by topic; the rates of several stories for one topic add up."""
        with self._lock:
            for topic, rate in rates.items():
                self._rates[topic] = self._rates.get(topic, 0.0) + rate

    # the play

    def play(self, stories: tuple[Story, ...]) -> None:
        """Start every story, each in its own thread."""
        for story in stories:
            self.create_topics(story.topics)
            self.let_flow(story.rates)
            self.groups.extend(story.groups)
        self._began = time.monotonic()
        self._start(0, "the flow of records", self._flow)
        self._start(0, "the ledger of commits", self._keep_ledger)
        for story in stories:
            self._start(story.number, story.title, Cast(story, self).play)

    def thread_died(self, died: threading.ExceptHookArgs) -> None:
        """For `threading.excepthook`: without it a member whose client fails would only be missing from its group."""
        name = died.thread.name if died.thread else "without a name"
        self._failed(0, f"The thread {name} died: {died.exc_value!r}", repr(died.exc_value))

    def go_quiet(self) -> None:
        """Stop stories and records; members consume the rest, commit once more, and stay in their groups.

        Returns when there will be no more commits.
        """
        self.quiet.set()
        for thread in self._threads:
            thread.join(_PATIENCE_S)
        self.drained.set()
        deadline = time.monotonic() + _PATIENCE_S
        settled_since: float | None = None
        while (now := time.monotonic()) < deadline and (settled_since is None or now < settled_since + _CALM_S):
            time.sleep(_TICK_S)
            calm = all(member.settled for member in self._on_stage())
            settled_since = (settled_since or time.monotonic()) if calm else None
        self.ledger.flush()
        unsettled = sum(not member.settled for member in self._on_stage())
        self.journal.write("quiet", unsettled=unsettled, late_s=round(self._latest_s, 1))

    def close(self) -> None:
        """Let every member leave, and end. Without `go_quiet` before, records not yet consumed stay so."""
        self.quiet.set()
        for thread in self._threads:
            thread.join(_PATIENCE_S)
        self.exit(*self._on_stage())
        self.ledger.flush()
        self.journal.write("end")
        self.admin.close()
        self.journal.close()

    def _on_stage(self) -> list[ClientMember]:
        with self._lock:
            return list(self._members)

    def _start(self, number: int, title: str, act: Callable[[], None]) -> None:
        def run() -> None:
            try:
                act()
            except StageOverError:
                pass
            except Exception as error:  # noqa: BLE001 - one failure must not end the others; it is reported at the end
                self._failed(number, f"Story {number} ({title}) failed: {error!r}", repr(error))

        thread = threading.Thread(target=run, daemon=True, name=title)
        self._threads.append(thread)
        thread.start()

    def _failed(self, story: int, sentence: str, error: str) -> None:
        self.failures.append(sentence)
        self.journal.write("failed", story=story, error=error)

    def _flow(self) -> None:
        settings = {"client.id": "demo-flow", "linger.ms": 50, "topic.metadata.refresh.interval.ms": 2_000}
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": QUIET_LIBRDKAFKA, **settings})
        due: dict[str, float] = {}
        sent: dict[str, int] = {}
        ticked = time.monotonic()
        while not self.quiet.wait(_TICK_S):
            before, ticked = ticked, time.monotonic()
            self._latest_s = max(self._latest_s, ticked - before - _TICK_S)
            with self._lock:
                rates, counts = dict(self._rates), dict(self._partitions)
            for topic, rate in rates.items():
                due[topic] = due.get(topic, 0.0) + rate * _TICK_S
                while due[topic] >= 1:
                    due[topic] -= 1
                    number = sent[topic] = sent.get(topic, -1) + 1
                    value = b'{"n": %d}' % number
                    try:
                        producer.produce(topic, value, partition=number % counts[topic])
                    except KafkaException:
                        # The producer does not know this new partition yet: let it choose one that it knows.
                        producer.produce(topic, value)
            producer.poll(0)
        producer.flush(_PATIENCE_S)

    def _keep_ledger(self) -> None:
        while not self.quiet.wait(_FLUSH_S):
            self.ledger.flush()
