"""Real groups whose coordinator is killed and comes back, on two real brokers: the rows say that it moved."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from streaming.offsets_log import partition_for
from streaming.probe import RoundAbandonedError
from tests.oracle.java_classes import JavaMembers
from tests.oracle.members_process import MembersProcess
from tests.pair_of_brokers import Pair
from tests.probe.witness import Cluster
from tests.real_groups.followed import Followed, until
from tests.real_groups.real_members import LibrdkafkaMembers

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("pair"), pytest.mark.turn(3)]

LOG_PARTITIONS = 8
PREFERRED = 0  # election type on the wire (KIP-460)
GROUPS = int(os.environ.get("CAUSE_GROUPS", "28"))
"""For each library and protocol; half of them are coordinated by the broker that is killed."""

# As the tests' names have it, with the protocol.
_LIBRDKAFKA, _JAVA, _JAVA_MODERN = ("rd", "classic"), ("java", "classic"), ("java", "consumer")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kinds", "groups_of_each"),
    [
        pytest.param((_LIBRDKAFKA,), 2, id="two groups"),
        pytest.param(
            (_LIBRDKAFKA, _JAVA, _JAVA_MODERN),
            GROUPS,
            id="many groups",
            marks=[pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(0)],
        ),
    ],
)
def test_a_coordinator_that_dies_and_comes_back_is_named_by_its_node_id(
    pair: Pair, unique: str, kinds: tuple[tuple[str, str], ...], groups_of_each: int
) -> None:
    topic = f"{unique}-orders"
    admin = KafkaAdminClient(bootstrap_servers=pair.first.bootstrap)
    admin.create_topics({topic: {"assignments": {number: [1, 2] for number in range(6)}}}, wait_for_metadata=True)
    Cluster(pair.first.bootstrap, unique, admin).commit("seed", topic, [0] * 6)  # The offsets log exists from now on.

    # The client may ask the broker that has just been killed.
    @retry(
        retry=retry_if_exception_type(KafkaConnectionError),
        wait=wait_fixed(0.1),
        stop=stop_after_delay(60),
        reraise=True,
    )
    def led_by(node: int) -> set[int]:
        [log] = admin.describe_topics(["__consumer_offsets"])
        return {part["partition_index"] for part in log["partitions"] if part["leader_id"] == node}

    def elect() -> None:
        admin.elect_leaders(PREFERRED, raise_errors=False)

    [log] = admin.describe_topics(["__consumer_offsets"])
    second = {part["partition_index"] for part in log["partitions"] if part["replica_nodes"][0] == 2}
    assert 0 < len(second) < LOG_PARTITIONS
    until(lambda: led_by(2) == second, elect)
    with ExitStack() as stack:
        followed = stack.enter_context(Followed(pair.bootstrap, unique, interval_ms=1_000))
        starts = {"rd": LibrdkafkaMembers, "java": lambda: JavaMembers("4.3.1")}
        processes: dict[str, MembersProcess] = {
            library: stack.enter_context(starts[library]()) for library in sorted({library for library, _ in kinds})
        }
        groups: dict[str, tuple[MembersProcess, str]] = {}
        for library, protocol in kinds:
            names = (f"{unique}-{library}-{protocol}-{number}" for number in range(1_000))
            of_kind = {True: 0, False: 0}
            for name in names:
                of_second = partition_for(name, LOG_PARTITIONS) in second
                if of_kind[of_second] < groups_of_each // 2:
                    of_kind[of_second] += 1
                    groups[name] = processes[library], protocol
        size = 0

        def join() -> None:
            nonlocal size
            size += 1
            for name, (process, protocol) in groups.items():
                config = {"bootstrap.servers": pair.bootstrap, "group.id": name, "group.protocol": protocol}
                if process is processes["rd"]:
                    config["log_level"] = "0"
                process.start((topic,), config | {"enable.auto.commit": "false"})

        def all_decided() -> bool:
            newest = {name: followed.churn(name)[-1:] for name in groups}
            return all(rows and rows[0].members == size for rows in newest.values())

        def try_round() -> None:
            try:
                followed.round()
            except RoundAbandonedError:
                return

        def settle() -> dict[str, set[str]]:
            """The causes of all decisions since the last call, by group."""
            until(all_decided, try_round)
            found = {}
            for name in groups:
                rows = followed.churn(name)
                found[name] = {cause.cause for row in rows[told.get(name, 0) :] for cause in row.causes or ()}
                told[name] = len(rows)
            return found

        told: dict[str, int] = {}
        join()
        settle()
        pair.second.kill()
        until(lambda: not led_by(2), try_round)
        join()
        went = settle()
        pair.second.start()
        until(lambda: led_by(2) == second, elect, try_round)
        join()
        came = settle()
        assert [process.failures for process in processes.values()] == [[] for _ in processes]
    admin.close()
    for name in groups:
        of_second = partition_for(name, LOG_PARTITIONS) in second
        assert ("coordinator_moved" in went[name]) == of_second, (name, went[name])
        assert ("coordinator_moved" in came[name]) == of_second, (name, came[name])
    print(f"{len(groups)} groups, {sum(partition_for(name, LOG_PARTITIONS) in second for name in groups)} of broker 2")
