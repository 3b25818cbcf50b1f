"""A secret in each place where one can be configured, and a look for all of them wherever something is written."""

from __future__ import annotations

import base64
import os
import subprocess
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from kafka import KafkaConsumer

from streaming.demo.ports import free_port
from streaming.tables import TABLES, LakeReader
from tests.probe.secured import PASSWORD, RIGHTS, running
from tests.probe.witness import read_all
from tests.started import EVENKEEL, Started, get

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(1_500)]

# By variable: the secret, and which programs are meant to have it, `probe:CLUSTER`, `job` and `server`.
_VARIABLES = {
    "EVENKEEL_CLUSTERS__OWN__KAFKA__SASL_PASSWORD": ("s3cret-of-own-kafka", {"probe:own", "job"}),
    "EVENKEEL_CLUSTERS__OWN__KAFKA__SSL_PASSWORD": ("s3cret-of-own-key", {"probe:own", "job"}),
    "EVENKEEL_CLUSTERS__OWN__BUS__SASL_PASSWORD": (PASSWORD, {"probe:own", "job"}),
    "EVENKEEL_CLUSTERS__OWN__BUS__SSL_PASSWORD": ("s3cret-of-own-bus-key", {"probe:own", "job"}),
    "EVENKEEL_CLUSTERS__MQ__ROCKETMQ__SECRET_KEY": ("s3cret-of-rocketmq", {"probe:mq"}),
    "EVENKEEL_CLUSTERS__MQ__ROCKETMQ__SSL_PASSWORD": ("s3cret-of-rocketmq-key", {"probe:mq"}),
    "EVENKEEL_ALERTS__TARGETS__OPS": ("json://me:s3cret-of-a-target@127.0.0.1:1/s3cret-path", {"server"}),
    "EVENKEEL_SERVE__TOKEN": ("s3cret-of-the-page", {"server"}),
    "EVENKEEL_SERVE__PASSWORD": ("s3cret-password-of-the-page", {"server"}),
    "EVENKEEL_SERVE__MARKS_TOKEN": ("s3cret-of-marks", {"server"}),
    "OTEL_EXPORTER_OTLP_HEADERS": ("authorization=s3cret-of-a-collector", {"server"}),
    "AWS_SECRET_ACCESS_KEY": ("s3cret-of-a-store", {"job", "server"}),
}
_WRONG = "s3cret-that-is-wrong"
_IN_FILES = ("s3cret-in-the-targets-file",)


@dataclass(frozen=True)
class _Shown:
    """What a run of `evenkeel up` showed.

    Attributes:
        texts: By place, everything that was written or answered there.
        commands: The command lines of its processes.
        environments: By program, the environments of its processes: of each one, its guard and its children. What
            forks probes is no program.
        token: A token that the doctor was given, with a letter too many.
    """

    texts: dict[str, bytes]
    commands: list[str]
    environments: dict[str, list[dict[str, str]]]
    token: str


def _settings_of(folder: Path, port: int, plain: str, page: int, unique: str) -> str:
    login = f'bootstrap_servers = "127.0.0.1:{port}"\nsecurity_protocol = "SASL_PLAINTEXT"\n'
    by_password = f'{login}sasl_mechanism = "SCRAM-SHA-512"\nsasl_username = "evenkeel"\n'
    topics = 'events_topic = "evenkeel.{0}.events"\nrounds_topic = "evenkeel.{0}.rounds"\n'
    clusters = {
        "own": f"[clusters.kafka]\n{by_password}[clusters.bus]\n{by_password.replace('SCRAM-SHA-512', 'PLAIN')}",
        "mq": '[clusters.rocketmq]\nname_servers = "127.0.0.1:1"\naccess_key = "me"\n'
        f'[clusters.bus]\nbootstrap_servers = "{plain}"\n',
    }
    text = f'lake = "{folder / "lake"}"\n[probe]\ninterval_ms = 1_000\n[serve]\nlisten = "127.0.0.1:{page}"\n'
    text += f'[alerts]\ntargets_file = "{folder / "targets"}"\n'
    for name, connection in clusters.items():
        text += f'[[clusters]]\nname = "{name}"\n{connection}[clusters.probe]\n{topics.format(f"{unique}.{name}")}'
    return text


def _program_of(process: psutil.Process, up: int) -> str:
    """Which program of `up` a process belongs to."""
    for each in (process, *process.children(), *process.parents()):
        if each.pid == up:
            break
        if each.name().startswith("probe-"):
            return each.name().replace("-", ":")
        for module, program in (("streaming.job", "job"), ("streaming.serve", "server")):
            if module in each.cmdline():
                return program
    return "other"


def _remembered(pid: int) -> dict[str, str]:
    """The variables whose secrets are in a process's memory: what is forked has its own nowhere else."""
    memory = b""
    own = Path(f"/proc/{pid}")
    with (own / "maps").open(encoding="ascii") as maps, (own / "mem").open("rb") as file:
        for line in maps:
            place, rights, *_ = line.split()
            if rights.startswith("rw") and "[v" not in line:
                first, end = (int(each, 16) for each in place.split("-"))
                file.seek(first)
                memory += file.read(end - first)
    return {name: secret for name, (secret, _) in _VARIABLES.items() if secret.encode() in memory}


def _watch(up: Started, seen: dict[tuple[int, float], tuple[str, str, dict[str, str]]]) -> None:
    """Note program, command line and environment of the processes of `up`, some of which soon end."""
    for process in up.below():
        with suppress(psutil.Error):
            noted = _program_of(process, up.pid), " ".join(process.cmdline()), process.environ()
            seen[process.pid, process.create_time()] = noted


def _answer(page: int, path: str) -> bytes:
    secret = _VARIABLES["EVENKEEL_SERVE__PASSWORD"][0]
    login = base64.b64encode(f"evenkeel:{secret}".encode()).decode()
    return get(f"http://127.0.0.1:{page}{path}", Authorization=f"Basic {login}")[1].encode()


def _records(bootstrap: str) -> bytes:
    """Every key and value of the topics that Evenkeel wrote."""
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)) as consumer:
        topics = [topic for topic in consumer.topics() if topic.startswith("evenkeel.")]
    records = [record for topic in topics for record in read_all(bootstrap, topic)]
    return b"\n".join((record.key or b"") + (record.value or b"") for record in records)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> _Shown:
    """Plant them, run `up` until rows have come, look into its processes, ask the doctor, and stop it."""
    folder, page = tmp_path_factory.mktemp("planted"), free_port()
    texts: dict[str, bytes] = {}
    with running(folder / "secured") as secured:
        secured.grant(*RIGHTS)
        secured.set_password(_VARIABLES["EVENKEEL_CLUSTERS__OWN__KAFKA__SASL_PASSWORD"][0])
        token = secured.tokens.token()
        (folder / "token").write_text(token + "x")
        (folder / "targets").write_text(f"filed = json://me:{_IN_FILES[0]}@127.0.0.1:1\n")
        config = folder / "evenkeel.toml"
        config.write_text(_settings_of(folder, secured.port, secured.broker.bootstrap, page, "planted"))
        environment = os.environ | {name: secret for name, (secret, _) in _VARIABLES.items()}
        environment["EVENKEEL_CONFIG"] = str(config)

        def run(*words: str, **more: str) -> bytes:
            given = environment | more
            done = subprocess.run([EVENKEEL, *words], env=given, capture_output=True, check=False, timeout=300)
            return done.stdout + done.stderr

        reader = LakeReader(folder / "lake")

        def rounds(cluster: str) -> int:
            if not (folder / "lake" / "rounds" / "_delta_log").exists():
                return 0
            reader.refresh()
            return len(reader.rows("SELECT round FROM rounds WHERE cluster = ?", [cluster]))

        with Started([EVENKEEL, "up"], folder / "output", environment) as up:
            seen: dict[tuple[int, float], tuple[str, str, dict[str, str]]] = {}

            def has_rounds() -> bool:
                _watch(up, seen)
                return rounds("own") >= 3

            up.until(has_rounds)
            for forked, (program, line, _) in list(seen.items()):
                if "_fork_server" in line:
                    del seen[forked]
                    with suppress(OSError):  # it has ended meanwhile
                        has = _remembered(forked[0])
                        if has or program == "other":
                            seen[forked] = program, line, has
            up.until(lambda: b"evenkeel_" in _answer(page, "/metrics"))
            for path in ("/", "/metrics", "/health/ready", "/api/v1/groups", "/clusters", "/alerts", "/evenkeel"):
                texts[f"server {path}"] = _answer(page, path)
            for cluster in ("own", "mq"):
                texts[f"doctor {cluster}"] = run("doctor", "--cluster", cluster)
            of_own = "EVENKEEL_CLUSTERS__OWN__KAFKA__SASL_"
            texts["doctor wrong"] = run("doctor", "--cluster", "own", **{f"{of_own}PASSWORD": _WRONG})
            by_token = {f"{of_own}MECHANISM": "OAUTHBEARER", f"{of_own}OAUTH_TOKEN_FILE": str(folder / "token")}
            texts["doctor token"] = run("doctor", "--cluster", "own", **by_token)
            texts["alert --test"] = run("alert", "--test", "--cluster", "own")
            texts["topics"] = _records(secured.broker.bootstrap)
            up.stop()
    texts["output"] = (folder / "output").read_bytes()
    texts["files of the lake"] = b"\n".join(path.read_bytes() for path in _files(folder / "lake"))
    reader.refresh()
    rows = [reader.rows(f"SELECT * FROM {table.name}") for table in TABLES if (folder / "lake" / table.name).exists()]
    texts["rows of the lake"] = repr(rows).encode()
    environments: dict[str, list[dict[str, str]]] = {}
    for program, _, environ in seen.values():
        environments.setdefault(program, []).append(environ)
    return _Shown(texts, [line for _, line, _ in seen.values()], environments, token)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _parts_of(secret: str) -> list[str]:
    """What would give a secret away: of a URL its login and its path, of a token its signature."""
    if secret.startswith("json://"):
        return ["s3cret-of-a-target", "s3cret-path"]
    return [secret.partition("=")[2] or secret]


def test_each_place_shows_something_and_none_of_the_secrets(shown: _Shown) -> None:
    assert [place for place, text in shown.texts.items() if not text] == []
    secrets = [part for secret, _ in _VARIABLES.values() for part in _parts_of(secret)]
    secrets += [*_IN_FILES, _WRONG, shown.token.rpartition(".")[2]]
    found = {(place, secret) for place, text in shown.texts.items() for secret in secrets if secret.encode() in text}
    assert found == set()


def test_no_command_line_has_a_secret(shown: _Shown) -> None:
    told = " ".join(shown.commands)
    assert "streaming.job" in told
    assert [secret for secret, _ in _VARIABLES.values() for part in _parts_of(secret) if part in told] == []
    assert "s3cret" not in told


def test_each_program_has_the_secrets_that_it_needs_and_no_others(shown: _Shown) -> None:
    # The probe of the cluster that is away lives for moments only, and need not have been seen.
    seen = shown.environments.keys()
    assert seen - {"probe:mq"} == {"probe:own", "job", "server", "other"}
    has = {
        (program, name)
        for program, environments in shown.environments.items()
        for environment in environments
        for name in environment.keys() & _VARIABLES.keys()
    }
    assert has == {(program, name) for name, (_, programs) in _VARIABLES.items() for program in programs & seen}


def test_what_went_wrong_is_said(shown: _Shown) -> None:
    """The look for secrets covers sentences about connections and targets that fail."""
    for place in ("doctor wrong", "doctor token"):
        assert b"No Kafka broker lets this client in" in shown.texts[place]
    assert b"No name server of the RocketMQ cluster answers" in shown.texts["doctor mq"]
    assert b"ops" in shown.texts["alert --test"]
