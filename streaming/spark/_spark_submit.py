"""Start the JVM of a session as Spark's `bin/spark-submit` does, but without a shell.

`prepared.py` writes this file as `bin/spark-submit` of the prepared home, so it imports only the standard library.
Spark's own script asks `org.apache.spark.launcher.Main` for the command, which takes half a second of processor time
and bash. Here the command is put together from the same facts (`SparkSubmitCommandBuilder` and `JavaModuleOptions` of
Spark 4.2.0); a test compares both. What else is asked for goes to Spark's script.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)
_MODULES = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)


def command_of(arguments: Sequence[str]) -> list[str] | None:
    """The command of a session's JVM; None where the arguments ask for something else.

    Args:
        arguments: As pyspark gives them: `--conf name=value` as often as wanted, `--properties-file`, `pyspark-shell`.
    """
    options, last = arguments[:-1], arguments[-1:]
    if list(last) != ["pyspark-shell"] or not set(options[::2]) <= {"--conf", "--properties-file"}:
        return None
    given = dict(zip(options[1::2], options[::2], strict=True))
    files = [Path(value) for value, option in given.items() if option == "--properties-file"]
    properties = dict(line for file in files for line in _properties(file))
    properties |= dict(value.split("=", 1) for value, option in given.items() if option == "--conf")
    home, java = os.environ["SPARK_HOME"], os.environ.get("JAVA_HOME")
    logging = next(Path(home, "jars").glob("slf4j-api-*.jar"))
    added = properties.get("spark.driver.extraClassPath")
    class_path = [*([added] if added else []), f"{os.environ['SPARK_CONF_DIR']}/", str(logging), f"{home}/jars/*"]
    return [
        f"{java}/bin/java" if java else "java",
        *("-cp", os.pathsep.join(class_path)),
        *shlex.split(os.environ.get("SPARK_SUBMIT_OPTS", "")),
        f"-Xmx{properties.get('spark.driver.memory', '1g')}",
        *shlex.split(properties.get("spark.driver.defaultJavaOptions", "")),
        *shlex.split(properties.get("spark.driver.extraJavaOptions", "")),
        *_MODULES,
        "org.apache.spark.deploy.SparkSubmit",
        *arguments,
    ]


def _properties(file: Path) -> Iterator[tuple[str, str]]:
    for line in file.read_text("utf-8").splitlines():
        name, _, value = line.strip().partition(" ")
        if name and not name.startswith("#"):
            yield name, value.strip()


if __name__ == "__main__":
    command = command_of(sys.argv[1:])
    os.environ["PYTHONHASHSEED"] = "0"  # as Spark's script sets it for the workers
    os.environ["SPARK_ENV_LOADED"] = "1"
    if command is None:
        sparks = str(Path(os.environ["SPARK_HOME"], "bin", "spark-submit.sh"))
        command = [sparks, *sys.argv[1:]]
    os.execvp(command[0], command)  # noqa: S606
