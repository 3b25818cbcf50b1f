"""The metrics of other exporters: their names, types and labels, and our numbers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import nan
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as of_text

from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.serve.client import Served, add_other_cluster

_KLE = "cluster_name group topic partition member_host consumer_id client_id"

# Labels by name, written down from the sources of the releases that docs/metrics.md names. All are gauges there.
NAMES = {
    "kafka-lag-exporter": {
        "kafka_consumergroup_poll_time_ms": "cluster_name",
        "kafka_consumergroup_group_max_lag": "cluster_name group",
        "kafka_consumergroup_group_max_lag_seconds": "cluster_name group",
        "kafka_consumergroup_group_sum_lag": "cluster_name group",
        "kafka_consumergroup_group_topic_sum_lag": "cluster_name group topic",
        "kafka_consumergroup_group_lag": _KLE,
        "kafka_consumergroup_group_lag_seconds": _KLE,
        "kafka_consumergroup_group_offset": _KLE,
        "kafka_partition_latest_offset": "cluster_name topic partition",
        "kafka_partition_earliest_offset": "cluster_name topic partition",
    },
    "kafka_exporter": {
        "kafka_consumergroup_members": "consumergroup",
        "kafka_consumergroup_lag_sum": "consumergroup topic",
        "kafka_consumergroup_current_offset_sum": "consumergroup topic",
        "kafka_consumergroup_lag": "consumergroup topic partition",
        "kafka_consumergroup_current_offset": "consumergroup topic partition",
        "kafka_topic_partitions": "topic",
        "kafka_topic_partition_current_offset": "topic partition",
        "kafka_topic_partition_oldest_offset": "topic partition",
    },
    "kminion": {
        "kminion_exporter_up": "version",
        "kminion_kafka_consumer_group_info": "group_id protocol protocol_type state coordinator_id",
        "kminion_kafka_consumer_group_members": "group_id",
        "kminion_kafka_consumer_group_empty_members": "group_id",
        "kminion_kafka_consumer_group_topic_lag": "group_id topic_name",
        "kminion_kafka_consumer_group_topic_offset_sum": "group_id topic_name",
        "kminion_kafka_consumer_group_topic_members": "group_id topic_name",
        "kminion_kafka_consumer_group_topic_assigned_partitions": "group_id topic_name",
        "kminion_kafka_consumer_group_topic_partition_lag": "group_id topic_name partition_id",
        "kminion_kafka_topic_high_water_mark_sum": "topic_name",
        "kminion_kafka_topic_low_water_mark_sum": "topic_name",
        "kminion_kafka_topic_partition_high_water_mark": "topic_name partition_id",
        "kminion_kafka_topic_partition_low_water_mark": "topic_name partition_id",
    },
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, serve_over: Callable[..., Served]) -> Served:
    """Two groups on one topic: one with lags, an idle member, a partition without a commit; one that knows no lag."""
    root = tmp_path_factory.mktemp("modes")
    lake = MadeLake(root, [])
    now = int(datetime.now(UTC).timestamp() * 1000)
    round_ = {"cluster": CLUSTER, "event_date": now // 86_400_000, "round": lake.last + 1, "round_time": now}
    lake.add(
        "group_health",
        round_ | {"group_id": "g", "ended": False, "findings": [], "state": "Stable", "members": 3, "strategy": "range",
                  "protocol_type": "consumer", "partitions": 3},
        round_ | {"group_id": "held", "ended": False, "findings": [], "state": "Empty", "members": 0},
    )  # fmt: skip
    head = {"cluster": CLUSTER, "event_date": now // 86_400_000, "group_id": "g", "decision": 1, "ended": False}
    lake.add("members", *(head | {"member_id": f"m{n}", "partition_count": n, "partitions": [], "subscription": []}
                          for n in range(3)))  # fmt: skip
    of = round_ | {"group_id": "g", "topic": "t", "ended": False, "subscribed": True, "log_start_offset": 5}
    lake.add(
        "lag",
        of | {"partition": 0, "committed_offset": 90, "high_watermark": 100, "lag": 10, "member_id": "m1",
              "client_id": "c1", "client_host": "/10.0.0.1", "oldest_unread_time_min": now - 40_000,
              "oldest_unread_time_max": now - 30_000},
        of | {"partition": 1, "committed_offset": 50, "high_watermark": 50, "lag": 0, "member_id": "m2",
              "client_id": "c2", "client_host": "/10.0.0.2", "oldest_unread_reason": "nothing_unread"},
        of | {"partition": 2, "high_watermark": 7, "reason": "no_commit", "member_id": "m2", "client_id": "c2",
              "client_host": "/10.0.0.2", "oldest_unread_reason": "lag_unknown"},
        of | {"group_id": "held", "partition": 0, "committed_offset": 20, "reason": "offsets_blocked",
              "round": lake.last, "high_watermark": 99},
    )  # fmt: skip
    lake.add("rounds", round_ | {"interval_ms": 10_000, "closed_time": now + 250})
    return serve_over(root, lake)


@pytest.mark.parametrize("mode", NAMES)
def test_names_types_and_labels_are_theirs(small: Served, mode: str) -> None:
    found = list(of_text(small.get(f"/metrics/{mode}").text))
    theirs = {family.name: family for family in found if not family.name.startswith("evenkeel_")}
    assert {name: set(labels.split()) for name, labels in NAMES[mode].items()} == {
        name: set(family.samples[0].labels) for name, family in theirs.items()
    }
    assert {family.type for family in theirs.values()} == {"gauge"}


@pytest.mark.parametrize("mode", NAMES)
def test_a_mode_may_be_a_parameter(small: Served, mode: str) -> None:
    lines = [small.get(where).text.split("\n") for where in (f"/metrics/{mode}", f"/metrics?mode={mode}")]
    theirs = [[line for line in found if "evenkeel_" not in line] for found in lines]
    assert theirs[0] == theirs[1]
    assert len(theirs[0]) > 10


_G = f'cluster_name="{CLUSTER}",group="g"'
_OF_M1 = f'{_G},topic="t",partition="0",member_host="/10.0.0.1",consumer_id="m1",client_id="c1"'
_OF_M2 = f'{_G},topic="t",partition="2",member_host="/10.0.0.2",consumer_id="m2",client_id="c2"'
_END = f'cluster_name="{CLUSTER}",topic="t",partition="0"'
_T = 'consumergroup="g",topic="t"'
_INFO = 'protocol="range",protocol_type="consumer",state="Stable",coordinator_id=""'
_TOPIC = 'group_id="g",topic_name="t"'
_PARTITION = 'topic_name="t",partition_id="0"'

# Values of series in each mode, and how a series of the group without a known lag would begin there.
VALUES: dict[str, tuple[dict[str, float], str]] = {
    "kafka-lag-exporter": (
        {
            f"kafka_consumergroup_group_lag{{{_OF_M1}}}": 10,
            f"kafka_consumergroup_group_lag_seconds{{{_OF_M1}}}": 30,
            f"kafka_consumergroup_group_offset{{{_OF_M1}}}": 90,
            f"kafka_consumergroup_group_lag{{{_OF_M2}}}": nan,
            f"kafka_consumergroup_group_offset{{{_OF_M2}}}": nan,
            f"kafka_consumergroup_group_max_lag{{{_G}}}": 10,
            f"kafka_consumergroup_group_sum_lag{{{_G}}}": 10,
            f"kafka_consumergroup_group_max_lag_seconds{{{_G}}}": 30,
            # The newest round of any group tells the ends of a partition.
            f"kafka_partition_latest_offset{{{_END}}}": 100,
            f"kafka_partition_earliest_offset{{{_END}}}": 5,
            f'kafka_consumergroup_poll_time_ms{{cluster_name="{CLUSTER}"}}': 250,
        },
        f'kafka_consumergroup_group_lag{{cluster_name="{CLUSTER}",group="held"',
    ),
    "kafka_exporter": (
        {
            f'kafka_consumergroup_lag{{{_T},partition="0"}}': 10,
            f'kafka_consumergroup_lag{{{_T},partition="2"}}': -1,
            f'kafka_consumergroup_current_offset{{{_T},partition="2"}}': -1,
            f"kafka_consumergroup_lag_sum{{{_T}}}": 10,
            f"kafka_consumergroup_current_offset_sum{{{_T}}}": 140,
            'kafka_consumergroup_members{consumergroup="g"}': 3,
            'kafka_topic_partition_current_offset{topic="t",partition="0"}': 100,
        },
        'kafka_consumergroup_lag{consumergroup="held"',
    ),
    "kminion": (
        {
            f'kminion_kafka_consumer_group_info{{group_id="g",{_INFO}}}': 1,
            'kminion_kafka_consumer_group_members{group_id="g"}': 3,
            'kminion_kafka_consumer_group_empty_members{group_id="g"}': 1,
            f"kminion_kafka_consumer_group_topic_members{{{_TOPIC}}}": 2,
            f"kminion_kafka_consumer_group_topic_assigned_partitions{{{_TOPIC}}}": 3,
            f"kminion_kafka_consumer_group_topic_lag{{{_TOPIC}}}": 10,
            f"kminion_kafka_consumer_group_topic_offset_sum{{{_TOPIC}}}": 140,
            f'kminion_kafka_consumer_group_topic_partition_lag{{group_id="g",{_PARTITION}}}': 10,
            f"kminion_kafka_topic_partition_high_water_mark{{{_PARTITION}}}": 100,
            f"kminion_kafka_topic_partition_low_water_mark{{{_PARTITION}}}": 5,
        },
        'kminion_kafka_consumer_group_topic_partition_lag{group_id="held"',
    ),
}


@pytest.mark.parametrize("mode", VALUES)
def test_values_are_ours_and_of_a_lag_that_is_not_known_there_is_none(small: Served, mode: str) -> None:
    values, of_held = VALUES[mode]
    found = {line: small.metric(line, f"/metrics/{mode}") for line in values}
    assert found == pytest.approx(values, nan_ok=True)
    assert of_held not in small.get(f"/metrics/{mode}").text


def test_a_topic_is_summed_and_counted_only_where_no_partition_can_be_missing(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    lake = MadeLake(tmp_path, [])
    now = int(datetime.now(UTC).timestamp() * 1000)
    round_ = {"cluster": CLUSTER, "event_date": now // 86_400_000, "round": lake.last + 1, "round_time": now}
    living = round_ | {"ended": False}
    groups = {"whole": (2, 2), "counts-three": (2, 3), "nobody-in-it": (0, 2), "not-known": (None, None)}
    for group, (members, partitions) in groups.items():
        lake.add("group_health", living | {"group_id": group, "findings": [], "state": "Stable", "members": members,
                                           "partitions": partitions})  # fmt: skip
        at = living | {
            "group_id": group,
            "high_watermark": 100,
            "log_start_offset": 5,
            "committed_offset": 50,
            "lag": 50,
        }
        lake.add(
            "lag",
            *(at | {"topic": f"of-{group}", "partition": n, "subscribed": True} for n in range(2)),
            at | {"topic": f"left-by-{group}", "partition": 0, "subscribed": False},
        )
    lake.add("rounds", round_ | {"interval_ms": 10_000})
    served = serve_over(tmp_path, lake)
    theirs = served.get("/metrics/kafka_exporter").text.split("\n")
    assert [line for line in theirs if line.startswith("kafka_topic_partitions{")] == [
        'kafka_topic_partitions{topic="of-whole"} 2'
    ]
    theirs = served.get("/metrics/kminion").text.split("\n")
    assert [line for line in theirs if "_mark_sum{" in line] == [
        'kminion_kafka_topic_high_water_mark_sum{topic_name="of-whole"} 200',
        'kminion_kafka_topic_low_water_mark_sum{topic_name="of-whole"} 10',
    ]


def test_a_sum_that_lacks_a_partition_is_absent(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    # The made lake does not know where logs begin.
    served = serve_over(
        tmp_path, MadeLake(tmp_path, [MadeGroup("g", topics={"t": 2}, lag=lambda _, partition: partition)])
    )
    text = served.get("/metrics/kminion").text
    assert 'kminion_kafka_topic_high_water_mark_sum{topic_name="t"} ' in text
    assert "kminion_kafka_topic_low_water_mark_sum" not in text


@pytest.mark.parametrize("mode", NAMES)
def test_a_silent_cluster_serves_no_lag_in_any_mode(small: Served, mode: str) -> None:
    small.quiet_s[CLUSTER] = 31.0
    try:
        found = {family.name for family in of_text(small.get(f"/metrics/{mode}").text)}
        assert {name for name in found if not name.startswith("evenkeel_")} <= {"kminion_exporter_up"}
        assert "evenkeel_round_age_seconds" in found
    finally:
        small.quiet_s.clear()


def test_names_without_a_cluster_need_one_where_there_are_two(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("g")])
    add_other_cluster(lake, "other")
    served = serve_over(tmp_path, lake)
    assert served.get("/metrics/kminion").status == 400
    assert served.get("/metrics/kafka-lag-exporter").status == 200
    assert 'group_id="g"' in served.get(f"/metrics/kminion?cluster={CLUSTER}").text
    assert 'group_id="g"' not in served.get("/metrics/kminion?cluster=other").text
    assert served.get("/metrics/kminion?cluster=nobody").status == 404
    assert served.get("/metrics/unknown").status == 404
