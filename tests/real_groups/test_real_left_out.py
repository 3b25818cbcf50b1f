"""Groups of a real broker that assigns: topics that are missing, grow or go while their members send no heartbeat."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.real_groups.followed import Followed, until
from tests.real_groups.party import make_topics
from tests.real_groups.real_members import LibrdkafkaMembers

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]

_GRACE_MS = 5_000


def is_stable(admin: AdminClient, group: str) -> bool:
    """Whether the group has come to rest; a broker that never had a group first makes the offsets log."""
    try:
        return bool(admin.describe_consumer_groups([group])[group].result().state.name == "STABLE")
    except KafkaException:
        return False


@pytest.mark.nightly
def test_what_the_target_lacks_is_found_while_it_lasts_and_gone_with_the_next_heartbeat(
    bootstrap: str, unique: str
) -> None:
    there, missing = f"{unique}-there", f"{unique}-missing"
    group = f"{unique}-app"
    make_topics(bootstrap, {there: 2})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with Followed(bootstrap, unique, grace_ms=_GRACE_MS) as followed, LibrdkafkaMembers() as members:

        def findings() -> list[tuple[str, str]]:
            return [(one.finding, one.detail) for one in followed.health(group).findings]

        def owned() -> int:
            known = f"g:{group}" in followed.rows
            return sum(row.member_id is not None for row in followed.lag(group).values()) if known else 0

        members.start(
            [there, missing],
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "allow.auto.create.topics": "false",
            },
        )
        until(lambda: is_stable(admin, group))
        followed.round_until(lambda: owned() == 2)
        followed.round_until(lambda: findings() == [("topic_not_visible", f"subscribed, but not visible: {missing}")])
        make_topics(bootstrap, {missing: 1})
        followed.round_until(lambda: not findings() and owned() == 3)

        members.pause()
        try:
            admin.create_partitions([NewPartitions(there, 5)])[there].result()
            grown = f"{there} (2 to 5 partitions)"
            stale = f"new partitions that the coordinator's target does not have: {grown}"
            followed.round_until(lambda: findings() == [("stale_metadata", stale)])
            followed.round_until(lambda: findings() == [("unassigned", f"partitions without an owner: {grown}")])
            (finding,) = followed.health(group).findings
            assert followed.health(group).round_time - finding.since >= _GRACE_MS
        finally:
            members.resume()
        followed.round_until(lambda: not findings() and owned() == 6)
        assert "drifted" not in {row.verdict for row in followed.drift(group).values()}


@pytest.mark.nightly
def test_a_deleted_topic_of_a_regular_expression_is_found_while_the_target_has_it_and_never_afterwards(
    bootstrap: str, unique: str
) -> None:
    stays, goes = f"{unique}-stays", f"{unique}-goes"
    group = f"{unique}-app"
    make_topics(bootstrap, {stays: 2, goes: 1})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with Followed(bootstrap, unique, grace_ms=_GRACE_MS) as followed, LibrdkafkaMembers() as members:

        def findings() -> list[str]:
            return [one.finding for one in followed.health(group).findings]

        def newest() -> int:
            return followed.rows["r:"].rounds[-1].round_time

        def owned() -> set[str]:
            rows = followed.lag(group).items() if f"g:{group}" in followed.rows else ()
            return {topic for (topic, _), row in rows if row.member_id is not None}

        # A Java 4.3.1 consumer that owns a topic that is deleted while it is stopped can stay in reconciliation.
        config = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"}
        members.start([f"^{unique}-.*"], config)
        until(lambda: is_stable(admin, group))
        followed.round_until(lambda: owned() == {stays, goes} and not findings())
        members.pause()
        try:
            admin.delete_topics([goes])[goes].result()
            followed.round_until(lambda: findings() == ["topic_not_visible"])
            (finding,) = followed.health(group).findings
            assert finding.detail == f"subscribed, but not visible: {goes}"
        finally:
            members.resume()
        followed.round_until(lambda: not findings() and owned() == {stays})
        # The broker has not resolved the expression again; the grace is over long after that.
        began = newest()
        seen: set[str] = set()

        def turn() -> None:
            followed.round()
            seen.update(findings())

        until(lambda: newest() > began + _GRACE_MS + 1_000, turn)
        assert seen == set()
