"""The job's log: our own lines, and from the libraries only those that add something."""

from __future__ import annotations

import logging
import sys
from typing import Any

from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkRuntimeError

from streaming import lifecycle

_LOG = lifecycle.room_log(__name__)

_BROKEN = (EOFError, OSError, PySparkRuntimeError)


def set_up_log() -> None:
    """Log to stderr. We report a lost JVM in one line and silence the library tracebacks."""
    lifecycle.set_up_log({"kafka": logging.ERROR, "py4j": logging.CRITICAL})
    # py4j 0.10.9.9 logs one line on the root logger, to which its own level does not apply.
    logging.getLogger().addFilter(_is_not_py4js)
    # Spark's accumulator server reports the lost JVM from its own thread, sometimes after our line.
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        setattr(server, "handle_error", _tell)  # noqa: B010 - mypy takes an assignment for a mistake


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def _tell(_server: Any, _request: Any, _client: Any) -> None:
    """Called by `socketserver` when a connection has failed."""
    if not isinstance(sys.exc_info()[1], _BROKEN):
        _LOG.exception("Spark's server for accumulators has failed")
