"""Group members that run Kafka's own Java consumer of one release, all in one JVM."""

from __future__ import annotations

from pathlib import Path

from streaming.jars import classpath
from tests.oracle.java_classes import java_command
from tests.oracle.members_process import MembersProcess

__all__ = ["JavaMembers"]


class JavaMembers(MembersProcess):
    """The JVM; a context manager, at whose end all remaining members crash."""

    def __init__(self, release: str) -> None:
        source = Path(__file__).with_name("GroupMembers.java")
        super().__init__(java_command(source, classpath(f"clients-{release}"), "512m", against="clients-2.4.1"))
