"""An address that a process listens on, as the settings have it."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_LISTEN = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+):(\d{1,5})")


def _checked(address: str) -> str:
    found = _LISTEN.fullmatch(address)
    if found is None or not 0 <= int(found[2]) <= 65_535:
        message = "it must be an address and a port, like 127.0.0.1:8090 or [::1]:8090"
        raise ValueError(message)
    return address


ListenAddress = Annotated[str, AfterValidator(_checked)]
"""\"address:port\"; an IPv6 address in brackets."""


def host_and_port(address: ListenAddress) -> tuple[str, int]:
    """Address, without brackets, and port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
