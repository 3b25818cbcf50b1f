"""What every embedded broker of the tests would otherwise repeat: load its classes and format its folder.

`prepare` starts one broker and keeps, in `.cache/tests`, an archive of the classes that it loaded (class data sharing)
and its folder as it was formatted. With both, a broker answers after half the processor time. Kafka's own tools have an
archive as well, for the same reason.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from streaming.demo import java_member
from streaming.demo.broker import EmbeddedBroker, _cluster_id
from streaming.exceptions import SetupError
from streaming.jars import classpath, find_java
from tests.java_tools import describe_all_groups
from tests.short_lived import SHORT_LIVED

_CACHE = Path(__file__).resolve().parents[1] / ".cache" / "tests"


def prepare() -> None:
    """Write the archives and the formatted folder if they are missing; takes ten seconds, once per checkout."""
    try:
        folder = _folder()
    except SetupError:
        return  # no Java or no jars: the tests that need a broker say so
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        part = Path(made) / "part"
        broker = EmbeddedBroker(part / "broker")
        broker.folder.mkdir(parents=True)
        broker._write_settings()
        broker._format()
        shutil.copytree(broker.folder / "data", part / "data")
        EmbeddedBroker.jvm = (*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={part / 'classes.jsa'}")
        with broker:
            java_member.JVM[:] = [*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={part / 'tools.jsa'}"]
            describe_all_groups(broker.bootstrap)
        shutil.rmtree(broker.folder)
        with suppress(OSError):  # another run of the tests was first
            part.rename(folder)


def use_what_is_prepared() -> None:
    """Let this process's brokers and tools use the archives and the formatted folder, as far as they exist."""
    EmbeddedBroker.jvm = SHORT_LIVED
    java_member.JVM[:] = SHORT_LIVED
    try:
        folder = _folder()
    except SetupError:
        return
    if not folder.exists():
        return
    # Without the log line, a JVM would say on its standard output that it does not use an archive of other jars.
    quiet = "-Xlog:disable", "-Xlog:all=error:stderr"
    EmbeddedBroker.jvm += (f"-XX:SharedArchiveFile={folder / 'classes.jsa'}", *quiet)
    java_member.JVM += [f"-XX:SharedArchiveFile={folder / 'tools.jsa'}", *quiet]

    def copy(broker: EmbeddedBroker) -> None:
        data = broker.folder / "data"
        shutil.copytree(folder / "data", data, dirs_exist_ok=True)
        properties = data / "meta.properties"
        lines = re.sub(r"(?m)^cluster\.id=.*$", f"cluster.id={_cluster_id()}", properties.read_text("utf-8"))
        properties.write_text(lines, "utf-8")

    EmbeddedBroker._format = copy  # type: ignore[method-assign]


def _folder() -> Path:
    # A JVM takes an archive only with the very same jars; their names hold the versions.
    jars = [*classpath("broker"), *classpath("tools")]
    told = f"{find_java().resolve()} {os.pathsep.join(map(str, jars))}"
    return _CACHE / f"broker-{hashlib.sha256(told.encode()).hexdigest()[:12]}"
