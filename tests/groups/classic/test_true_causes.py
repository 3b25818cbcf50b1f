"""No cause is claimed that did not happen: random histories, made by a coordinator that keeps Kafka's timers.

The coordinator knows who left, whose session expired and what leaders knew; the core gets its records and the rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from streaming.groups.rows import Cause
from streaming.records import GroupInput, GroupObservation, Member, MembershipRecord
from tests.examples import examples
from tests.groups.build import START, Life, make_commit, make_member, make_observation, make_record, make_topic

SESSION_MS = (6_000, 10_000, 45_000)
REBALANCE_MS = (20_000, 300_000)
TOPICS = ("x", "y")
STRATEGIES = ("range", "roundrobin", "sticky")


@dataclass(frozen=True)
class Consumer:
    topics: tuple[str, ...]
    session: int
    rebalance: int
    instance: str | None = None


@dataclass
class Between:
    """What happened between two decisions. Members have the ids that the first of the two knew.

    Attributes:
        first_ids: For each member that came back under another id, its id at the first decision.
    """

    first_ids: dict[str, str] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    expired: set[str] = field(default_factory=set)
    quiet: dict[str, int] = field(default_factory=dict)
    """For each member that is gone, the time from its last commit or decision until it was gone, ms."""
    replaced: set[str] = field(default_factory=set)
    resubscribed: set[str] = field(default_factory=set)


@dataclass
class History:
    """One classic group and its topics. Times are ms; the log offset grows by one per record or round."""

    now: int = 0
    offset: int = 0
    generation: int = 0
    strategy: str = "range"
    names: int = 0
    members: dict[str, Consumer] = field(default_factory=dict)
    settled: int = 0
    began: int | None = None
    """When the present join phase began; None if it is over."""
    synced: bool = True
    """Whether the leader has synced since the last join phase."""
    signs: dict[str, int] = field(default_factory=dict)
    """When each member last joined or committed: its session began again."""
    works: dict[str, int] = field(default_factory=dict)
    """When each member last got an assignment or committed."""
    owned: dict[str, Member] = field(default_factory=dict)
    """The members of the newest decision."""
    clock: int = 0
    """What the coordinator's clock is ahead by."""
    read_late: int | None = None
    """Index of a round that has read its log position, but not yet the group's state."""
    counts: dict[str, int] = field(default_factory=lambda: {"x": 2, "y": 3})
    known: dict[str, int] = field(default_factory=lambda: {"x": 2, "y": 3})
    """What leaders know: it follows `counts` when they refresh their metadata."""
    between: Between = field(default_factory=Between)
    told: list[tuple[int, Between, dict[str, int]]] = field(default_factory=list)
    """Per decision its offset, what happened before it, and what its leader knew."""
    inputs: list[GroupInput] = field(default_factory=list)

    def next(self) -> int:
        self.offset += 1
        return self.offset

    def rebalance(self) -> None:
        if self.began is None:
            self.began = self.now

    def commit(self, name: str) -> None:
        """A member of the newest generation commits; also while a rebalance waits for it. That prolongs its session."""
        for topic, partitions in self.owned[name].assigned or ():
            at = START + self.now + self.clock
            self.inputs.append(make_commit(self.next(), self.offset, topic=topic, partition=partitions[0], time=at))
            self.signs[name] = self.works[name] = self.now

    def join(self, consumer: Consumer) -> None:
        self.rebalance()
        self.names += 1
        self.members[f"m{self.names}"] = consumer
        self.between.joined.add(f"m{self.names}")

    def leave(self, name: str) -> None:
        self.rebalance()
        del self.members[name]
        self._gone(name, self.between.left)

    def expire(self, name: str, *, joining: bool) -> None:
        """Its session ends without a heartbeat, or a join phase ends without it; neither sooner than its timeout."""
        consumer = self.members[name]
        if joining:
            self.rebalance()
            assert self.began is not None
            self.now = max(self.now, self.began + max(other.rebalance for other in self.members.values()))
        else:
            self.now = max(self.now, self.signs.get(name, 0) + consumer.session)
            self.rebalance()
        del self.members[name]
        self._gone(name, self.between.expired)

    def _gone(self, name: str, how: set[str]) -> None:
        self.between.replaced.discard(name)
        first = self.between.first_ids.pop(name, name)
        self.between.quiet[first] = self.now - self.works.get(name, 0)
        self.owned.pop(name, None)
        self.between.resubscribed.discard(first)
        if name in self.between.joined:
            self.between.joined.remove(name)  # no decision has seen it
        else:
            how.add(first)

    def replace(self, name: str) -> None:
        consumer = self.members.pop(name)
        self.names += 1
        new = f"m{self.names}"
        self.members[new] = consumer
        self.rebalance()
        self.signs[new] = self.signs.get(name, 0)
        self.works[new] = self.works.get(name, 0)
        self.owned.pop(name, None)
        if name in self.between.joined:
            self.between.joined.remove(name)
            self.between.joined.add(new)
        else:
            self.between.replaced.discard(name)
            self.between.replaced.add(new)
            self.between.first_ids[new] = self.between.first_ids.pop(name, name)

    def decide(self, *, synced: bool) -> None:
        """Complete a join phase; without a sync of the leader, there is no record."""
        self.generation += 1
        self.settled = self.now
        self.began = None
        self.signs |= dict.fromkeys(self.members, self.now)
        self.owned = {}
        self.synced = synced
        if not synced and self.members:
            return
        at = self.next()
        members = self._assigned()
        self.owned = {member.member_id: member for member in members}
        self.works |= dict.fromkeys(self.owned, self.now)
        settled = START + self.now + self.clock
        self.inputs.append(
            make_record(
                at,
                members,
                generation=self.generation,
                protocol=self.strategy,
                time=settled + 40,
                state_time=settled,
            )
        )
        self.told.append((at, self.between, dict(self.known)))
        self.between = Between()
        self.now += 40

    def _assigned(self) -> tuple[Member, ...]:
        made = []
        for name, consumer in self.members.items():
            assigned = {}
            for topic in consumer.topics:
                readers = [n for n, c in self.members.items() if topic in c.topics]
                mine = range(readers.index(name), self.known[topic], len(readers))
                if mine:
                    assigned[topic] = tuple(mine)
            made.append(
                make_member(
                    name,
                    consumer.topics,
                    assigned,
                    group_instance_id=consumer.instance,
                    session_timeout=consumer.session,
                    rebalance_timeout=consumer.rebalance,
                )
            )
        return tuple(made)

    def round(self, *, late: bool) -> None:
        """A round reads the log positions and, maybe much later, the state of the group."""
        self.read_state()
        topics = [make_topic(topic, count) for topic, count in self.counts.items()]
        self.read_late = len(self.inputs)
        self.inputs.append(make_observation(self.next(), *topics, time=START + self.now))
        if not late:
            self.read_state()

    def read_state(self) -> None:
        if self.read_late is not None:
            seen = self.inputs[self.read_late]
            assert isinstance(seen, GroupObservation)
            settled = "Stable" if self.synced else "CompletingRebalance"
            state = settled if self.began is None else "PreparingRebalance"
            self.inputs[self.read_late] = msgspec.structs.replace(seen, state=state)
            self.read_late = None


@st.composite
def histories(draw: st.DrawFn) -> History:
    group = History()
    for _ in range(draw(st.integers(2, 12))):
        for _ in range(draw(st.integers(0, 6))):
            _happen(draw, group)
        if draw(st.integers(0, 3)):
            group.known = dict(group.counts)  # the leader's metadata is new
        group.now += draw(st.sampled_from((0, 300, 2_900, 4_900, 21_000, 100_000)))
        group.decide(synced=draw(st.integers(0, 5)) > 0)
    group.members = group.members or {"last": Consumer(("x",), 6_000, 20_000)}
    return group


def _happen(draw: st.DrawFn, group: History) -> None:
    names = sorted(group.members)
    name = draw(st.sampled_from(names)) if names else None
    group.now += draw(st.sampled_from((0, 50, 2_000, 5_000, 30_000)))
    happens = ("join", "join", "leave", "expire", "replace", "resubscribe", "strategy", "grow", "clock")
    match draw(st.sampled_from((*happens, "round", "round", "round", "commit", "commit", "commit"))):
        case "join":
            topics = draw(st.sampled_from((("x",), ("x", "y"))))
            instance = draw(st.sampled_from((None, f"i{group.names}")))
            group.join(
                Consumer(topics, draw(st.sampled_from(SESSION_MS)), draw(st.sampled_from(REBALANCE_MS)), instance)
            )
        case "leave" if name is not None:
            group.leave(name)
        case "expire" if name is not None:
            group.expire(name, joining=draw(st.booleans()) and group.members[name].instance is None)
        case "replace" if name is not None and group.members[name].instance is not None:
            group.replace(name)
        case "resubscribe" if name is not None:
            group.rebalance()
            consumer = group.members[name]
            other = ("x",) if "y" in consumer.topics else ("x", "y")
            group.members[name] = Consumer(other, consumer.session, consumer.rebalance, consumer.instance)
            if name not in group.between.joined:
                group.between.resubscribed ^= {group.between.first_ids.get(name, name)}
        case "strategy":
            group.strategy = draw(st.sampled_from([s for s in STRATEGIES if s != group.strategy]))
        case "grow":
            group.counts[draw(st.sampled_from(TOPICS))] += draw(st.integers(1, 2))
        case "round":
            group.round(late=draw(st.booleans()))
        case "commit" if group.owned:
            group.commit(draw(st.sampled_from(sorted(group.owned))))
        case "clock":
            group.clock = draw(st.sampled_from((0, 1_000, 2_900)))


def check(group: History) -> None:
    life = Life.after(*group.inputs)
    rows = {row.decision: row for row in life.rows.rebalance_churn if row.revision == 1}
    strategies = {item.record: item.protocol for item in group.inputs if isinstance(item, MembershipRecord)}
    assert rows.keys() == {at for at, _, _ in group.told}
    was: dict[str, int] = {}
    previous: str | None = None
    first = True
    for at, between, known in group.told:
        row = rows[at]
        causes: dict[str, list[Cause]] = {}
        for found in row.causes or ():
            causes.setdefault(found.cause, []).append(found)
            event(found.cause)
        if first and row.generation > 1:
            assert [*causes] == ["unknown"]
        else:
            _check(causes, between, was, known)
            if not first and row.members and previous is not None:
                assert ("strategy_changed" in causes) == (previous != strategies[at])
        was, previous, first = known, strategies[at], False


def _check(causes: dict[str, list[Cause]], between: Between, was: dict[str, int], known: dict[str, int]) -> None:
    def named(*kinds: str) -> tuple[set[str], int]:
        """The members that these causes name, which may be the first ones only, and how many they count."""
        listed = [found for kind in kinds for found in causes.get(kind, ())]
        return {member for found in listed for member in found.members}, sum(found.count or 0 for found in listed)

    for kinds, truth in (
        (("member_joined",), between.joined),
        (("member_left", "member_silent", "member_gone"), between.left | between.expired),
        (("static_replacement",), between.replaced),
    ):
        members, count = named(*kinds)
        assert members <= truth
        assert count == len(truth)
    assert named("member_left")[0] <= between.left
    for found in causes.get("member_silent", ()):
        for member in found.members:
            assert between.quiet[member] * 2 >= min(SESSION_MS)
    assert len(causes.get("subscription_changed", ())) == (1 if between.resubscribed else 0)
    for found in causes.get("partitions_changed", ()):
        assert found.topic is not None
        assert (found.before, found.after) == (str(was[found.topic]), str(known[found.topic]))
        assert found.before != found.after
    if "rejoined" in causes:
        assert between == Between(quiet=between.quiet)


@settings(deadline=None, max_examples=examples(300))
@given(histories())
def test_no_cause_is_claimed_that_did_not_happen(group: History) -> None:
    check(group)


@pytest.mark.soak
@pytest.mark.turn(2)
@pytest.mark.timeout(3_600)
@settings(deadline=None, max_examples=20_000)
@given(histories())
def test_no_cause_is_claimed_that_did_not_happen_in_thousands_of_histories(group: History) -> None:
    check(group)
