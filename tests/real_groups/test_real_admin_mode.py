"""Real groups of three client libraries and both protocols: what rounds see equals what the log says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from streaming.groups.rows import GroupHealthRow
from tests.java_tools import describe_share_group
from tests.oracle.java_classes import JavaMembers, ShareMembers
from tests.probe.witness import Cluster
from tests.real_groups.both_modes import ONLY_THE_LOG, BothModes
from tests.real_groups.followed import until
from tests.real_groups.party import RECORDS, RELEASE, Party, make_topics, produce
from tests.real_groups.real_members import Joins, KafkaPythonMembers, starter
from tests.real_groups.real_streams import Machine, configure_group, describe_streams_group

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.turn(2), pytest.mark.timeout(600)]


class Groups:
    """What the coordinators say, by another client."""

    def __init__(self, bootstrap: str, parties: Sequence[Party]) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._parties = parties

    def rest(self, group: str, members: int, partitions: int) -> None:
        """Wait until a group is stable with so many members, which own so many partitions."""

        def rests() -> bool:
            try:
                told = self._admin.describe_consumer_groups([group])[group].result()
            except KafkaException:
                return False
            owned = [
                place
                for member in told.members
                for place in (member.assignment.topic_partitions if member.assignment is not None else ())
            ]
            wanted = "STABLE" if members else "EMPTY"
            return told.state.name == wanted and len(told.members) == members and len(owned) == partitions

        until(rests, *(party.poll for party in self._parties))
        for _ in range(5):  # a member may rejoin at once
            for party in self._parties:
                party.poll()
        until(rests, *(party.poll for party in self._parties))


@pytest.mark.nightly
def test_groups_at_rest_look_the_same_by_the_log_and_by_requests(
    bootstrap: str, unique: str, java: JavaMembers
) -> None:
    topics = {f"{unique}-a": 6, f"{unique}-b": 2}
    make_topics(bootstrap, topics)
    produce(bootstrap, topics)
    names = list(topics)
    classic = "org.apache.kafka.clients.consumer."
    cooperative = {"partition_assignment_strategy": "cooperative-sticky"}
    with (
        BothModes(bootstrap, unique) as modes,
        Party(bootstrap, java, f"{unique}-range") as ranged,
        Party(bootstrap, java, f"{unique}-sticky") as sticky,
        Party(bootstrap, java, f"{unique}-cooperative") as coop,
        Party(bootstrap, java, f"{unique}-static") as static,
        Party(bootstrap, java, f"{unique}-broker") as broker,
        KafkaPythonMembers() as python,
    ):
        parties = (ranged, sticky, coop, static, broker)
        groups = Groups(bootstrap, parties)
        kafka_python = f"{unique}-kafka-python"
        simple = Cluster(bootstrap, unique, KafkaAdminClient(bootstrap_servers=bootstrap))
        simple.commit("simple", names[0], [3, 0, 5])

        def join(first: bool) -> None:
            ranged.start(names, "classic", auto_offset_reset="earliest")
            sticky.start(names, "classic", partition_assignment_strategy=f"{classic}StickyAssignor")
            coop.join(names, "classic", **cooperative)
            static.join(names[:1], "classic", group_instance_id=f"till-{first:d}")
            broker.join(names) if first else broker.start(names)

        def all_rest(members: int) -> None:
            for party, partitions in ((ranged, 8), (sticky, 8), (coop, 8), (static, 6), (broker, 8)):
                groups.rest(party.group, members, partitions)
            for group in (ranged.group, sticky.group, kafka_python):
                until_read(group, 8)
            if members == 2:
                until_read(broker.group, 4)  # what its Java member owns; the other one does not commit

        def until_read(group: str, partitions: int) -> None:
            """Wait for members that commit by themselves: a commit between two looks is seen by one of them."""

            def is_read() -> bool:
                offsets = simple.admin.list_group_offsets(group)
                of_group = offsets.get(group, offsets) if isinstance(offsets, dict) else {}
                return len(of_group) == partitions and all(meta.offset == RECORDS for meta in of_group.values())

            until(is_read, *(party.poll for party in parties))

        def both(*, decided: bool) -> None:
            modes.round()
            modes.round()
            found = {party.group: modes.differing(party.group, decided=decided) for party in parties}
            assert {group: of for group, of in found.items() if of} == {}

        join(first=True)
        member = starter(python)(
            Joins(bootstrap, kafka_python, "roundrobin", names, session_ms=6_000, rejoin_ms=30_000)
        )
        all_rest(1)
        groups.rest(kafka_python, 1, 8)
        modes.round()
        modes.round()
        for party in parties:
            # A group that was met with its assignment: nobody knows what was before.
            found = modes.differing(party.group, decided=False)
            verdicts = {name: of for name, of in found.items() if set(of) - {"verdict", "verdict_reason"}}
            assert verdicts == {}
            assert modes.admin.health(party.group).verdict in {"identical", "unverified"}
        assert modes.differing(kafka_python, decided=False) == {}

        join(first=False)
        for consumer in (*coop.consumers, *static.consumers, *broker.consumers):
            consumer.poll(0.1)
        all_rest(2)
        for party in (coop, static):
            for consumer in party.consumers:
                party.commit(consumer, 2)
        both(decided=True)

        ranged.stop(ranged.names[0])
        sticky.stop(sticky.names[0])
        coop.leave(coop.consumers[0])
        broker.leave(broker.consumers[0])
        static.leave(static.consumers[0])  # a static member: it is expected back, and comes under another id
        static.join(names[:1], "classic", group_instance_id="till-1")
        member.leave()
        for party, partitions in ((ranged, 8), (sticky, 8), (coop, 8), (broker, 8)):
            groups.rest(party.group, 1, partitions)
        groups.rest(static.group, 2, 6)
        groups.rest(kafka_python, 0, 0)
        until_read(broker.group, 8)
        assert member.left.wait(60)
        both(decided=True)

        assert modes.differing(kafka_python, decided=True) == {}
        assert modes.differing(f"{unique}-simple", decided=False) == {}
        assert modes.admin.health(f"{unique}-simple").verdict == "not_applicable"
        assert [row.kind for row in modes.admin.churn(static.group)] == ["rebalance", "rebalance", "static_replacement"]
        assert [row.kind for row in modes.admin.churn(kafka_python)] == ["rebalance", "became_empty"]
        assert all(row.verdict != "drifted" for party in parties for row in modes.admin.drift(party.group).values())
        assert _is_silent_about_the_log(modes.admin.health(ranged.group))
        simple.admin.close()


@pytest.mark.nightly
def test_share_and_streams_groups_at_rest_look_the_same_by_the_log_and_by_requests(
    bootstrap: str, unique: str, tmp_path: Path
) -> None:
    topics = {f"{unique}-a": 5, f"{unique}-b": 3}
    make_topics(bootstrap, topics)
    share, streams = f"{unique}-share", f"{unique}-streams"
    settings = {"bootstrap.servers": bootstrap, "group.id": share}
    configure_group(bootstrap, streams, streams_num_standby_replicas="1", streams_session_timeout_ms="6000")
    # A share group has no lag before its first delivery: by default none of what was there before it.
    configure_group(bootstrap, share, share_auto_offset_reset="earliest")
    with (
        ShareMembers(RELEASE) as members,
        Machine(bootstrap, streams, tmp_path / "first") as first,
        Machine(bootstrap, streams, tmp_path / "second") as second,
        BothModes(bootstrap, unique) as modes,
    ):

        def rest(of_share: int, of_streams: int) -> None:
            """Let the log say when everything rests, so that the other mode does not look in between."""

            def rests(group: str, count: int) -> bool:
                if f"g:{group}" not in modes.log.rows:
                    return False
                row = modes.log.health(group)
                read = row.lag_total == 0 and row.lag_unknown == 0
                return row.state == "Stable" and row.members == count and not row.findings and read

            def shown() -> str:
                return "; ".join(str(modes.log.rows.get(f"g:{group}")) for group in (share, streams))

            until(lambda: rests(share, of_share) and rests(streams, of_streams), modes.log.round, told=shown)
            modes.round()
            modes.round()

        def are_the_same(*, decided: bool) -> None:
            for group in (share, streams):
                found = modes.differing(group, decided=decided)
                if not decided:  # met with its members: nobody knows what was before
                    found = {key: of for key, of in found.items() if set(of) - {"verdict", "verdict_reason"}}
                assert found == {}
                assert modes.admin.health(group).generation == modes.log.health(group).generation
            assert {row.strategy for row in modes.admin.churn(share)} == {"simple"}
            state, told = describe_share_group(bootstrap, share)
            assert state == modes.admin.health(share).state
            assert told == {
                name: (
                    row.client_host,
                    row.client_id,
                    {(of.topic, n) for of in row.partitions or () for n in of.partitions},
                )
                for name, row in modes.admin.members(share).items()
            }
            described = describe_streams_group(bootstrap, streams)
            assert (described.state, described.epoch) == ("Stable", modes.admin.health(streams).generation)
            shown = {}
            for name, row in modes.admin.members(streams).items():
                tasks: dict[str, dict[str, set[int]]] = {}
                for of in row.tasks or ():
                    tasks.setdefault(of.kind, {})[of.subtopology] = set(of.tasks)
                shown[name] = row.client_id, tasks
            assert shown == {name: (of.client_id, of.target) for name, of in described.members.items()}

        produce(bootstrap, topics)
        member = members.start(list(topics), settings)
        instance = first.run(f"{unique}-a")
        rest(1, 1)
        are_the_same(decided=False)
        members.start(list(topics), settings)
        second.run(f"{unique}-a")
        rest(2, 2)
        are_the_same(decided=True)
        assert [modes.admin.drift(group).popitem()[1].verdict for group in (share, streams)] == ["identical"] * 2
        members.stop(member)
        first.stop(instance)
        assert first.closed(instance).wait(60)
        rest(1, 1)
        are_the_same(decided=True)
        assert members.failures == []


def _is_silent_about_the_log(row: GroupHealthRow) -> bool:
    return row.source == "admin" and all(getattr(row, name) is None for name in ONLY_THE_LOG["group_health"])
