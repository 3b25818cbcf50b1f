"""One real RocketMQ cluster for the tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streaming.demo.rocketmq import EmbeddedRocketMQ


@pytest.fixture(scope="session")
def rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRocketMQ]:
    """Two brokers of 5.5.0 and two name servers, of which the second does not know broker-b.

    Tests that want a sound cluster use the first name server alone, and groups and topics of their own. A test that
    kills a server starts it again.
    """
    folder = tmp_path_factory.mktemp("rocketmq")
    with EmbeddedRocketMQ(folder, name_servers=2, registers={"broker-b": [0]}) as running:
        yield running
