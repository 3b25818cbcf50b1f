"""A member of a streams group: the word count of Kafka's own examples, in its own JVM (jar set `streams`)."""

from __future__ import annotations

from streaming.demo.java_member import has_read_all, java_command
from streaming.demo.stage import Stage
from streaming.process import GuardedProcess

WORDS = "streams-plaintext-input"
"""The topic that the application reads; the example does not let choose it."""

_COUNTS = "streams-wordcount-output"

_STOP_S = 20.0
"""It commits and leaves its group within a second; a JVM that is still starting finishes its start first."""


class WordCountMember:
    """One running instance, with one thread, so one member."""

    def __init__(self, group: str, client_id: str, stage: Stage) -> None:
        """Start its JVM."""
        folder = stage.folder / client_id
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "application.id": group,
            "bootstrap.servers": stage.bootstrap,
            "client.id": client_id,
            "group.protocol": "streams",
            "state.dir": str(folder / "state"),
            "commit.interval.ms": "1000",
            # Without RocksDB, whose library would be 70 MB.
            "dsl.store.suppliers.class": (
                "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers"
            ),
        }
        stage.create_topics({_COUNTS: 1})
        file = folder / "application.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), "utf-8")
        main = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
        self._process = GuardedProcess([*java_command("streams"), main, file], log=stage.folder / "members.log")
        self._stage, self._group = stage, group

    @property
    def settled(self) -> bool:
        """Whether its group has committed the ends of the topic that it reads."""
        return has_read_all(self._stage, self._group, WORDS)

    def leave(self) -> None:
        """Stop the JVM; the application leaves its group."""
        self._process.stop(_STOP_S)
