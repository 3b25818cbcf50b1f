"""Shared fixtures of the probe's tests: settings for one test's groups only, and real groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from kafka import KafkaAdminClient

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from tests.probe.secured import Secured, running
from tests.probe.witness import Cluster, MakeSettings


@pytest.fixture(scope="session")
def secured_broker(tmp_path_factory: pytest.TempPathFactory, until_its_group_ends: ExitStack) -> Secured:
    """One broker for the tests of logins, rights and TLS, which therefore share a group."""
    return until_its_group_ends.enter_context(running(tmp_path_factory.mktemp("secured")))


@pytest.fixture
def secured(secured_broker: Secured) -> Iterator[Secured]:
    """The secured broker; rights that a test grants end with the test."""
    yield secured_broker
    secured_broker.revoke_all()


@pytest.fixture
def cluster(bootstrap: str, unique: str) -> Iterator[Cluster]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    # The offsets log is created with the broker's first group.
    seed = Cluster(bootstrap, unique, admin)
    seed.commit("seed", seed.topic("seed", 1), [0])
    yield seed
    admin.close()


@pytest.fixture
def make_settings(bootstrap: str, unique: str) -> MakeSettings:
    """Settings for the test's own groups, without the seed, and with separate topics."""

    def make(
        bootstrap_servers: str = bootstrap,
        interval_ms: int = 200,
        *,
        cluster_topics: bool = False,
        **filters: tuple[str, ...],
    ) -> Settings:
        wanted: dict[str, tuple[str, ...]] = {"groups": (f"/^{unique}/",), "ignore_groups": (f"{unique}-seed",)}
        return Settings(
            cluster=unique,
            kafka=KafkaSettings(bootstrap_servers=bootstrap_servers),
            filters=Filters(**(wanted | filters)),
            probe=ProbeSettings(
                interval_ms=interval_ms,
                events_topic=f"{unique}.events",
                rounds_topic=f"{unique}.rounds",
                cluster_topics=cluster_topics,
            ),
        )

    return make


@pytest.fixture
def settings(make_settings: MakeSettings) -> Settings:
    return make_settings()
