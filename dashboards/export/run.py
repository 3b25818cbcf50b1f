"""`evenkeel export`: a board as text."""

from __future__ import annotations

from dashboards.export.promql import BOARD
from streaming.exceptions import SetupError

__all__ = ["export"]


def export() -> str:
    """A board for Grafana over Prometheus, which scrapes `/metrics`, as Grafana imports it; always the same text.

    Raises:
        SetupError: Grafana's types are not installed.
    """
    try:
        from dashboards.export.grafana import grafana_json  # noqa: PLC0415 - an extra, which only this needs
    except ModuleNotFoundError as missing:
        message = f"Boards for Grafana need the package {missing.name}: install evenkeel[export]."
        raise SetupError(message) from None
    return grafana_json(BOARD)
