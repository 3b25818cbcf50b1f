"""A group whose leader followed its strategy is never reported as drifted.

Random leaders of every library that can be computed decide about random groups, with metadata that is older or newer
than the rounds, or equal; the core gets the record and the rounds, and must not report `drifted`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from assignors import CannotTell, Group, LeaderWouldFail, Library, assign, topics_without_metadata
from streaming.groups.classic.membership import subscription_of
from streaming.records import Member
from tests.examples import examples
from tests.groups.build import Life, make_member, make_observation, make_record, make_topic
from tests.groups.verdicts import recompute_all, with_assignment

# Library, and the subscription bytes of its members for range and roundrobin: version, user data.
LEADERS: tuple[tuple[Library, int, bytes | None], ...] = (
    (Library("java", (2, 3)), 0, None),
    (Library("java", (2, 8)), 1, None),
    (Library("java", (3, 4)), 3, None),
    (Library("java", (4, 2)), 3, None),
    (Library("librdkafka", (1, 2)), 0, b""),
    (Library("librdkafka", (1, 9)), 1, b""),
    (Library("librdkafka", (2, 15)), 3, b""),
    (Library("kafka-python", (2, 0)), 0, b""),
    (Library("kafka-python", (3, 0, 12)), 0, b""),
    (Library("aiokafka"), 0, b""),
    (Library("franz-go"), 3, None),
    (Library("sarama", (1, 60, 1)), 2, None),
)

GRACE = 600
INTERVAL = 10
DECIDED = 4_000
"""The decision's time and log offset; a round at second s has log position s."""


@dataclass
class Topic:
    """A topic that grew, and may have been recreated, at certain times (s)."""

    name: str
    times: list[int]
    counts: list[int]
    ids: list[str]
    delay: int

    def at(self, second: int) -> tuple[int, str]:
        index = bisect_right(self.times, second) - 1
        return (self.counts[index], self.ids[index]) if index >= 0 else (0, "")


@st.composite
def topics(draw: st.DrawFn, name: str) -> Topic:
    changes = sorted(draw(st.sets(st.integers(DECIDED - 1500, DECIDED + 100), max_size=3)))
    counts, ids = [draw(st.integers(0, 6))], ["id-0"]
    for change in changes:
        again = draw(st.integers(0, 5)) == 0
        counts.append(draw(st.integers(0, 6)) if again else counts[-1] + draw(st.integers(0, 4)))
        ids.append(f"id-{change}" if again else ids[-1])
    return Topic(name, [0, *changes], counts, ids, delay=draw(st.sampled_from((0, 0, 3, 25))))


@st.composite
def members(draw: st.DrawFn, version: int, user_data: bytes | None) -> list[Member]:
    ids = draw(
        st.lists(st.text("abz\u00e9\uffff\U0001f980", min_size=1, max_size=3), min_size=1, max_size=5, unique=True)
    )
    result = []
    for index, member_id in enumerate(ids):
        names = draw(st.sets(st.sampled_from(("x", "y", "z")), min_size=1))
        static = draw(st.integers(0, 3)) == 0
        result.append(
            make_member(
                member_id,
                sorted(names),
                group_instance_id=f"i{(index * 7) % 5}-{index}" if static else None,
                subscription_version=version,
                user_data=user_data,
            )
        )
    return result


@settings(deadline=None, max_examples=examples(200))
@given(st.data())
def test_a_leader_that_did_as_its_strategy_says_is_never_called_drifted(data: st.DataObject) -> None:
    library, version, user_data = data.draw(st.sampled_from(LEADERS))
    strategy = data.draw(st.sampled_from(("range", "roundrobin")))
    group = data.draw(members(version, user_data))
    leader = data.draw(st.sampled_from(group))
    all_topics = [data.draw(topics(name)) for name in ("x", "y", "z")]
    counts = {}
    for topic in all_topics:
        looked = data.draw(st.integers(DECIDED - GRACE, DECIDED))
        counts[topic.name] = topic.at(looked)[0]
    for topic_name in sorted(topics_without_metadata(library, counts)):
        if data.draw(st.booleans()):
            counts[topic_name] = 0
    try:
        assignment = assign(strategy, Group(tuple(map(subscription_of, group)), counts), library)
    except (CannotTell, LeaderWouldFail):
        assume(False)

    life = Life()
    first_round = data.draw(st.sampled_from((DECIDED - 2000, DECIDED - 700, DECIDED - 300, DECIDED - 5, DECIDED + 5)))
    silent = data.draw(st.sampled_from(((0, 0), (DECIDED - 800, DECIDED + 200), (DECIDED - 100, DECIDED + 50))))
    life.take(make_record(100, generation=0, protocol_type=""))
    record = make_record(
        DECIDED, with_assignment(group, assignment), protocol=strategy, leader=leader.member_id, value_version=3
    )
    rounds = [
        make_observation(
            second,
            *(
                make_topic(
                    topic.name, topic.at(second - topic.delay)[0] or None, topic_id=topic.at(second - topic.delay)[1]
                )
                for topic in all_topics
            ),
        )
        for second in range(first_round, DECIDED + 2 * GRACE, INTERVAL)
        if not silent[0] <= second < silent[1]
    ]
    life.take(record, *rounds)
    verdict = life.rows.drift[-1]
    assert verdict.decision == DECIDED
    assert verdict.verdict in {"identical", "unverified"}
    recompute_all(life.rows)
    event(verdict.verdict)


@settings(deadline=None, max_examples=examples(120))
@given(st.data())
def test_with_the_counts_of_the_rounds_the_verdict_is_identical(data: st.DataObject) -> None:
    """The opposite: everything computable is recomputed; only a candidate that cannot be computed leaves it open."""
    library, version, user_data = data.draw(st.sampled_from([leader for leader in LEADERS if leader[1:] != (0, None)]))
    strategy = data.draw(st.sampled_from(("range", "roundrobin")))
    group = data.draw(members(version, user_data))
    counts = {name: data.draw(st.integers(1, 7)) for name in ("x", "y", "z")}
    try:
        assignment = assign(strategy, Group(tuple(map(subscription_of, group)), counts), library)
    except (CannotTell, LeaderWouldFail):
        assume(False)
    life = Life.after(
        make_record(5, with_assignment(group, assignment), protocol=strategy),
        make_observation(10, *(make_topic(name, count) for name, count in counts.items())),
    )
    assert life.rows.drift[-1].verdict == "identical"


# Library, its strategies, and the user data of a member without partitions.
IN_RACKS = (
    (Library("java", (3, 5)), ("range", "sticky"), None),
    (Library("java", (4, 2)), ("cooperative-sticky",), b"\xff\xff\xff\xff"),
    (Library("librdkafka", (2, 15)), ("range", "roundrobin", "cooperative-sticky"), b""),
)


@dataclass
class Cluster:
    """Brokers by number: rack, and the times (s) between which each is down; and the brokers of each partition."""

    racks: tuple[str, ...]
    down: tuple[tuple[int, int], ...]
    places: dict[str, list[list[int]]]

    def racks_at(self, second: int, topic: str) -> tuple[tuple[str, ...], ...]:
        up = {broker for broker, (start, stop) in enumerate(self.down) if not start <= second < stop}
        return tuple(tuple(self.racks[broker] for broker in of if broker in up) for of in self.places[topic])


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    racks = draw(st.sampled_from((("r1", "r2"), ("r1", "r2", "r3"), ("r1", "r1", "r2", "r2"))))
    down = []
    for _ in racks:
        start = draw(st.integers(DECIDED - GRACE, DECIDED - 2))
        down.append((start, start + draw(st.sampled_from((0, 8, 8, 60)))))
    replicas = draw(st.integers(1, len(racks)))
    places = {
        topic: [
            [(draw(st.integers(0, 3)) + step) % len(racks) for step in range(replicas)]
            for _ in range(draw(st.integers(1, 6)))
        ]
        for topic in ("x", "y")
    }
    if draw(st.booleans()):
        places["y"] = [list(of) for of in places["x"]]
    return Cluster(racks, tuple(down), places)


@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_a_rack_aware_leader_that_did_as_its_strategy_says_is_never_called_drifted(data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    library, strategies, user_data = data.draw(st.sampled_from(IN_RACKS))
    strategy = data.draw(st.sampled_from(strategies))
    alike = data.draw(st.booleans())
    members = [
        make_member(
            name,
            ("x", "y") if alike else data.draw(st.sampled_from((("x", "y"), ("x",), ("y",)))),
            {},
            rack=data.draw(st.sampled_from((*cluster.racks, None, "", "elsewhere"))),
            user_data=user_data,
        )
        for name in "abcd"[: data.draw(st.integers(1, 4))]
    ]
    # Clients fetch metadata when they lose a broker, so often exactly then.
    looked = data.draw(st.integers(DECIDED - GRACE, DECIDED))
    if data.draw(st.integers(0, 3)):
        looked = min(data.draw(st.sampled_from(cluster.down))[0] + 1, DECIDED)
    racks = {topic: cluster.racks_at(looked, topic) for topic in cluster.places}
    counts = {topic: len(of) for topic, of in racks.items()}
    try:
        assignment = assign(strategy, Group(tuple(map(subscription_of, members)), counts), library, racks)
    except (CannotTell, LeaderWouldFail):
        assume(False)

    life = Life.after(make_record(100, generation=0, protocol_type=""))
    record = make_record(DECIDED, with_assignment(members, assignment), protocol=strategy)
    first = data.draw(st.sampled_from((DECIDED - 2000, DECIDED - 30, DECIDED + 5)))
    rounds = [
        make_observation(
            second, *(make_topic(topic, counts[topic], racks=cluster.racks_at(second, topic)) for topic in counts)
        )
        for second in range(first + data.draw(st.integers(0, 9)), DECIDED + 2 * GRACE, INTERVAL)
    ]
    # In the log's order, like the job: the rounds before the decision first.
    life.take(record, *rounds)
    verdict = life.rows.drift[-1]
    assert verdict.decision == DECIDED
    assert verdict.verdict in {"identical", "unverified"}
    event(verdict.verdict)
