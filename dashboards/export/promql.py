"""The boards over Prometheus, by our own names of `/metrics` (docs/metrics.md): the groups, and Evenkeel itself."""

from __future__ import annotations

from typing import Any, Final

from dashboards.export.board import GREEN, ORANGE, RED, Ask, ExportedBoard, Panel, PanelKind

_CLUSTER = 'cluster="$cluster"'
_GROUP = f'{_CLUSTER},group="$group"'

# Zero where the cluster is served and nothing was counted; nothing at all for a cluster that is silent. The sums take
# the labels of the scrape away, which would keep both sides apart.
_NONE = f"sum(0 * evenkeel_cluster_groups{{{_CLUSTER}}})"

# The most series of one panel.
_MOST = 10


def _top(name: str) -> str:
    return f"topk({_MOST}, max by (group) ({name}{{{_CLUSTER}}}))"


def _of_group(name: str) -> str:
    return f"max by (group) ({name}{{{_GROUP}}})"


def _why(metric: str, label: str, matcher: str = "") -> str:
    return f'max by (group, why) (label_replace({metric}{{{_CLUSTER}{matcher}}}, "why", "$1", "{label}", "(.+)"))'


def _tile(title: str, told: str, text: str, **more: Any) -> Panel:
    """One number, six of them beside each other."""
    return Panel(title, told, PanelKind.NUMBER, [Ask(text)], width=4, height=4, **more)


def _plot(title: str, told: str, *asks: tuple[str, str], unit: str = "short") -> Panel:
    """Lines over time: queries, each with the legend of its lines."""
    return Panel(title, told, PanelKind.LINES, [Ask(*asked) for asked in asks], unit=unit)


def _word(title: str, told: str, label: str, without: str) -> Panel:
    """What a label says of one group."""
    asked = Ask(f"max by ({label}) (evenkeel_group_{label}{{{_GROUP}}})", f"{{{{{label}}}}}")
    return Panel(title, told, PanelKind.WORD, [asked], width=6, height=4, without=without)


_OVERVIEW = [
    _tile(
        "Cluster",
        "A cluster is silent when no round came for longer than the alert rules allow: then nothing else is "
        "served of it, and every panel below is empty rather than old.",
        f"max(evenkeel_cluster_silent{{{_CLUSTER}}})",
        words={0: ("watched", GREEN), 1: ("silent", RED)},
        steps=((None, GREEN), (1, RED)),
        without="no server answers",
    ),
    _tile(
        "Age of the newest round",
        "How old everything on this board is.",
        f"max(evenkeel_round_age_seconds{{{_CLUSTER}}})",
        unit="s",
        without="no server answers",
    ),
    _tile(
        "Groups",
        "Groups in the newest round.",
        f"max(evenkeel_cluster_groups{{{_CLUSTER}}})",
    ),
    _tile(
        "Drifted",
        "Groups whose newest decision is not what their strategy gives.",
        f'count(count by (group) (evenkeel_group_verdict{{{_CLUSTER},verdict="drifted"}})) or {_NONE}',
        steps=((None, GREEN), (1, RED)),
    ),
    _tile(
        "Lag is bad",
        "Groups with a partition that is stopped, stalled, falling behind, rewound or ahead.",
        "count(count by (group) (evenkeel_group_lag_status{"
        f'{_CLUSTER},lag_status=~"stopped|stalled|falling_behind|rewound|ahead"}})) or {_NONE}',
        steps=((None, GREEN), (1, ORANGE)),
    ),
    _tile(
        "Alerts",
        "Alerts of Evenkeel's own rules that fire.",
        f"sum(max by (rule, severity) (evenkeel_alerts_firing{{{_CLUSTER}}})) or {_NONE}",
        steps=((None, GREEN), (1, RED)),
    ),
    Panel(
        "Who needs somebody",
        "Groups with a drifted verdict, bad lag or a finding, and which.",
        PanelKind.TABLE,
        [
            Ask(
                _why("evenkeel_group_verdict", "verdict", ',verdict="drifted"')
                + " or "
                + _why("evenkeel_group_lag_status", "lag_status", ',lag_status!~"ok|no_commit"')
                + " or "
                + _why("evenkeel_group_finding", "finding")
            )
        ],
        columns={"group": "group", "why": "why"},
    ),
    _plot(
        "Verdicts",
        "How many groups have which verdict on their newest decision.",
        (
            f"count by (verdict) (max by (group, verdict) (evenkeel_group_verdict{{{_CLUSTER}}}))",
            "{{verdict}}",
        ),
    ),
    _plot(
        "Lag",
        f"The {_MOST} largest, summed over the partitions whose lag is known.",
        (_top("evenkeel_group_lag_offsets"), "{{group}}"),
    ),
    _plot(
        "Time behind, at least",
        f"The {_MOST} largest: for so long the oldest unread record has been readable, if not longer.",
        (_top("evenkeel_group_time_behind_min_seconds"), "{{group}}"),
        unit="s",
    ),
]

_ONE = [
    _word("Verdict", "On the newest decision.", "verdict", "none yet"),
    _word("Lag status", "The worst status of a partition.", "lag_status", "not known"),
    _word("State", "As the group's coordinator gives it.", "state", "not known"),
    _word("Findings", "What else holds now.", "finding", "none"),
    _plot(
        "Lag by topic",
        "Offsets that the group has still to read, in partitions whose lag is known; and in how many it is not.",
        (f"max by (topic) (evenkeel_group_topic_lag_offsets{{{_GROUP}}})", "{{topic}}"),
        (
            f"max by (topic) (evenkeel_group_topic_lag_unknown_partitions{{{_GROUP}}}) > 0",
            "{{topic}}: partitions not known",
        ),
    ),
    _plot(
        "Time behind",
        "How far the group is behind in time lies between these bounds; there may be no upper one.",
        (_of_group("evenkeel_group_time_behind_min_seconds"), "at least"),
        (_of_group("evenkeel_group_time_behind_max_seconds"), "at most"),
        unit="s",
    ),
    _plot(
        "Members and partitions",
        "Members that own nothing, and partitions that nobody owns, are the differences.",
        (_of_group("evenkeel_group_members"), "members"),
        (_of_group("evenkeel_group_idle_members"), "members that own nothing"),
        (_of_group("evenkeel_group_partitions"), "partitions"),
        (_of_group("evenkeel_group_assigned_partitions"), "partitions that a member owns"),
        (_of_group("evenkeel_group_drifted_partitions"), "partitions without the expected owner"),
    ),
    _plot(
        "Imbalance",
        "Most partitions of a member over the mean, minus 1; and the least that any assignment could have.",
        (_of_group("evenkeel_group_imbalance_ratio"), "now"),
        (_of_group("evenkeel_group_imbalance_optimal_ratio"), "least possible"),
        unit="percentunit",
    ),
]

_REBALANCES = [
    _plot(
        "Rebalances, by the hour",
        f"In the hour before each round: the {_MOST} groups with the most. A group without any has no line.",
        (_top("evenkeel_group_rebalances_last_hour"), "{{group}}"),
    ),
    _plot(
        "Partitions moved, by the hour",
        "From one owner to another by these rebalances, where that is known.",
        (_top("evenkeel_group_partitions_moved_last_hour"), "{{group}}"),
    ),
    Panel(
        "Newest decisions",
        f"The {_MOST} groups that decided last, and how long ago.",
        PanelKind.TABLE,
        [
            Ask(
                f"bottomk({_MOST}, time() - max by (group) "
                f"(evenkeel_group_last_decision_timestamp_seconds{{{_CLUSTER}}}))"
            )
        ],
        columns={"group": "group", "Value": "decided before"},
        width=24,
    ),
]

BOARD: Final = ExportedBoard(
    uid="evenkeel-prometheus",
    title="Evenkeel",
    told="Consumer groups: who should own which partition, who does, how far behind they are. Over /metrics of "
    "`evenkeel serve`.",
    source="prometheus",
    choices=[
        ("cluster", "Cluster", "label_values(evenkeel_round_age_seconds, cluster)"),
        ("group", "Group", f"label_values(evenkeel_group_lag_unknown_partitions{{{_CLUSTER}}}, group)"),
    ],
    rows={
        "All groups of the cluster": _OVERVIEW,
        "One group: $group": _ONE,
        "Rebalances": _REBALANCES,
    },
)
"""The board; `$cluster` and `$group` stand in its queries."""


def _by_cluster(name: str) -> str:
    """Each cluster's value once: several servers may show one lake, and one may be scraped in several modes."""
    return f"max by (cluster) ({name})"


def _number(title: str, told: str, text: str, colour: str = RED) -> Panel:
    """A number that should be 0."""
    # As `_NONE`, of all clusters.
    text = f"{text} or sum(0 * evenkeel_cluster_groups)"
    return _tile(title, told, text, steps=((None, GREEN), (1, colour)), without="not known")


def _lines(title: str, told: str, *asks: tuple[str, str], unit: str = "short") -> Panel:
    """Lines by cluster; each metric with what it is called behind the cluster, "" for nothing."""
    asked = ((_by_cluster(name), f"{{{{cluster}}}}{what and f': {what}'}") for name, what in asks)
    return _plot(title, told, *asked, unit=unit)


_NOW = [
    _tile(
        "Server",
        "Whether the tables can be read.",
        "min(evenkeel_lake_readable)",
        words={0: ("tables cannot be read", RED), 1: ("reads the tables", GREEN)},
        steps=((None, RED), (1, GREEN)),
        without="no server answers",
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
    _plot(
        "What takes the time of a batch",
        "By Spark's phases, the mean over the clusters; addBatch is the work, the others are its frame.",
        ("avg by (phase) (max by (cluster, phase) (evenkeel_job_batch_phase_seconds))", "{{phase}}"),
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
    _plot(
        "Deliveries of alerts",
        "Transitions by target and the newest outcome of their delivery, as far as the lake holds them.",
        (
            "max by (cluster, target, outcome) (evenkeel_alert_deliveries)",
            "{{cluster}}: {{target}} {{outcome}}",
        ),
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
