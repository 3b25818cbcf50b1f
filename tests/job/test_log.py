from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from py4j import java_gateway
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

from streaming.job.log import set_up_log


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AccumulatorTCPServer]:
    for kind in (AccumulatorTCPServer, AccumulatorUnixServer):
        monkeypatch.setattr(kind, "handle_error", kind.handle_error)
    root, levels = logging.getLogger(), {name: logging.getLogger(name).level for name in ("kafka", "py4j")}
    filters = list(root.filters)
    set_up_log()
    # (Without its constructor, which would open a socket.)
    yield AccumulatorTCPServer.__new__(AccumulatorTCPServer)
    root.filters[:] = filters
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize(("failure", "told"), [(EOFError(), 0), (ConnectionResetError(), 0), (KeyError("id"), 1)])
def test_a_connection_of_sparks_that_broke_is_not_told_and_every_other_failure_is(
    server: AccumulatorTCPServer,
    failure: Exception,
    told: int,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    try:
        raise failure  # noqa: TRY301
    except Exception:  # noqa: BLE001 - as socketserver does
        server.handle_error(None, ("127.0.0.1", 1))  # type: ignore[arg-type]
    assert len(caplog.records) == told
    assert "Exception occurred" not in capfd.readouterr().err


@pytest.mark.usefixtures("server")
def test_what_py4j_says_on_the_root_logger_is_left_out_and_what_others_say_there_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    root = logging.getLogger()
    for path in (java_gateway.__file__, __file__):
        root.handle(logging.LogRecord("root", logging.WARNING, path, 1, "said", None, None))
    assert [record.pathname for record in caplog.records] == [__file__]
