"""JVM flags for the tests' own Java programs, which live for seconds."""

from __future__ import annotations

__all__ = ["SHORT_LIVED"]

# The second compiler and the parallel collector would only occupy the other core (as explained for Spark in
# conf/spark-defaults.conf), and the jars' checksums are verified, so their bytecode need not be.
SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
