"""The settings of every process, from one place.

Order of precedence: command line, environment (`EVENKEEL_KAFKA__BOOTSTRAP_SERVERS`, `__` between the levels),
the TOML file (`EVENKEEL_CONFIG`, else the first `evenkeel.toml` of the places in `streaming/places.py`), defaults. The
file has an entry `[[clusters]]` for each cluster, with its connection (`sources.py`); `Settings` are those of one
cluster, and `fleet.py` reads those of all. `EVENKEEL_CLUSTERS__ORDERS__KAFKA__…` holds for the cluster "orders" alone.
Secrets are best given by file or by the environment; they are `SecretStr`, so they print as stars and appear in no
log, plan or page.

The module is long because each section of the file is a class, and all settings can be read in one place.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from assignors import UnknownLibrary, parse_library
from streaming.config.alerts import AlertSettings
from streaming.config.forms import ListenAddress, Pattern, fits, host_and_port
from streaming.config.kafka import KafkaSettings, Section
from streaming.config.rocketmq import RocketMQSettings
from streaming.config.sources import CHOSEN, cluster_variables, read_file
from streaming.exceptions import SetupError
from streaming.places import shipped
from streaming.terminal import printable
from streaming.times import DAY_MS


def _known(client: str) -> str:
    try:
        parse_library(client)
    except UnknownLibrary as error:
        raise ValueError(str(error)) from None
    return client


DeclaredLibrary = Annotated[str, AfterValidator(_known)]
"""A client library, such as "java" or "librdkafka:2.3"; one that is not known is refused."""


class Filters(Section):
    """Which groups and topics are watched.

    A pattern is a literal name, or a regular expression between slashes ("/^payments-.*/", searched as it
    stands). Ignore wins over watch.

    Attributes:
        groups: Watched groups; empty watches all.
        ignore_groups: Groups that are not watched.
        topics: Watched topics; empty watches all.
        ignore_topics: Topics that are not watched.
    """

    groups: tuple[Pattern, ...] = ()
    ignore_groups: tuple[Pattern, ...] = ()
    topics: tuple[Pattern, ...] = ()
    ignore_topics: tuple[Pattern, ...] = ()

    def watches_group(self, group: str) -> bool:
        """Whether a group is watched."""
        return _passes(group, self.groups, self.ignore_groups)

    def watches_topic(self, topic: str) -> bool:
        """Whether a topic is watched."""
        return _passes(topic, self.topics, self.ignore_topics)

    @property
    def hides_groups(self) -> bool:
        """Whether there may be groups that are not watched."""
        return bool(self.groups or self.ignore_groups)


class StrategyRule(Section):
    """Which strategy groups should run, and which client libraries they run.

    Attributes:
        groups: Literal name or "/regular expression/" of group ids.
        strategy: Protocol name, for example "cooperative-sticky"; of the rules that fit a group and name one, the first
            counts. None leaves it open.
        clients: Libraries that the members run, such as "java" or "librdkafka:2.3"; of the rules that fit a group and
            declare some, the first counts, then `Settings.clients`.
    """

    groups: Pattern
    strategy: str | None = Field(default=None, min_length=1)
    clients: tuple[DeclaredLibrary, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.strategy is None and not self.clients:
            message = "it names neither a strategy nor clients"
            raise ValueError(message)
        return self


@dataclass(frozen=True, slots=True)
class GroupRules:
    """What `strategies` and `clients` say of groups.

    Attributes:
        rules: The entries of `strategies`.
        clients: Client libraries of every group for which no rule declares others.
    """

    rules: tuple[StrategyRule, ...] = ()
    clients: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """A fingerprint: the same for the same rules, whichever process has read them."""
        says = repr(([rule.model_dump() for rule in self.rules], self.clients))
        return hashlib.sha256(says.encode()).hexdigest()[:_VERSION_DIGITS]

    def of(self, group: str) -> tuple[str | None, tuple[str, ...]] | None:
        """Configured strategy and declared clients of a group; None if no rule says anything of it."""
        fitting = [rule for rule in self.rules if fits(group, rule.groups)]
        strategy = next((rule.strategy for rule in fitting if rule.strategy is not None), None)
        clients = next((rule.clients for rule in fitting if rule.clients), self.clients)
        if strategy is not None or clients:
            return (strategy, clients)
        return None


_VERSION_DIGITS: Final = 8
"""Hexadecimal digits of a version. People compare a handful of them: 32 bits never meet by chance there."""


class Owner(Section):
    """A team, and the groups that are its own.

    Attributes:
        team: Name of the team.
        groups: Patterns as in `Filters`; at least one.
    """

    team: str = Field(min_length=1)
    groups: tuple[Pattern, ...] = Field(min_length=1)


def owner_of(group: str | None, owners: Sequence[Owner]) -> str | None:
    """Team that owns a group: that of the first entry with a pattern that matches; None when there is none."""
    return next((one.team for one in owners if group is not None and any(fits(group, p) for p in one.groups)), None)


class CustomStrategySettings(Section):
    """A strategy of the user's own (docs/assignors.md).

    Attributes:
        name: Protocol name that its groups run.
        assignor: "package.module:object", a class or a function; the job's workers must be able to import it.
        deterministic: Whether equal inputs give equal results; None takes the object's own word.
    """

    name: str = Field(min_length=1)
    assignor: str = Field(min_length=1)
    deterministic: bool | None = None


class BusFolder(Section):
    """A folder as the bus: it holds events and rounds in place of a Kafka's two topics.

    Attributes:
        folder: Folder, or URI on an object store; each cluster has a folder of its own there.
    """

    folder: str = Field(min_length=1)


class ProbeSettings(Section):
    """The probe.

    Attributes:
        interval_ms: From one round to the next.
        events_topic: Topic of the events.
        rounds_topic: Topic of the opening and closing records; one partition, LogAppendTime.
        events_partitions: Partitions of the events topic when the probe creates it.
        replication_factor: For both topics when the probe creates them; -1 takes the broker's default.
        retention_ms: For both topics when the probe creates them, in a folder always: how long the job may be down
            without gaps.
        cluster_topics: Look at all topics of the cluster as well (the table `topics`), each once per heartbeat.
        health: "address:port" that answers `/health/live` and `/health/ready`, without a login; None for none.
    """

    interval_ms: int = Field(default=10_000, ge=200)
    events_topic: str = "evenkeel.events"
    rounds_topic: str = "evenkeel.rounds"
    events_partitions: int = Field(default=4, ge=1)
    replication_factor: int = -1
    retention_ms: int = 3 * DAY_MS
    cluster_topics: bool = True
    health: ListenAddress | None = None


Writer = Literal["delta-rs", "spark"]
"""What writes the rows of a batch (`JobSettings.writer`)."""


class JobSettings(Section):
    """The Spark job.

    Attributes:
        trigger_ms: Time between two looks for closed rounds; a batch comes only where there are some, so this adds to
            the delay and costs next to nothing. Spark ends idle Python workers after 60 s: stay below 50 s.
        max_rounds: Rounds per batch at the most; bounds the memory of a catch-up.
        tasks: Tasks per batch that read the offsets log.
        shuffle_partitions: Partitions of the state; fixed by the first start of a checkpoint. None for one a core, at
            most eight.
        metadata_grace_ms: How long a leader may work with old metadata before its unassigned partitions count
            as such; twice Kafka's default `metadata.max.age.ms`.
        heartbeat_ms: Rows of `lag` and `group_health` are repeated after this time without a change. Rates are taken
            over windows of it.
        what_if_max_size: Other strategies are tried on decisions of at most so many partitions times members (the table
            `what_if`); 0 tries none.
        offsets_topic: The offsets log.
        writer: delta-rs collects a batch's rows and writes them from the driver; spark lets the executors write files,
            which the driver commits (docs/cluster.md).
        checkpoint: Folder, or URI on S3, of the query's offsets and state; None for `_checkpoints/<cluster>` in the
            lake, which must then be a folder.
        health: As of the probe.
    """

    trigger_ms: int = Field(default=2_000, ge=0)
    max_rounds: int = Field(default=60, ge=1)
    tasks: int = Field(default=2, ge=1)
    shuffle_partitions: int | None = Field(default=None, ge=1)
    metadata_grace_ms: int = Field(default=600_000, ge=0)
    heartbeat_ms: int = Field(default=600_000, ge=1_000)
    what_if_max_size: int = Field(default=50_000, ge=0)
    offsets_topic: str = "__consumer_offsets"
    writer: Writer = "delta-rs"
    checkpoint: str | None = Field(default=None, min_length=1)
    health: ListenAddress | None = None


OffsetsLog = Literal["auto", "log", "admin"]
"""Where groups are read from (`Settings.offsets_log`)."""

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


# Prometheus' label names; those that begin with two underscores are its own.
_LabelName = Annotated[str, StringConstraints(pattern=r"^([A-Za-z]|_[A-Za-z0-9])[A-Za-z0-9_]*$")]
_LabelValue = Annotated[str, StringConstraints(min_length=1)]


class ServeSettings(Section):
    """The server: page, metrics, API and alerts.

    Attributes:
        alerts: Whether it judges and delivers the alerts of `cluster` as well (`evenkeel alert` does so alone).
        listen: "address:port" that it listens on; an IPv6 address in brackets.
        path: Path under which a proxy serves it, "" for the root.
        hosts: Names under which it may be asked. Empty allows any, but on loopback only this machine's own: else a
            foreign site that points its name at 127.0.0.1 could read the page.
        token: Bearer token that every request needs; None for none. A secret: rather in the environment.
        user: Name that goes with `password`.
        password: Password for basic authentication; None for none. A secret like `token`.
        refresh_ms: From one look at the tables to the next.
        past_hours: How far back the API's decisions and the page's live charts go; held in memory.
        partition_series: Whether `/metrics` has series by partition under our own names.
        most_series: Most series of one scrape; beyond it whole metrics are left out, those by partition first.
        labels: Labels that every metric has beside its own, such as the environment.
        otlp_endpoint: URL to which our own metrics are pushed by OTLP over HTTP; None pushes none.
        otlp_interval_ms: From one push to the next.
        burrow_minutes: For how long commits are held for Burrow's API; 0 serves none.
        forget_days: After so many days without a round `/metrics` and `/health` no longer have a cluster at all, if
            another one lives; 0 never forgets one.
        marks_token: Token of `POST /api/v1/marks`, the only request that writes; None takes no marks.
        public_url: Where people reach the page, "https://evenkeel.example.org/path"; messages of alerts link to it.
    """

    alerts: bool = True
    listen: ListenAddress = "127.0.0.1:8090"
    path: str = ""
    hosts: tuple[str, ...] = ()
    token: SecretStr | None = None
    user: str = "evenkeel"
    password: SecretStr | None = None
    refresh_ms: int = Field(default=3_000, ge=500)
    past_hours: float = Field(default=24.0, ge=1, le=24 * 31)
    partition_series: bool = False
    most_series: int = Field(default=500_000, ge=1_000)
    labels: dict[_LabelName, _LabelValue] = Field(default_factory=dict)
    otlp_endpoint: str | None = None
    otlp_interval_ms: int = Field(default=60_000, ge=1_000)
    burrow_minutes: float = Field(default=0.0, ge=0, le=24 * 60)
    forget_days: float = Field(default=7.0, ge=0)
    public_url: str | None = None
    marks_token: SecretStr | None = None

    @field_validator("public_url", "otlp_endpoint")
    @classmethod
    def _is_url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.netloc or parts.query or parts.fragment:
            message = "it must be a URL like https://evenkeel.example.org, without a query"
            raise ValueError(message)
        return url.rstrip("/")

    @field_validator("token", "password", "marks_token")
    @classmethod
    def _not_empty(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and not secret.get_secret_value():
            message = "an empty secret protects nothing: leave it out"
            raise ValueError(message)
        if secret is not None and secret.get_secret_value() != secret.get_secret_value().strip():
            message = (
                "a header value cannot begin or end with blanks: remove them (a file often ends with a line break)"
            )
            raise ValueError(message)
        return secret

    @property
    def address(self) -> tuple[str, int]:
        """Address, without brackets, and port."""
        return host_and_port(self.listen)

    @property
    def own_hosts(self) -> tuple[str, ...]:
        """Names under which it may be asked; empty allows any."""
        return self.hosts or (_LOOPBACK if self.address[0] in _LOOPBACK else ())


class MaintenanceSettings(Section):
    """Maintenance of the lake.

    Attributes:
        keep_days: By table, how many days of rows are kept, where it is not the table's default (docs/tables.md).
        in_job: The job maintains its lake.
    """

    keep_days: dict[str, int] = Field(default_factory=dict)
    in_job: bool = True


class Settings(BaseSettings):
    """All settings.

    Attributes:
        cluster: Name of the monitored cluster, as the tables show it.
        renamed_from: Name under which the same cluster was watched before; its rows stay under that one.
        lake: Folder of the Delta tables; the checkpoint lies beside them.
        kafka: The connection to it.
        offsets_log: "log" reads the groups' log, `__consumer_offsets`; "admin" asks for groups by Kafka's requests,
            where nobody may read it; "auto" takes the log where it may be read (docs/admin-mode.md).
        connect_config_topics: By group id of Connect workers their `config.storage.topic`, which says what they should
            run; a group without an entry is judged by its records alone.
        rocketmq: The connection to the watched cluster where that is RocketMQ (docs/rocketmq.md): then `kafka` and
            `offsets_log` mean nothing. None where it is Kafka.
        bus: The connection to the Kafka that holds the probe's two topics, or the folder that holds their records; None
            when the watched cluster does, or for RocketMQ a folder in the lake.
        filters: What is watched.
        probe: The probe.
        job: The job.
        alerts: The alerter.
        serve: The server of page, metrics and API.
        maintenance: Maintenance of the lake.
        owners: Teams and their groups; the first entry that matches a group counts.
        strategies: Strategies that groups should run, and the client libraries that they run.
        clients: Client libraries that every group of the cluster runs; () declares none.
        custom_strategies: Strategies of the user's own, beside those of installed packages.
    """

    model_config = SettingsConfigDict(
        env_prefix="EVENKEEL_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
    )

    cluster: str = "default"
    renamed_from: str | None = None
    lake: str = "lake"
    kafka: KafkaSettings = KafkaSettings()
    offsets_log: OffsetsLog = "auto"
    connect_config_topics: dict[str, str] = Field(default_factory=dict)
    rocketmq: RocketMQSettings | None = None
    bus: KafkaSettings | BusFolder | None = None
    filters: Filters = Filters()
    probe: ProbeSettings = ProbeSettings()
    job: JobSettings = JobSettings()
    alerts: AlertSettings = AlertSettings()
    serve: ServeSettings = ServeSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    owners: tuple[Owner, ...] = ()
    strategies: tuple[StrategyRule, ...] = ()
    clients: tuple[DeclaredLibrary, ...] = ()
    custom_strategies: tuple[CustomStrategySettings, ...] = ()

    @field_validator("rocketmq", mode="before")
    @classmethod
    def _name_servers_alone(cls, rocketmq: object) -> object:
        if isinstance(rocketmq, str) and rocketmq:
            return {"name_servers": rocketmq}
        return rocketmq or None

    @field_validator("bus", mode="before")
    @classmethod
    def _bus(cls, bus: object) -> object:
        if not isinstance(bus, dict) or not bus:
            return bus or None
        if bus.get("folder"):
            # As with `rocketmq`, what is said of a Kafka then means nothing: another file or variable may have said it.
            return BusFolder.model_validate({k: v for k, v in bus.items() if k not in KafkaSettings.model_fields})
        kafka = {k: v for k, v in bus.items() if k != "folder"}
        if kafka and "bootstrap_servers" not in kafka:
            # Else the two topics would be looked for on this machine.
            message = "bus.bootstrap_servers is missing: name the brokers that hold Evenkeel's two topics, or a folder"
            raise ValueError(message)
        return KafkaSettings.model_validate(kafka) if kafka else None

    @property
    def bus_kafka(self) -> KafkaSettings:
        """The connection to the Kafka that holds the probe's two topics, where it is not a folder that does."""
        if isinstance(self.bus, KafkaSettings):
            return self.bus
        return self.kafka

    @property
    def bus_folder(self) -> str | None:
        """The folder that holds events and rounds, in a folder per cluster; None where a Kafka has them."""
        if isinstance(self.bus, BusFolder):
            return self.bus.folder
        if self.bus is None and self.rocketmq is not None:
            return f"{self.lake.rstrip('/')}/_bus"
        return None

    def connections(self) -> dict[str, KafkaSettings]:
        """The connections by the section that they are set in: `kafka`, and `bus` where there is one."""
        if isinstance(self.bus, KafkaSettings):
            return {"kafka": self.kafka, "bus": self.bus}
        return {"kafka": self.kafka}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Command line, environment, file: in this order."""
        file = read_file()
        given = getattr(init_settings, "init_kwargs", {})
        chosen = given.get("cluster") or os.environ.get(CHOSEN)
        values = file.values(chosen)
        own = EnvSettingsSource(
            settings_cls,
            env_prefix=cluster_variables(str(chosen or values.get("cluster") or cls.model_fields["cluster"].default)),
            env_nested_delimiter="__",
        )
        return init_settings, own, env_settings, InitSettingsSource(settings_cls, values)

    def watches_cluster_topic(self, topic: str) -> bool:
        """Whether a topic is watched for itself, whether or not a group reads it.

        Kafka's own topics and those of services around it (`__…`) are not, nor are our two, which our job reads
        without a group.
        """
        if topic.startswith("__") or topic in {self.probe.events_topic, self.probe.rounds_topic}:
            return False
        return self.probe.cluster_topics and self.filters.watches_topic(topic)

    @property
    def group_rules(self) -> GroupRules:
        """What the settings say of groups' strategies and clients."""
        return GroupRules(self.strategies, self.clients)


def load_settings(**given: Any) -> Settings:
    """Read the settings; what is given here wins over environment and file.

    Raises:
        SetupError: A setting is wrong, or the file cannot be read: one sentence that names it.
    """
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        # No input is shown: it could be a secret. Nor is a name that is none: it could be one by mistake.
        place = ".".join(str(part) if _PLACE.fullmatch(str(part)) else "…" for part in first["loc"]) or "settings"
        told = printable(first["msg"])
        message = f"The setting {place} is wrong: {told}. See {shipped('evenkeel.toml')} for the allowed values."
    except (SettingsError, RecursionError) as error:
        # It names the setting, and its cause would quote the value.
        message = f"A variable of the environment cannot be read as JSON: {printable(str(error))}."
    raise SetupError(message) from None


_PLACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def _passes(name: str, watched: tuple[str, ...], ignored: tuple[str, ...]) -> bool:
    if any(fits(name, pattern) for pattern in ignored):
        return False
    return not watched or any(fits(name, pattern) for pattern in watched)
