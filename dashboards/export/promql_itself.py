"""The board over Prometheus on Evenkeel itself: all clusters at once, by our own names (docs/metrics.md)."""

from __future__ import annotations

from typing import Final

from dashboards.export.board import GREEN, ORANGE, RED, Ask, ExportedBoard, Panel, PanelKind

# Zero where a cluster is served and nothing was counted; nothing at all where all are silent.
_NONE = "sum(0 * evenkeel_cluster_groups)"


def _by_cluster(name: str) -> str:
    """Each cluster's value once: several servers may show one lake, and one may be scraped in several modes."""
    return f"max by (cluster) ({name})"


def _number(title: str, told: str, text: str, colour: str = RED) -> Panel:
    """A number that should be 0."""
    return Panel(
        title,
        told,
        PanelKind.NUMBER,
        [Ask(f"{text} or {_NONE}")],
        width=4,
        height=4,
        steps=((None, GREEN), (1, colour)),
        without="not known",
    )


def _lines(title: str, told: str, *asks: tuple[str, str], unit: str = "short") -> Panel:
    """Lines by cluster; each metric with what it is called behind the cluster, "" for nothing."""
    asked = [Ask(_by_cluster(name), f"{{{{cluster}}}}{what and f': {what}'}") for name, what in asks]
    return Panel(title, told, PanelKind.LINES, asked, unit=unit)


_NOW = [
    Panel(
        "Server",
        "Whether the tables can be read.",
        PanelKind.NUMBER,
        [Ask("min(evenkeel_lake_readable)")],
        words={0: ("tables cannot be read", RED), 1: ("reads the tables", GREEN)},
        steps=((None, RED), (1, GREEN)),
        without="no server answers",
        width=4,
        height=4,
    ),
    _number(
        "Silent clusters",
        "No round has come of them for longer than the alert rules allow: nothing else is served of them.",
        f"sum({_by_cluster('evenkeel_cluster_silent')})",
    ),
    _number(
        "Late alerters",
        "Clusters whose alerter has recorded no decision for a quarter of an hour of rounds.",
        f"sum({_by_cluster('evenkeel_alerter_late')})",
    ),
    _number(
        "Deliveries that fail",
        "Transitions of alerts that a target has not taken yet; they are tried again.",
        'sum(max by (cluster, target) (evenkeel_alert_deliveries{outcome="failed"}))',
    ),
    _number(
        "Rounds behind",
        "Rounds that had closed and were left to later batches, of all clusters.",
        f"sum({_by_cluster('evenkeel_job_rounds_behind')})",
        colour=ORANGE,
    ),
    _number(
        "Series left out",
        "Beyond serve.most_series: whole metrics are missing.",
        "sum(max by (metric) (evenkeel_series_left_out)) or sum(0 * max(evenkeel_lake_readable))",
        colour=ORANGE,
    ),
]

_WORK = [
    _lines(
        "Ages",
        "Of the newest round, by the clocks; and since the server last read a new one, by its steady clock. Both "
        "rise while nothing comes.",
        ("evenkeel_round_age_seconds", "round"),
        ("evenkeel_batch_age_seconds", "read"),
        unit="s",
    ),
    _lines(
        "Duration of batches",
        "How long the job's newest batch took, and how often rounds come: a batch that takes longer falls behind.",
        ("evenkeel_job_batch_duration_seconds", "batch"),
        ("evenkeel_round_interval_seconds", "interval"),
        unit="s",
    ),
    Panel(
        "What takes the time of a batch",
        "By Spark's phases, the mean over the clusters; addBatch is the work, the others are its frame.",
        PanelKind.LINES,
        [Ask("avg by (phase) (max by (cluster, phase) (evenkeel_job_batch_phase_seconds))", "{{phase}}")],
        unit="s",
    ),
    _lines(
        "Rounds",
        "Rounds that the newest batch took, and those that it left behind.",
        ("evenkeel_job_batch_rounds", "taken"),
        ("evenkeel_job_rounds_behind", "behind"),
    ),
    _lines(
        "Rows of a batch",
        "What the source handed over, and what was appended to all tables.",
        ("evenkeel_job_batch_input_rows", "read"),
        ("evenkeel_job_batch_written_rows", "written"),
    ),
    _lines("Keys in the state", "Groups, topics, and partitions with trouble.", ("evenkeel_job_state_rows", "")),
    _lines(
        "Memory of the state store",
        "By its own count.",
        ("evenkeel_job_state_bytes", ""),
        unit="bytes",
    ),
    _lines("Groups", "In the newest round.", ("evenkeel_cluster_groups", "")),
]

_ALERTS = [
    Panel(
        "Deliveries of alerts",
        "Transitions by target and the newest outcome of their delivery, as far as the lake holds them.",
        PanelKind.LINES,
        [
            Ask(
                "max by (cluster, target, outcome) (evenkeel_alert_deliveries)",
                "{{cluster}}: {{target}} {{outcome}}",
            )
        ],
    ),
    _lines(
        "What was not seen",
        "Records that could not be decoded, ranges deleted before we read them, partitions of the offsets log that "
        "open transactions block.",
        ("evenkeel_undecoded_records", "records not decoded"),
        ("evenkeel_gaps", "gaps"),
        ("evenkeel_held_log_partitions", "partitions of the log held"),
    ),
]

ITSELF: Final = ExportedBoard(
    uid="evenkeel-itself",
    title="Evenkeel itself",
    told="Whether Evenkeel sees, keeps up, and tells: rounds, batches of the job, alerter and deliveries. Over "
    "/metrics of `evenkeel serve`.",
    source="prometheus",
    choices=[],
    rows={"Now": _NOW, "Rounds and batches": _WORK, "Alerts, and what was not seen": _ALERTS},
)
"""The board; it has no variables."""
