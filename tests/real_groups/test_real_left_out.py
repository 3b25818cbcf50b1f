"""Groups of a real broker that assigns: topics that are missing, grow or go while their members send no heartbeat."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.oracle.java_members import JavaMembers
from tests.real_groups.followed import Followed
from tests.real_groups.party import RELEASE, make_topics
from tests.real_groups.real_members import LibrdkafkaMembers

pytestmark = pytest.mark.kafka

_GRACE_MS = 3_000


def test_what_the_target_lacks_is_found_while_it_lasts_and_gone_with_the_next_heartbeat(
    bootstrap: str, unique: str
) -> None:
    there, missing = f"{unique}-there", f"{unique}-missing"
    group = f"{unique}-app"
    make_topics(bootstrap, {there: 2})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with Followed(bootstrap, unique, _GRACE_MS) as followed, LibrdkafkaMembers() as members:

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
        # Nothing but what the test did: no decision of this group ever looked wrong.
        assert {row.verdict for row in followed.drift(group).values()} == {"identical"}


def test_a_topic_that_only_a_regular_expression_still_has_is_found_until_the_broker_resolves_it_again(
    bootstrap: str, unique: str
) -> None:
    stays, goes = f"{unique}-stays", f"{unique}-goes"
    group = f"{unique}-app"
    make_topics(bootstrap, {stays: 2, goes: 1})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with Followed(bootstrap, unique, _GRACE_MS) as followed, JavaMembers(RELEASE) as members:

        def findings() -> list[str]:
            return [one.finding for one in followed.health(group).findings]

        def owned() -> set[str]:
            rows = followed.lag(group).items() if f"g:{group}" in followed.rows else ()
            return {topic for (topic, _), row in rows if row.member_id is not None}

        config = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"}
        members.start([f"~{unique}-.*"], config)
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
