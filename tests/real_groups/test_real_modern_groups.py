"""Real groups with a broker-side assignor, of Java and librdkafka clients, compared with Kafka's own tool."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from streaming.process import GuardedProcess
from tests.java_tools import describe_share_group, share_consumer, share_group_offsets
from tests.oracle.java_classes import JavaMembers
from tests.real_groups.followed import Followed
from tests.real_groups.party import RECORDS, Party, assert_as_the_tool_says, make_topics, produce

pytestmark = [pytest.mark.kafka, pytest.mark.turn(2)]


STEPS = 40


@contextmanager
def closing(process: GuardedProcess) -> Iterator[None]:
    try:
        yield
    finally:
        process.stop(15)


def owns(followed: Followed, group: str, owned: Mapping[str, set[tuple[str, int]]]) -> bool:
    lag = followed.lag(group)
    return all({place for place, row in lag.items() if row.member_id == name} == owned[name] for name in owned)


def findings(followed: Followed, group: str) -> set[str]:
    return {finding.finding for finding in followed.health(group).findings}


@pytest.mark.nightly
def test_groups_scaled_up_and_down_have_the_lag_owners_and_verdicts_of_the_broker(
    bootstrap: str, unique: str, java: JavaMembers
) -> None:
    topics = {f"{unique}-a": 6, f"{unique}-b": 3}
    began = time.time() * 1000
    make_topics(bootstrap, topics)
    produce(bootstrap, topics)
    names, total = list(topics), sum(topics.values())
    with (
        Followed(bootstrap, unique) as followed,
        Party(bootstrap, java, f"{unique}-uniform") as uniform,
        Party(bootstrap, java, f"{unique}-range") as ranged,
        Party(bootstrap, java, f"{unique}-regex") as regex,
    ):
        parties = (uniform, ranged, regex)
        asked = {"group_remote_assignor": "range"}
        static = {"group_instance_id": "till-1", "client_rack": "rack-a", "client_id": "till"}
        first = uniform.join(names, **static)
        ranged.start(names, **asked)
        regex.start([f"~{unique}-[a]"], client_rack="rack-b")
        uniform.rest(total), ranged.rest(total), regex.rest(6)
        followed.round()

        # While the first member is not polled, it gives nothing up.
        uniform.consumers.remove(first)
        late = uniform.start(names)
        followed.round_until(lambda: "reconciling" in findings(followed, uniform.group))
        assert followed.health(uniform.group).state == "Reconciling"
        uniform.consumers.append(first)
        ranged.join(names, **asked)
        regex.join([f"^{unique}-.*"])
        uniform.rest(total), ranged.rest(total), regex.rest(total)
        followed.round_until(lambda: not findings(followed, uniform.group))

        uniform.start(names)
        ranged.start(names, group_instance_id="r", **asked)
        uniform.rest(total), ranged.rest(total)
        uniform.leave(first)
        first = uniform.join(names, **static)
        uniform.rest(total)
        leaves = time.time() * 1000
        uniform.stop(late)
        owned = {party.group: party.rest(total) for party in parties}
        produce(bootstrap, topics)
        for party in parties:
            for consumer in party.consumers:
                party.commit(consumer, RECORDS + 2)

        followed.round_until(lambda: all(party.has_read_all(followed) for party in parties))
        now = time.time() * 1000
        groups = [party.group for party in parties]
        assert_as_the_tool_says(followed, bootstrap, groups)
        for party in parties:
            described = {
                name: {(of.topic, number) for of in row.partitions or () for number in of.partitions}
                for name, row in followed.members(party.group).items()
            }
            assert described == owned[party.group]
            health = followed.health(party.group)
            assert (health.state, health.findings, health.group_type) == ("Stable", (), "consumer")
            assert health.imbalance is not None
            assert health.imbalance_optimal is not None
            churn, drift = followed.churn(party.group), followed.drift(party.group)
            assert {row.kind for row in churn} == {"rebalance"}
            assert [(row.generation, drift[row.decision].verdict, drift[row.decision].reason) for row in churn] == [
                (row.generation, "identical", None) for row in churn
            ]
            assert None not in {row.partitions_moved for row in churn}
            # Only a topic of different subscriptions that no round had named by then can make it unknown.
            assert None not in {row.partitions_moved_optimal for row in churn} or party is regex
            # All members own their targets, and have committed: members that gave partitions up had recorded until when
            # they owned them, and the one that left had committed before.
            newest = churn[-1]
            assert newest.partitions_moved
            # The partitions of a member that leaves have no owner even before the decision.
            assert (
                newest.unassigned_partition_seconds_min
                < newest.partitions_moved * (now - min(leaves, newest.record_time)) / 1000
            )
            assert newest.unassigned_partition_seconds_max < newest.partitions_moved * (now - began) / 1000
        racks = {row.rack for row in followed.members(uniform.group).values()}
        assert racks == {"rack-a", None}
        (replaced,) = [one for row in followed.churn(uniform.group) for one in row.replaced]
        assert (replaced.group_instance_id, replaced.new_member_id) == ("till-1", first.memberid())
        assert [row.subscription for row in followed.members(regex.group).values() if row.rack] == [(names[0],)]


@pytest.mark.nightly
def test_a_live_migration_to_the_new_protocol_and_back_is_one_group_with_one_history(
    bootstrap: str, unique: str, java: JavaMembers
) -> None:
    topics = {unique: 6}
    make_topics(bootstrap, topics)
    produce(bootstrap, topics)
    with Followed(bootstrap, unique) as followed, Party(bootstrap, java, f"{unique}-app") as party:

        def settled() -> None:
            owned = party.rest(6)
            followed.round_until(lambda: owns(followed, party.group, owned))

        one, two = party.join([unique], "classic"), party.start([unique], "classic")
        settled()
        new = party.join([unique])
        settled()
        assert followed.health(party.group).group_type == "consumer"
        party.leave(one)
        settled()
        party.stop(two)
        third = party.start([unique])
        settled()
        produce(bootstrap, topics)
        party.commit(new, RECORDS + 2)
        followed.round_until(lambda: party.has_read_all(followed))
        assert_as_the_tool_says(followed, bootstrap, [party.group])

        back = party.join([unique], "classic")
        settled()
        party.leave(new)
        settled()
        party.stop(third)
        settled()
        party.start([unique], "classic")
        settled()
        produce(bootstrap, topics)
        party.commit(back, 2 * RECORDS + 1)
        followed.round_until(lambda: party.has_read_all(followed))
        assert_as_the_tool_says(followed, bootstrap, [party.group])
        health = followed.health(party.group)
        assert (health.group_type, health.state, health.members) == ("classic", "Stable", 2)

        churn = followed.churn(party.group)
        upgrade, downgrade = [row for row in churn if row.kind == "migration"]
        assert (upgrade.protocol_type, upgrade.joined, upgrade.left, upgrade.partitions_moved) == (
            "consumer",
            (),
            (),
            0,
        )
        assert upgrade.generation == upgrade.previous_generation
        assert (downgrade.protocol_type, downgrade.strategy, downgrade.joined) == ("consumer", "range", ())
        assert (len(downgrade.left), downgrade.partitions_moved) == (1, 0)
        after = churn[churn.index(downgrade) + 1]
        # The partitions of the last member of the new protocol go to the remaining one.
        assert (after.follows, after.partitions_moved) == (
            downgrade.decision,
            downgrade.partitions_pending_handover,
        )
        assert len({row.incarnation for row in churn if row.kind != "created"}) == 1
        assert {row.kind for row in churn} <= {"created", "rebalance", "migration"}
        drift = followed.drift(party.group)
        assert drift[upgrade.decision].reason == (
            "the group was upgraded from the classic protocol: this is the assignment it had"
        )
        assert drift[downgrade.decision].verdict == "unverified"
        assert [
            (drift[row.decision].verdict, drift[row.decision].reason) for row in churn if row.kind == "rebalance"
        ] == [("identical", None)] * sum(row.kind == "rebalance" for row in churn)
        rows = followed.rows[f"g:{party.group}"]
        assert not any(row.ended for row in (*rows.lag, *rows.group_health))


def test_a_share_group_has_its_members_state_and_partitions_and_is_identical(
    bootstrap: str, unique: str, tmp_path: Path
) -> None:
    make_topics(bootstrap, {unique: 4})
    group = f"{unique}-share"
    with ExitStack() as consuming:
        followed = consuming.enter_context(Followed(bootstrap, unique))

        def own(number: int) -> bool:
            members = followed.members(group).values() if f"g:{group}" in followed.rows else ()
            return len(members) == number and all(row.partition_count for row in members)

        for number in (1, 2):
            log = tmp_path / f"{number}.log"
            consuming.enter_context(closing(share_consumer(bootstrap, unique, group, log=log)))
            followed.round_until(partial(own, number))
        state, members = describe_share_group(bootstrap, group)
        health = followed.health(group)
        assert (health.group_type, health.state, health.members) == ("share", state, len(members))
        assert (health.verdict, health.imbalance, health.imbalance_optimal) == ("identical", 0.0, 0.0)
        assert {
            name: (
                row.client_host,
                row.client_id,
                {(of.topic, n) for of in row.partitions or () for n in of.partitions},
            )
            for name, row in followed.members(group).items()
        } == members
        offsets = {place: row.committed_offset for place, row in followed.lag(group).items()}
        said = {place: start for place, (start, _) in share_group_offsets(bootstrap, group).items()}
        assert offsets.items() <= said.items()
        churn = followed.churn(group)
        # The first target is empty, then one member has all, then it gives two to the other.
        assert [row.partitions_moved for row in churn][-1] == 2
        assert {(row.protocol_type, row.partitions_moved_optimal) for row in churn} == {("share", None)}
        assert {row.verdict for row in followed.drift(group).values()} == {"identical"}


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("protocols", [("consumer",), ("classic", "consumer")])
def test_while_members_join_and_leave_owners_are_the_broker_s_and_nothing_drifts(
    bootstrap: str, unique: str, java: JavaMembers, protocols: tuple[str, ...]
) -> None:
    chance = random.Random(unique)
    topics = {f"{unique}-{number}": chance.randint(1, 7) for number in range(4)}
    make_topics(bootstrap, topics)
    produce(bootstrap, topics)
    total = sum(topics.values())
    with Followed(bootstrap, unique) as followed, Party(bootstrap, java, f"{unique}-app") as party:
        for _ in range(STEPS):
            members = [*party.consumers, *party.names]
            if members and chance.random() < 0.2 + 0.1 * len(members):
                leaving = chance.choice(members)
                if isinstance(leaving, str):
                    party.stop(leaving)
                else:
                    party.leave(leaving)
            elif chance.random() < 0.5:
                party.join(list(topics), chance.choice(protocols))
            else:
                party.start(list(topics), chance.choice(protocols))
            if not party.consumers and not party.names:
                continue
            owned = party.rest(total)
            followed.round_until(partial(owns, followed, party.group, owned))
        followed.round_until(lambda: not findings(followed, party.group))
        churn, drift = followed.churn(party.group), followed.drift(party.group)
        assert len(churn) >= STEPS // 2
        assert "drifted" not in {row.verdict for row in drift.values()}
        judged = [row for row in churn if row.kind == "rebalance" and row.members]
        # Targets that the next member's join replaces at once are not judged.
        identical = sum(drift[row.decision].verdict == "identical" for row in judged if row.decision in drift)
        assert identical >= 0.9 * len(judged), [drift[row.decision].reason for row in judged]
        assert not any(row.ended for row in followed.rows[f"g:{party.group}"].group_health)
