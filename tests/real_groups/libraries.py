"""Members of each client library, each library in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.oracle.java_members import JavaMembers
from tests.oracle.members_process import MembersProcess
from tests.real_groups.real_members import LibrdkafkaMembers


class KafkaPythonMembers(MembersProcess):
    """Members of kafka-python in a separate process."""

    def __init__(self) -> None:
        super().__init__([sys.executable, "-m", "tests.real_groups.real_kafka_python"])


LIBRARIES: dict[str, Callable[[], MembersProcess]] = {
    "java": lambda: JavaMembers("4.3.1"),
    "librdkafka": LibrdkafkaMembers,
    "kafka-python": KafkaPythonMembers,
}
