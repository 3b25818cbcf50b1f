"""Find the Java that runs Spark and the embedded broker, and say in one sentence what is wrong with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from streaming.exceptions import SetupError

OLDEST_RELEASE = 17
"""Spark 4.x and Kafka 4.x are compiled for Java 17; an older JVM refuses their classes."""

NEWEST_NAMED_RELEASE = 25
"""Spark 4.2's documentation names Java 17, 21 and 25 (SPARK-51167). A newer one is let through, since it may well work
and a refusal would be a guess; `java_release` lets the caller mention it."""

_VERSION_TIMEOUT_S = 60
"""`java -version` takes 0.1 s; a minute allows for a busy machine or a cold disk."""


def find_java() -> Path:
    """Return the `java` program to run: the one in `JAVA_HOME` if that is set, else the first on the `PATH`.

    Spark's own `spark-class` looks in the same order, so that job and broker never run on different releases.

    Raises:
        SetupError: There is none, it does not start, or it is older than `OLDEST_RELEASE`.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            message = (
                f"JAVA_HOME is {home}, but there is no program {java}: "
                f"point it at a JDK {OLDEST_RELEASE} or newer, or unset it."
            )
            raise SetupError(message)
    else:
        found = shutil.which("java")
        if found is None:
            message = (
                f"No Java was found: install a JDK {OLDEST_RELEASE} or newer, and put it on the PATH or set JAVA_HOME."
            )
            raise SetupError(message)
        java = Path(found)
    release = java_release(java)
    if release < OLDEST_RELEASE:
        message = (
            f"{java} is Java {release}, and Spark and Kafka need {OLDEST_RELEASE} or newer: "
            "install one and set JAVA_HOME to it."
        )
        raise SetupError(message)
    return java


@lru_cache(maxsize=8)
def java_release(java: Path) -> int:
    """Return the feature release of a Java program: 17 for 17.0.15, 8 for 1.8.0_392.

    Raises:
        SetupError: It does not start, or prints no version (macOS has such a stub in place of a missing JDK).
    """
    try:
        said = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"{java} does not start ({error}): install a JDK {OLDEST_RELEASE} or newer and set JAVA_HOME."
        raise SetupError(message) from error
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if version is None:
        message = f"{java} is not a working Java: install a JDK {OLDEST_RELEASE} or newer and set JAVA_HOME to it."
        raise SetupError(message)
    return int(version.group(1))
