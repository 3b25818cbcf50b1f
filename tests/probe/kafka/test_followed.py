"""What is followed in the log is what coordinators would answer, and what cannot be followed is asked for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from streaming.config import Filters, KafkaSettings
from streaming.demo.broker import EmbeddedBroker
from streaming.probe.clients import open_reader
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.cluster import KafkaCluster
from streaming.probe.kafka.followed import LONGEST_TAIL_MS, Committed, FollowedGroups, LogState, LogTail
from streaming.probe.kafka.look import Description, GroupsSeen, ListedGroup
from streaming.probe.kafka.memory import Memory
from streaming.probe.kafka.requests import Metadata
from streaming.records import CommitWindow, GroupInput, MembershipTombstone
from tests.patience import until
from tests.probe.kafka.build import topic
from tests.probe.witness import Cluster, requests_sent

LOG = "__consumer_offsets"


class Followed:
    """One cluster that is followed from look to look, beside fresh ones that ask for everything."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._filters = Filters(groups=(f"/^{cluster.unique}/",))
        kafka = KafkaSettings(bootstrap_servers=cluster.bootstrap)
        self._tail = LogTail(LOG, lambda: open_reader(kafka), self._filters.watches_group)
        self._kept = KafkaCluster(cluster.admin, LOG, self._filters, tail=self._tail)
        self._sent: Counter[str] = Counter()
        self.look = self._follow()

    def close(self) -> None:
        self._tail.close()

    @property
    def asked(self) -> int:
        """Requests about groups, beside their lists."""
        return sum(self._sent[name] for name in ("OffsetFetch", "DescribeGroups", "ConsumerGroupDescribe"))

    def agree(self, is_so: Callable[[GroupsSeen], bool]) -> None:
        """Look until coordinators tell that something is so; then both know the same."""
        deadline = time.monotonic() + 90
        while True:
            self.look, fresh = self._follow(), self._observe(KafkaCluster(self._cluster.admin, LOG, self._filters))
            if is_so(fresh) and (self.look.committed, self.look.descriptions) == (fresh.committed, fresh.descriptions):
                assert self.look.topics_of_groups == fresh.topics_of_groups
                return
            assert time.monotonic() < deadline, (is_so(fresh), self.look, fresh)

    def _follow(self) -> GroupsSeen:
        with requests_sent() as sent:
            look = self._observe(self._kept)
        self._sent.update(sent)
        return look

    def _observe(self, cluster: KafkaCluster) -> GroupsSeen:
        deadline = Deadline.after(30)
        log = cluster.offsets_log(deadline)
        return cluster.observe_groups(cluster.log_positions(log, 0, deadline), Memory(), deadline)


@pytest.fixture
def followed(cluster: Cluster) -> Iterator[Followed]:
    orders = cluster.topic("orders", 3)
    for name in ("a", "b"):
        cluster.commit(name, orders, [1, 2, 3])
    running = Followed(cluster)
    yield running
    running.close()


def has(group: str, offsets: Mapping[tuple[str, int], int]) -> Callable[[GroupsSeen], bool]:
    return lambda look: look.committed.get(group) == Committed.of(offsets).mark


@pytest.mark.kafka
def test_commits_deletions_and_transactions_are_followed_as_coordinators_answer(
    cluster: Cluster, followed: Followed
) -> None:
    a, b, orders = (f"{cluster.unique}-{name}" for name in ("a", "b", "orders"))
    more = cluster.topic("more", 600)
    asked = followed.asked
    cluster.commit("a", orders, [5, 2])
    followed.agree(has(a, {(orders, 0): 5, (orders, 1): 2, (orders, 2): 3}))
    # Enough for a whole run of record batches.
    cluster.commit("b", more, [7] * 600)
    of_b = {(orders, p): p + 1 for p in range(3)} | {(more, p): 7 for p in range(600)}
    followed.agree(has(b, of_b))
    cluster.admin.delete_group_offsets(b, [TopicPartition(more, 3)])
    followed.agree(has(b, {place: offset for place, offset in of_b.items() if place != (more, 3)}))
    # Coordinators delete the offsets of a topic that is deleted.
    cluster.admin.delete_topics([more])
    followed.agree(has(b, {(orders, p): p + 1 for p in range(3)}))
    assert followed.asked == asked
    assert followed.look.topics_of_groups[b] == (orders,)

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=cluster.unique)
    producer.init_transactions()
    for offset, ends in ((8, producer.abort_transaction), (9, producer.commit_transaction)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction({TopicPartition(orders, 0): OffsetAndMetadata(offset, "", -1)}, a)
        followed.agree(lambda look: a in look.committed)
        ends()
    producer.close()
    followed.agree(has(a, {(orders, 0): 9, (orders, 1): 2, (orders, 2): 3}))

    cluster.delete_group(b)
    followed.agree(lambda look: b not in look.groups)
    cluster.commit("b", orders, [4])
    followed.agree(has(b, {(orders, 0): 4}))


@pytest.mark.kafka
def test_members_are_described_again_when_the_log_has_a_record_of_them(cluster: Cluster, followed: Followed) -> None:
    orders, more = f"{cluster.unique}-orders", cluster.topic("more", 1)
    group = f"{cluster.unique}-members"
    # A leader that assigns before it knows a new topic's partitions looks again after this time.
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap, group_id=group, enable_auto_commit=False, metadata_max_age_ms=2_000
    )
    for topics in ([orders], [orders, more], [more]):
        # It knows them from here; on a busy machine it has failed to look again for over a minute.
        assert all(consumer.partitions_for_topic(topic) for topic in topics)
        consumer.subscribe(topics)
        until(
            lambda topics=topics: {place.topic for place in consumer.assignment()} == set(topics),  # type: ignore[misc]
            lambda: consumer.poll(timeout_ms=100),
        )
        followed.agree(lambda look, topics=topics: _subscribed(look, group) == set(topics))  # type: ignore[misc]
        asked = followed.asked
        followed.agree(lambda look: group in look.descriptions)
        assert followed.asked == asked
    consumer.close()
    followed.agree(lambda look: group not in look.descriptions)


@pytest.mark.kafka
def test_a_group_is_calm_once_it_has_read_all_and_its_members_stay(cluster: Cluster, followed: Followed) -> None:
    orders, group = f"{cluster.unique}-orders", f"{cluster.unique}-members"
    consumer = KafkaConsumer(orders, bootstrap_servers=cluster.bootstrap, group_id=group, enable_auto_commit=False)
    until(consumer.assignment, lambda: consumer.poll(timeout_ms=100))
    followed.agree(lambda look: _subscribed(look, group) == {orders})
    assert group not in followed.look.calm  # it has committed nothing
    cluster.produce(orders, [3, 3, 3])
    for offset, is_calm in ((1, False), (3, True)):
        consumer.commit({TopicPartition(orders, p): OffsetAndMetadata(offset, "", -1) for p in range(3)})
        followed.agree(has(group, {(orders, p): offset for p in range(3)}))
        assert (group in followed.look.calm) == is_calm
    cluster.produce(orders, [4, 0, 0])
    followed.agree(lambda look: sum(look.topics[orders].ends) == 13)
    assert group not in followed.look.calm
    consumer.close()
    followed.agree(lambda look: group not in look.descriptions)
    assert group not in followed.look.calm


@pytest.mark.kafka
@pytest.mark.nightly
def test_expired_offsets_are_followed_as_coordinators_answer(tmp_path: Path, unique: str) -> None:
    quick = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
    with ExitStack() as closes:
        broker = closes.enter_context(EmbeddedBroker(tmp_path, overrides=quick))
        admin = closes.enter_context(closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)))
        cluster = Cluster(broker.bootstrap, unique, admin)
        group = cluster.commit("a", cluster.topic(), [1, 2])
        followed = closes.enter_context(closing(Followed(cluster)))
        assert group in followed.look.committed
        followed.agree(lambda look: group not in look.groups)


def _subscribed(look: GroupsSeen, group: str) -> set[str] | None:
    description = look.descriptions.get(group)
    return set(description.subscribed) if description is not None and description.state == "Stable" else None


class Tail:
    """Records that were prepared, by partition, of which some cannot be read."""

    def __init__(self, told: Mapping[str, list[GroupInput]], unread: set[int]) -> None:
        self._told, self._unread = told, unread
        self.partitions: list[int] = []

    def read(
        self, _before: LogState, _now: LogState, partitions: Iterable[int], tell: Callable[..., None], _: Deadline
    ) -> set[int]:
        self.partitions = list(partitions)
        for group, inputs in self._told.items():
            tell(group, inputs)
        return self._unread


def window(partition: int, offset: int, *, deleted: bool = False) -> CommitWindow:
    return CommitWindow("orders", partition, 1, int(deleted), offset, 0, 0, offset, -1, 0, 0, deleted, 0)


# "g".hashCode() is 103, that of "h" 104.
STATE = LogState(Metadata(None, (1, 2), False, {}), (1, 2), (), (10, 20), (10, 20), 1_000)
LISTED = {name: ListedGroup(name, 1, "Stable", "consumer", "classic") for name in ("g", "h")}
STABLE = Description("Stable", "consumer", frozenset({"orders"}), complete=True)


def after(
    now: LogState,
    told: Mapping[str, list[GroupInput]] | None = None,
    unread: Iterable[int] = (),
    listed: Mapping[str, ListedGroup] = LISTED,
) -> tuple[FollowedGroups, Tail]:
    """What is known at a second round of two groups that were asked for in the first."""
    tail: Any = Tail(told or {}, set(unread))
    groups = FollowedGroups(tail)
    groups.follow(STATE, LISTED, Deadline.after(10))
    groups.note_offsets({"g": {("orders", 0): 5, ("orders", 1): 6}, "h": {("orders", 0): 7}})
    groups.descriptions = {"g": STABLE, "h": STABLE}
    groups.follow(now, listed, Deadline.after(10))
    return groups, tail


def test_groups_whose_log_did_not_move_are_not_touched() -> None:
    groups, tail = after(replace(STATE, time=2_000), {"g": [window(0, 9), window(1, 6, deleted=True)]})
    assert tail.partitions == [0, 1]
    assert {name: dict(known.offsets) for name, known in groups.committed.items()} == {
        "g": {("orders", 0): 9},
        "h": {("orders", 0): 7},
    }
    assert [groups.description(listed) for listed in LISTED.values()] == [STABLE, STABLE]


@pytest.mark.parametrize(
    ("now", "unread", "known"),
    [
        pytest.param(STATE, (0,), {"g"}, id="a record cannot be read"),
        pytest.param(replace(STATE, end=(12, 20)), (), {"g"}, id="a transaction is open"),
        pytest.param(replace(STATE, stable=(9, 20)), (), {"g"}, id="the log was cut back"),
        pytest.param(replace(STATE, leaders=(1, 3)), (), {"h"}, id="another leader"),
        pytest.param(
            replace(STATE, leaders=(1, 2, 1), stable=(10, 20, 0), end=(10, 20, 0)), (), set(), id="more partitions"
        ),
        pytest.param(replace(STATE, time=1_001 + LONGEST_TAIL_MS), (), set(), id="too long ago"),
    ],
)
def test_what_the_log_does_not_tell_is_asked_for(now: LogState, unread: tuple[int, ...], known: set[str]) -> None:
    groups, _ = after(now, unread=unread)
    assert set(groups.committed) == known
    assert {name for name, listed in LISTED.items() if groups.description(listed) is not None} == known


@pytest.mark.parametrize(
    "change",
    [
        {"told": {"g": [MembershipTombstone(9, 0)]}},
        {"listed": LISTED | {"g": replace(LISTED["g"], state="PreparingRebalance")}},
    ],
    ids=["a record of the members", "another state"],
)
def test_members_that_may_have_changed_are_described_again(change: dict[str, Any]) -> None:
    groups, _ = after(STATE, **change)
    listed = change.get("listed", LISTED)
    assert [groups.description(one) for one in listed.values()] == [None, STABLE]
    assert set(groups.committed) == {"g", "h"}


@pytest.mark.parametrize(
    ("change", "ends", "calm"),
    [
        ({}, [6, 7], ["g", "h"]),
        ({}, [7, 7], ["h"]),
        ({"told": {"g": [MembershipTombstone(9, 0)]}}, [6, 7], ["h"]),
        ({"told": {"g": [window(0, 5)]}}, [6, 7], ["g", "h"]),
        ({"unread": (1,)}, [6, 7], ["h"]),
        ({"now": replace(STATE, time=1_001 + LONGEST_TAIL_MS)}, [6, 7], []),
    ],
    ids=["at rest", "behind", "its members change", "it commits the same", "in doubt", "too long ago"],
)
def test_groups_that_have_read_all_are_calm_while_the_log_tells_nothing_of_their_members(
    change: dict[str, Any], ends: list[int], calm: list[str]
) -> None:
    groups, _ = after(**({"now": STATE} | change))
    groups.descriptions = {"g": STABLE, "h": STABLE}
    assert sorted(groups.calm({"orders": topic("orders", ends)})) == calm


def test_records_of_members_are_told_in_the_round_that_reads_them_and_commits_are_none() -> None:
    groups, _ = after(STATE, {"g": [MembershipTombstone(9, 0)], "h": [window(0, 9)]})
    assert groups.recorded == {"g"}
    groups.follow(replace(STATE, time=1_001 + LONGEST_TAIL_MS), LISTED, Deadline.after(10))
    assert groups.recorded == set()


def test_a_commit_says_nothing_of_a_group_that_was_not_asked_for() -> None:
    groups, _ = after(STATE, {"new": [window(0, 3)]})
    assert "new" not in groups.committed


def test_offsets_below_the_first_ends_follow_commits_and_new_ends() -> None:
    groups, _ = after(STATE)
    assert groups.early({}) == {}
    assert groups.early({"orders": (6, 6)}) == {"g": (("orders", 0, 5),)}
    assert groups.early({"orders": (6, 8)}) == {"g": (("orders", 0, 5), ("orders", 1, 6))}
    groups.note_offsets({"g": {("orders", 0): 8, ("orders", 1): 9}, "h": {("orders", 0): 2}})
    assert groups.early({"orders": (6, 8)}) == {"h": (("orders", 0, 2),)}
