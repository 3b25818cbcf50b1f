"""Group members that run Kafka's own Java consumer of one release, all in one JVM."""

from __future__ import annotations

import os
from pathlib import Path

from streaming.jars import classpath
from streaming.java import find_java
from tests.oracle.members_process import MembersProcess

__all__ = ["JavaMembers"]


class JavaMembers(MembersProcess):
    """The JVM; a context manager, at whose end all remaining members crash."""

    def __init__(self, release: str) -> None:
        super().__init__(
            [
                str(find_java()),
                "-Xmx512m",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                os.pathsep.join(map(str, classpath(f"clients-{release}"))),
                str(Path(__file__).with_name("GroupMembers.java")),
            ]
        )
