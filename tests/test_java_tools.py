"""The output of Kafka's own programs is parsed correctly, whatever a group is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

from tests.java_tools import (
    GroupOffset,
    JavaToolError,
    describe_all_groups,
    parse_group_offsets,
    run_java,
)

_PRINTED = Path(__file__).with_name("data") / "describe_all_groups.txt"
"""Output of `kafka-consumer-groups --describe --all-groups` of Kafka 4.3.1 for three groups, with changed numbers."""


def test_a_printed_table_is_read_whatever_the_group_is_called() -> None:
    member = ("kafka-python-3.0.12-f7d6444f-f839-44fe-9e5f-9358d11aad95", "/127.0.0.1", "kafka-python-3.0.12")
    assert parse_group_offsets(_PRINTED.read_text("utf-8")) == [
        GroupOffset("../../etc/passwd", "t1", 0, 5, 0, -5, None, None, None),
        GroupOffset("live group", "t1", 0, None, 12, None, *member),
        GroupOffset("live group", "t.2_x-y", 10, 7, 12, 5, *member),
        GroupOffset("new\nline", "t1", 0, 5, 9, 4, None, None, None),
    ]


@pytest.mark.kafka
@pytest.mark.java
def test_kafkas_own_tool_sees_the_commits_of_hostile_groups(bootstrap: str, unique: str) -> None:
    groups = [f'{unique} "quoted" it\'s', f"{unique}\nnew line", f"<b>{unique}</b>", f"../{unique}"]
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(unique, 1, 1)])
    admin.close()
    for number, group in enumerate(groups):
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
        partition = TopicPartition(unique, 0)
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(number, "", -1)})
        consumer.close()
    seen = {row.group: row.current_offset for row in describe_all_groups(bootstrap) if row.topic == unique}
    assert seen == {group: number for number, group in enumerate(groups)}


@pytest.mark.java
def test_a_tool_that_fails_is_an_error_with_its_words() -> None:
    with pytest.raises(JavaToolError, match=r"failed .exit code 1.: .*bootstrap-server"):
        run_java(["org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--list"])
