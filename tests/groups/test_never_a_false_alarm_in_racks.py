"""The same with racks: brokers stop and start, also between two rounds, and no rack-aware leader is drifted.

Members are in the racks of brokers that restart; the leader fetched its metadata at some moment within the maximum age,
and replicas on a broker that was down then have no rack for it. A rack-aware client even rebalances because of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from assignors import CannotTell, Group, LeaderWouldFail, Library, assign
from streaming.groups.classic.membership import subscription_of
from streaming.records import Member
from tests.examples import examples
from tests.groups.build import Life, make_member, make_observation, make_record, make_topic

DECIDED, GRACE, INTERVAL = 4_000, 600, 10

# Library, its strategies, and the user data of a member without partitions.
LEADERS = (
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
    library, strategies, user_data = data.draw(st.sampled_from(LEADERS))
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

    def decided(member: Member) -> Member:
        given: Any = tuple((topic, tuple(of)) for topic, of in assignment[member.member_id].items())
        return msgspec.structs.replace(member, assigned=given)

    life = Life.after(make_record(100, generation=0, protocol_type=""))
    record = make_record(DECIDED, tuple(map(decided, members)), protocol=strategy)
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
