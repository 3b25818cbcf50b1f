"""The command `evenkeel`.

Exit codes: 0 done or stopped by the user; 1 something failed (printed as one sentence); 2 a person must act first: a
setting, Java, the network, a right, a port, disk space.

The module is long because each command is a function whose signature is its help.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer
from rich.console import Console

from streaming.config import CHOSEN, FleetFile, Settings, load_fleet, load_settings
from streaming.examples import EXAMPLES
from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError, SetupError
from streaming.pipes import answer_lines, decode_inputs, decode_unique
from streaming.terminal import printable, read_by_nobody

if TYPE_CHECKING:
    from assignors import CustomStrategies

app = typer.Typer(
    name="evenkeel",
    help="Monitors consumer groups: who should own which partition, who does, and what each change cost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Bootstrap = Annotated[
    str | None, typer.Option("--bootstrap", metavar="HOST:PORT,...", help="The cluster; default: from the settings.")
]
RocketMQ = Annotated[
    str | None,
    typer.Option(
        "--rocketmq", metavar="HOST:PORT;...", help="All name servers of a RocketMQ cluster (docs/rocketmq.md)."
    ),
]
LakeOption = Annotated[str | None, typer.Option("--lake", metavar="FOLDER", help="Folder or URI of the tables.")]
RebuildState = Annotated[
    bool,
    typer.Option(
        "--rebuild-state",
        help="Move a lost or broken checkpoint aside, read everything again, write what the tables do not have.",
    ),
]
ClusterOption = Annotated[str | None, typer.Option("--cluster", help="Name of the cluster in the tables.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        _say(f"evenkeel {version('evenkeel')}")
        raise typer.Exit


@app.callback()
def _evenkeel(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    # A docstring here would replace the help above.
    pass


@app.command()
def init(
    bootstrap: Annotated[
        str | None, typer.Option("--bootstrap", metavar="HOST:PORT,...", help="Brokers of the Kafka cluster.")
    ] = None,
    rocketmq: RocketMQ = None,
    cluster: Annotated[str, typer.Option("--cluster", help="Name of the cluster in the tables.")] = "default",
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="File to write; it must not be there yet.")
    ] = Path("evenkeel.toml"),
) -> None:
    """Write a short file of settings for one cluster, and try it (docs/tools.md)."""
    from streaming.doctor import write_first_settings  # noqa: PLC0415

    raise typer.Exit(write_first_settings(output, bootstrap, rocketmq, cluster, _console()))


@app.command()
def up(
    bootstrap: Bootstrap = None,
    rocketmq: RocketMQ = None,
    lake: LakeOption = None,
    cluster: ClusterOption = None,
    job: Annotated[
        Literal["here", "none"], typer.Option("--job", help="none where the job runs elsewhere (docs/deployment.md).")
    ] = "here",
) -> None:
    """Watch all clusters of the settings: probes, job, server and alerter on this machine, until Ctrl-C."""
    # Read the settings first, here and below: a mistake in them is reported before Spark or a Kafka client loads.
    clusters = _fleet(bootstrap, lake, cluster, rocketmq)
    from streaming.up import up as run_up  # noqa: PLC0415 - a tool in a pipe should not load Spark's and Kafka's clients

    run_up(FleetFile(clusters), _console(), with_job=job == "here")


@app.command()
def demo(
    seconds: Annotated[
        int | None, typer.Option("--seconds", min=150, help="Stop after this many seconds and check every story.")
    ] = None,
    lake: Annotated[
        Path | None, typer.Option("--lake", metavar="FOLDER", help="Folder for the tables; must be empty or new.")
    ] = None,
    clusters: Annotated[
        int,
        typer.Option("--clusters", min=1, help="Watch so many clusters, the last of them with a poisoned checkpoint."),
    ] = 1,
) -> None:
    """Start a real Kafka broker with real consumer groups, and watch them.

    A RocketMQ cluster in its place plays from a checkout: make demo ROCKETMQ=1.
    """
    from streaming.demo.run import demo as run_demo  # noqa: PLC0415

    raise typer.Exit(run_demo(_console(), seconds, lake, clusters))


@app.command()
def run(
    bootstrap: Bootstrap = None,
    lake: LakeOption = None,
    cluster: ClusterOption = None,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", metavar="FOLDER", help="Folder of the job's state.")
    ] = None,
    available_now: Annotated[bool, typer.Option("--available-now", help="Process what is there now and exit.")] = False,
    rebuild_state: RebuildState = False,
) -> None:
    """Run the Spark job alone, with a query for each cluster of the settings."""
    from streaming.job.log import set_up_log  # noqa: PLC0415

    set_up_log()  # before the imports below, which already log
    clusters = _fleet(bootstrap, lake, cluster)
    from streaming.probe import ensure_ready  # noqa: PLC0415

    if len(clusters) == 1:
        ensure_ready(clusters[0])
    from streaming.job.fleet import run_fleet  # noqa: PLC0415

    run_fleet(clusters, available_now=available_now, checkpoint=checkpoint, rebuild_state=rebuild_state)


@app.command()
def submit(
    master: Annotated[
        str, typer.Option("--master", metavar="MASTER", help="spark://HOST:PORT, k8s://https://HOST:PORT or yarn.")
    ],
    bootstrap: Bootstrap = None,
    lake: LakeOption = None,
    cluster: ClusterOption = None,
    python: Annotated[str | None, typer.Option("--python", metavar="PATH", help="Python of the executors.")] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="URI", help="Folder in which driver and executors keep their state."),
    ] = None,
    available_now: Annotated[bool, typer.Option("--available-now", help="Process what is there now and exit.")] = False,
    rebuild_state: RebuildState = False,
    more: Annotated[list[str] | None, typer.Argument(metavar="-- ...", help="More arguments for spark-submit.")] = None,
) -> None:
    """Run the Spark job with its tasks on a cluster (docs/cluster.md)."""
    from streaming.job.log import set_up_log  # noqa: PLC0415

    set_up_log()  # before the imports below, which already log
    from streaming.cluster import submit as submit_job  # noqa: PLC0415
    from streaming.probe import ensure_ready  # noqa: PLC0415

    settings = _settings(bootstrap, lake, cluster)
    ensure_ready(settings)
    submit_job(
        settings,
        master,
        python=python,
        checkpoint=checkpoint,
        available_now=available_now,
        rebuild_state=rebuild_state,
        more=more or [],
    )


@app.command()
def probe(bootstrap: Bootstrap = None, rocketmq: RocketMQ = None, cluster: ClusterOption = None) -> None:
    """Run the probe alone, beside the cluster."""
    settings = _settings(bootstrap, None, cluster, rocketmq)
    from streaming.probe import main as run_probe  # noqa: PLC0415

    raise typer.Exit(run_probe(settings))


@app.command()
def serve(
    lake: LakeOption = None,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="ADDRESS:PORT", help="Where to listen; default: 127.0.0.1:8090.")
    ] = None,
    alerts: Annotated[
        Literal["on", "off"] | None, typer.Option("--alerts", help="Whether to judge and deliver alerts; default: on.")
    ] = None,
    cluster: ClusterOption = None,
) -> None:
    """Serve page, metrics and API over the tables, and deliver alerts (docs/page.md, docs/metrics.md)."""
    if listen is not None:
        os.environ["EVENKEEL_SERVE__LISTEN"] = listen
    if alerts is not None:
        os.environ["EVENKEEL_SERVE__ALERTS"] = str(alerts == "on")
    clusters = _fleet(None, lake, cluster)
    from streaming.serve import main as run_server  # noqa: PLC0415

    raise typer.Exit(run_server(clusters))


@app.command()
def alert(
    lake: LakeOption = None,
    cluster: ClusterOption = None,
    test: Annotated[bool, typer.Option("--test", help="Send one test message to each target and exit.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Check the rules, the targets and the routes.")] = False,
) -> None:
    """Run the alerter alone, for all clusters: rules over the tables, sent to the targets (docs/alerts.md)."""
    settings = _shared(lake)
    from streaming.alerts import check_settings, send_test  # noqa: PLC0415
    from streaming.alerts import main as run_alerter  # noqa: PLC0415

    if test:
        raise typer.Exit(send_test(settings, _say))
    if check:
        check_settings(settings, _say)
        return
    raise typer.Exit(run_alerter(_fleet(None, lake, cluster)))


@app.command()
def mute(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Group, rule, team or severity; /…/ is a pattern of groups.")
    ],
    span: Annotated[str, typer.Option("--for", metavar="SPAN", help="For how long: 30m, 2h, 1d.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; everybody sees it.")],
    kind: Annotated[
        Literal["group", "rule", "owner", "severity"] | None,
        typer.Option("--kind", help="What the name is, if several things have it."),
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="When it begins: 2026-12-01T22:00+01:00.")
    ] = None,
    every: Annotated[Literal["day", "week"] | None, typer.Option("--every", help="It begins again so often.")] = None,
    lake: LakeOption = None,
    cluster: ClusterOption = None,
) -> None:
    """Send no alerts about a group, a rule, a team or a severity for a while (docs/alerts.md)."""
    settings = _of_group(lake, cluster, name if kind in {None, "group"} else None)
    from streaming.alerts import load_rules  # noqa: PLC0415
    from streaming.notes import KnownNames  # noqa: PLC0415
    from streaming.notes import mute as write  # noqa: PLC0415

    known = KnownNames([rule.name for rule in load_rules(settings.alerts.rules)], settings.owners)
    _say(write(settings.lake, settings.cluster, name, span, reason, known, kind, begin=begin, every=every))


@app.command()
def unmute(
    name: Annotated[str, typer.Argument(metavar="ID|NAME", help="Id of the mute, or what it mutes.")],
    lake: LakeOption = None,
    cluster: ClusterOption = None,
) -> None:
    """End a mute before its time; what still fires is sent then."""
    settings = _of_group(lake, cluster, name)
    from streaming.notes import unmute as end  # noqa: PLC0415

    _say(end(settings.lake, settings.cluster, name))


@app.command()
def mutes(
    lake: LakeOption = None,
    cluster: ClusterOption = None,
) -> None:
    """List the mutes that hold, or will, of all clusters."""
    clusters = load_fleet(**{name: value for name, value in (("lake", lake), ("cluster", cluster)) if value})
    from streaming.notes import print_mutes  # noqa: PLC0415

    for settings in clusters:
        if len(clusters) > 1:
            _say(f"{printable(settings.cluster)}:")
        print_mutes(settings.lake, settings.cluster, _console())


@app.command()
def mark(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What was done, such as a deploy.")],
    group: Annotated[str | None, typer.Option("--group", metavar="GROUP", help="The group that it concerns.")] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="When: 2026-12-01T14:30+01:00, or a span ago, as 10m.")
    ] = None,
    lake: LakeOption = None,
    cluster: ClusterOption = None,
) -> None:
    """Mark a moment in the charts: a deploy, a migration (docs/alerts.md)."""
    settings = _of_group(lake, cluster, group)
    from streaming.notes import mark as write  # noqa: PLC0415

    _say(write(settings.lake, settings.cluster, text, group, at))


@app.command()
def maintain(
    lake: LakeOption = None,
    engine: Annotated[
        Literal["delta-rs", "spark"], typer.Option("--engine", help="What compacts past days, and vacuums.")
    ] = "delta-rs",
    master: Annotated[
        str | None, typer.Option("--master", metavar="spark://HOST:PORT", help="Spark's master; default: this machine.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Only take data files that are gone out of their tables.")
    ] = False,
    forget: Annotated[
        str | None,
        typer.Option("--forget", metavar="NAME", help="Only delete everything of a cluster that is watched no more."),
    ] = None,
) -> None:
    """Maintain the lake beside a running job: compaction, retention, vacuum (docs/operations.md)."""
    from streaming.maintain import forget as forget_cluster  # noqa: PLC0415
    from streaming.maintain import maintain as maintain_lake  # noqa: PLC0415
    from streaming.maintain import repair as repair_lake  # noqa: PLC0415

    settings = _shared(lake)
    if forget is not None:
        forget_cluster(settings, FleetFile([settings]).names, forget, _console())
        return
    if repair:
        repair_lake(settings, _console())
        return
    maintain_lake(settings, _console(), with_spark=engine == "spark", master=master)


@app.command()
def tables(
    lake: LakeOption = None,
    ddl: Annotated[
        Literal["spark", "databricks", "duckdb"] | None,
        typer.Option("--ddl", help="Print the statements that register the tables and views in that engine's catalog."),
    ] = None,
    schema: Annotated[str, typer.Option("--schema", metavar="NAME", help="Schema to register them in.")] = "evenkeel",
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the tables of the lake, or print the SQL that registers them elsewhere (docs/lake.md)."""
    settings = _shared(lake)
    from streaming.catalog import list_tables, print_ddl  # noqa: PLC0415

    if ddl is None:
        list_tables(settings.lake, _console(), as_json=as_json)
    else:
        print_ddl(settings.lake, ddl, schema, _say)


@app.command()
def advise(
    group: Annotated[str | None, typer.Argument(metavar="GROUP", help="Only this group.")] = None,
    lake: LakeOption = None,
    cluster: ClusterOption = None,
) -> None:
    """Say what could be changed in the groups, why, and what it costs (docs/advice.md)."""
    settings = _shared(lake)
    from streaming.advice import print_advice  # noqa: PLC0415

    print_advice(settings.lake, _console(), group, cluster)


@app.command()
def explain(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group's id.")],
    generation: Annotated[
        int | None, typer.Argument(metavar="GENERATION", help="Its generation or epoch; default: the newest.")
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option(
            "--partition", metavar="TOPIC/NUMBER", help="Only this partition; for RocketMQ also TOPIC@BROKER/NUMBER."
        ),
    ] = None,
    lake: LakeOption = None,
    cluster: ClusterOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line for `evenkeel assign`, with the explanation in it.")
    ] = False,
) -> None:
    """Say in words who should own what in a group, and why; for drift, what is different (docs/tools.md)."""
    settings = _shared(lake)
    from streaming.explain import print_explanation, read_partition  # noqa: PLC0415

    place = None if partition is None else read_partition(partition)
    custom = _custom_strategies().by_name()
    print_explanation(settings.lake, _console(), group, generation, place, cluster, custom, as_json=as_json)


@app.command()
def doctor(
    bootstrap: Bootstrap = None,
    lake: LakeOption = None,
    cluster: ClusterOption = None,
) -> None:
    """Say what is well and what is not: clusters, rights, lake, alerts; exit code 2 if something is wrong."""
    clusters: Sequence[Settings] | EvenkeelError
    try:
        clusters = _fleet(bootstrap, lake, cluster)
    except EvenkeelError as error:
        clusters = error
    from streaming.doctor import examine  # noqa: PLC0415

    raise typer.Exit(examine(clusters, _console()))


@app.command()
def backtest(
    rules: Annotated[
        Path | None, typer.Argument(metavar="RULES", help="A rules file to try beside today's; default: today's alone.")
    ] = None,
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="How far back, as 30d or 12h.")] = "30d",
    lake: LakeOption = None,
    cluster: ClusterOption = None,
) -> None:
    """Say when rules would have fired in the past, for whom and for how long (docs/alerts.md)."""
    settings = _settings(None, lake, cluster)
    from streaming.backtest import print_backtest  # noqa: PLC0415

    print_backtest(settings, _console(), rules, since)


@app.command()
def export(
    tool: Annotated[Literal["grafana", "databricks"], typer.Argument(help="What will show the board.")],
    source: Annotated[
        Literal["prometheus", "databricks", "duckdb"],
        typer.Option(
            "--source", help="For Grafana: the data source that answers, /metrics in Prometheus or the tables."
        ),
    ] = "prometheus",
    catalog: Annotated[str | None, typer.Option("--catalog", metavar="NAME", help="Catalog of the tables.")] = None,
    schema: Annotated[
        str, typer.Option("--schema", metavar="NAME", help="Schema of the tables, as `tables --ddl` has it.")
    ] = "evenkeel",
    about: Annotated[
        Literal["groups", "itself"],
        typer.Option("--about", help="What the board shows: groups, or Evenkeel itself (over Prometheus)."),
    ] = "groups",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="File to write; default: standard output.")
    ] = None,
) -> None:
    """Print a board for Grafana or Databricks, over our metrics or tables (docs/metrics.md)."""
    from dashboards.export import export as made  # noqa: PLC0415

    board = made(tool, source, catalog, schema, _shared(None).alerts.rules, about)
    if output is None:
        _say(board, end="")
        return
    try:
        output.write_text(board, encoding="utf-8")
    except OSError as error:
        message = f"The board cannot be written to {output} ({error.strerror}): name a file in a folder that is there."
        raise SetupError(message) from None


@app.command()
def assign() -> None:
    """Recompute assignments: JSON lines, or drift.inputs in hex, in; JSON lines out (docs/tools.md)."""
    from assignors.jsonl import assign_line  # noqa: PLC0415

    custom = _custom_strategies().by_name()
    answer_lines(lambda line: assign_line(line, custom), decode_inputs)


@app.command(name="what-if")
def what_if() -> None:
    """Show how each strategy would assign a group: JSON lines in, JSON lines out (docs/tools.md)."""
    from assignors.jsonl import what_if_line  # noqa: PLC0415

    custom = _custom_strategies().by_name()
    answer_lines(lambda line: what_if_line(line, custom), decode_unique)


@app.command()
def decode() -> None:
    """Decode records of __consumer_offsets: JSON lines in, JSON lines out (docs/tools.md)."""
    from streaming.offsets_log import decode_line  # noqa: PLC0415

    answer_lines(decode_line)


@app.command()
def judge() -> None:
    """Judge groups by their records of __consumer_offsets: JSON lines in, JSON lines out (docs/tools.md)."""
    from streaming.judge import judge_line  # noqa: PLC0415

    custom = _custom_strategies()
    answer_lines(lambda line: judge_line(line, custom), decode_unique)


@app.command(name="rocketmq-decode")
def rocketmq_decode() -> None:
    """Decode frames of RocketMQ's remoting protocol: JSON lines in, JSON lines out (docs/tools.md)."""
    from streaming.rocketmq import decode_line  # noqa: PLC0415

    answer_lines(decode_line)


@app.command(name="burrow-status")
def burrow_status() -> None:
    """Judge a partition by Burrow's rules: JSON lines in, JSON lines out (docs/tools.md)."""
    from streaming.burrow import status_line  # noqa: PLC0415

    answer_lines(status_line)


for _command in app.registered_commands:
    _name = _command.name or (_command.callback.__name__ if _command.callback is not None else "")
    _command.epilog = f"Example: {EXAMPLES[_name]}"


def main() -> None:
    """Run the command line; a failure prints one sentence, no stack trace."""
    try:
        app(standalone_mode=True)
    except SetupError as error:
        _tell(error)
        sys.exit(SETUP_EXIT_CODE)
    except EvenkeelError as error:
        _tell(error)
        sys.exit(1)


def _tell(error: EvenkeelError) -> None:
    # It may quote a broker or a record. Several sentences are printed as several lines.
    sys.stderr.write("\n".join(map(printable, str(error).split("\n"))) + "\n")


def _say(text: str, end: str = "\n") -> None:
    """Print a text as it is. Where its reader has gone, the command goes on: its exit code says what came of it."""
    try:
        _output().write(text + end)
        sys.stdout.flush()
    except BrokenPipeError:
        read_by_nobody()


class _Console(Console):
    """A console whose command goes on when the reader of its output has gone: its exit code says what came of it."""

    def on_broken_pipe(self) -> None:
        """Print no more; rich would end the process with code 1."""
        self.quiet = True
        read_by_nobody()


def _console() -> Console:
    # Without a terminal rich would wrap every table at 80 columns, even in a log file.
    if _output().isatty():
        return _Console()
    return _Console(width=160)


def _output() -> TextIO:
    """Standard output; a terminal whose encoding lacks "…" shows it escaped instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return sys.stdout


def _fleet(
    bootstrap: str | None, lake: str | None, cluster: str | None, rocketmq: str | None = None
) -> tuple[Settings, ...]:
    """The clusters that options and settings name. Options go on to the processes that follow, as their environment."""
    for name, value in (
        ("EVENKEEL_KAFKA__BOOTSTRAP_SERVERS", bootstrap),
        ("EVENKEEL_ROCKETMQ__NAME_SERVERS", rocketmq),
        ("EVENKEEL_LAKE", lake),
        (CHOSEN, cluster),
    ):
        if value is not None:
            os.environ[name] = value
    clusters = load_fleet()
    _refuse_bootstrap(bootstrap, clusters[0])
    return clusters


def _shared(lake: str | None) -> Settings:
    """Settings for work on the whole lake: the longest heartbeat of a cluster says how far back its present begins."""
    clusters = load_fleet(**({} if lake is None else {"lake": lake}))
    return max(clusters, key=lambda one: one.job.heartbeat_ms)


def _of_group(lake: str | None, cluster: str | None, group: str | None) -> Settings:
    """The settings of the cluster that is named, or that has this group and no other has."""
    if cluster is None and group is not None and len(load_fleet()) > 1:
        from streaming.notes import clusters_of  # noqa: PLC0415

        found = clusters_of(_shared(lake).lake, group)
        if len(found) == 1:
            cluster = found[0]
    return _settings(None, lake, cluster)


def _settings(bootstrap: str | None, lake: str | None, cluster: str | None, rocketmq: str | None = None) -> Settings:
    given: dict[str, Any] = {k: v for k, v in (("lake", lake), ("cluster", cluster)) if v is not None}
    if rocketmq is not None:
        given["rocketmq"] = {"name_servers": rocketmq}
    settings = load_settings(**given)
    _refuse_bootstrap(bootstrap, settings)
    if bootstrap is None:
        return settings
    kafka = settings.kafka.model_copy(update={"bootstrap_servers": bootstrap})
    return settings.model_copy(update={"kafka": kafka})


def _refuse_bootstrap(bootstrap: str | None, settings: Settings) -> None:
    if settings.rocketmq is not None and bootstrap is not None:
        message = (
            "The cluster is a RocketMQ one, and --bootstrap names brokers of Kafka: leave it out. (A Kafka that is to "
            "hold Evenkeel's own records in place of a folder is named in section [bus].)"
        )
        raise SetupError(message)


def _custom_strategies() -> CustomStrategies:
    from streaming.groups import custom_of  # noqa: PLC0415

    listed = _shared(None).custom_strategies
    return custom_of((one.name, one.assignor, one.deterministic) for one in listed)
