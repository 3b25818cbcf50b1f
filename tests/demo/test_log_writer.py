"""An offset with its own retention expires, and no other does."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.demo.log_writer import CommitRefusedError, commit_with_retention

pytestmark = pytest.mark.kafka


@pytest.mark.nightly
def test_only_the_commit_with_a_retention_expires(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path, overrides={**DEMO_OVERRIDES, "offsets.retention.check.interval.ms": "500"}) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics([NewTopic("t", 2, 1)])
        keeper = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="keeps", enable_auto_commit=False)
        keeper.assign([TopicPartition("t", 0)])
        keeper.commit({TopicPartition("t", 0): OffsetAndMetadata(1, "", -1)})
        keeper.close()
        commit_with_retention(admin, "expires", "t", [7, 8], 3_000)
        committed = admin.list_group_offsets({"expires": None})["expires"]
        assert {tp.partition: at.offset for tp, at in committed.items()} == {0: 7, 1: 8}
        log = KafkaConsumer(bootstrap_servers=broker.bootstrap, enable_auto_commit=False, auto_offset_reset="earliest")
        log.assign([TopicPartition("__consumer_offsets", partition) for partition in range(50)])
        versions: list[int | None] = []
        while versions.count(None) < 2:  # the two tombstones; pytest's own timeout ends a test that waits in vain
            for records in log.poll(1_000).values():
                values = [record.value for record in records if record.key.startswith(b"\0\1\0\7expires")]
                versions.extend(None if value is None else int.from_bytes(value[:2], "big") for value in values)
        log.close()
        assert versions == [1, 1, None, None]
        assert admin.list_group_offsets({"expires": None})["expires"] == {}
        assert set(admin.list_group_offsets({"keeps": None})["keeps"]) == {TopicPartition("t", 0)}
        admin.close()


def test_a_refused_commit_names_partition_and_error_code(bootstrap: str, unique: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    with pytest.raises(CommitRefusedError, match=r"was refused, by topic and partition: .*, 0\): 3"):
        commit_with_retention(admin, unique, f"{unique}-no-such-topic", [1], 1_000)
    admin.close()
