"""JVM flags for the tests' own Java programs, which live for seconds."""

from __future__ import annotations

# A fifth of a JVM's start is the verification of bytecode, which is not needed for jars with a verified SHA-256.
UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")

# The second compiler and the parallel collector would only occupy the other core (as explained for Spark in
# conf/spark-defaults.conf).
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *UNVERIFIED)
