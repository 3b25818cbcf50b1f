"""The board over Prometheus: our own names of `/metrics` (docs/metrics.md)."""

from __future__ import annotations

from typing import Final

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


def _word(title: str, told: str, label: str, without: str) -> Panel:
    """What a label says of one group."""
    asked = Ask(f"max by ({label}) (evenkeel_group_{label}{{{_GROUP}}})", f"{{{{{label}}}}}")
    return Panel(title, told, PanelKind.WORD, [asked], width=6, height=4, without=without)


_OVERVIEW = [
    Panel(
        "Cluster",
        "A cluster is silent when no round came for longer than the alert rules allow: then nothing else is "
        "served of it, and every panel below is empty rather than old.",
        PanelKind.NUMBER,
        [Ask(f"max(evenkeel_cluster_silent{{{_CLUSTER}}})")],
        width=4,
        height=4,
        words={0: ("watched", GREEN), 1: ("silent", RED)},
        steps=((None, GREEN), (1, RED)),
        without="no server answers",
    ),
    Panel(
        "Age of the newest round",
        "How old everything on this board is.",
        PanelKind.NUMBER,
        [Ask(f"max(evenkeel_round_age_seconds{{{_CLUSTER}}})")],
        width=4,
        height=4,
        unit="s",
        without="no server answers",
    ),
    Panel(
        "Groups",
        "Groups in the newest round.",
        PanelKind.NUMBER,
        [Ask(f"max(evenkeel_cluster_groups{{{_CLUSTER}}})")],
        width=4,
        height=4,
    ),
    Panel(
        "Drifted",
        "Groups whose newest decision is not what their strategy gives.",
        PanelKind.NUMBER,
        [Ask(f'count(count by (group) (evenkeel_group_verdict{{{_CLUSTER},verdict="drifted"}})) or {_NONE}')],
        width=4,
        height=4,
        steps=((None, GREEN), (1, RED)),
    ),
    Panel(
        "Lag is bad",
        "Groups with a partition that is stopped, stalled, falling behind, rewound or ahead.",
        PanelKind.NUMBER,
        [
            Ask(
                "count(count by (group) (evenkeel_group_lag_status{"
                f'{_CLUSTER},lag_status=~"stopped|stalled|falling_behind|rewound|ahead"}})) or {_NONE}'
            )
        ],
        width=4,
        height=4,
        steps=((None, GREEN), (1, ORANGE)),
    ),
    Panel(
        "Alerts",
        "Alerts of Evenkeel's own rules that fire.",
        PanelKind.NUMBER,
        [Ask(f"sum(max by (rule, severity) (evenkeel_alerts_firing{{{_CLUSTER}}})) or {_NONE}")],
        width=4,
        height=4,
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
    Panel(
        "Verdicts",
        "How many groups have which verdict on their newest decision.",
        PanelKind.LINES,
        [
            Ask(
                f"count by (verdict) (max by (group, verdict) (evenkeel_group_verdict{{{_CLUSTER}}}))",
                "{{verdict}}",
            )
        ],
    ),
    Panel(
        "Lag",
        f"The {_MOST} largest, summed over the partitions whose lag is known.",
        PanelKind.LINES,
        [Ask(_top("evenkeel_group_lag_offsets"), "{{group}}")],
    ),
    Panel(
        "Time behind, at least",
        f"The {_MOST} largest: for so long the oldest unread record has been readable, if not longer.",
        PanelKind.LINES,
        [Ask(_top("evenkeel_group_time_behind_min_seconds"), "{{group}}")],
        unit="s",
    ),
]

_ONE = [
    _word("Verdict", "On the newest decision.", "verdict", "none yet"),
    _word("Lag status", "The worst status of a partition.", "lag_status", "not known"),
    _word("State", "As the group's coordinator gives it.", "state", "not known"),
    _word("Findings", "What else holds now.", "finding", "none"),
    Panel(
        "Lag by topic",
        "Offsets that the group has still to read, in partitions whose lag is known; and in how many it is not.",
        PanelKind.LINES,
        [
            Ask(f"max by (topic) (evenkeel_group_topic_lag_offsets{{{_GROUP}}})", "{{topic}}"),
            Ask(
                f"max by (topic) (evenkeel_group_topic_lag_unknown_partitions{{{_GROUP}}}) > 0",
                "{{topic}}: partitions not known",
            ),
        ],
    ),
    Panel(
        "Time behind",
        "How far the group is behind in time lies between these bounds; there may be no upper one.",
        PanelKind.LINES,
        [
            Ask(_of_group("evenkeel_group_time_behind_min_seconds"), "at least"),
            Ask(_of_group("evenkeel_group_time_behind_max_seconds"), "at most"),
        ],
        unit="s",
    ),
    Panel(
        "Members and partitions",
        "Members that own nothing, and partitions that nobody owns, are the differences.",
        PanelKind.LINES,
        [
            Ask(_of_group("evenkeel_group_members"), "members"),
            Ask(_of_group("evenkeel_group_idle_members"), "members that own nothing"),
            Ask(_of_group("evenkeel_group_partitions"), "partitions"),
            Ask(_of_group("evenkeel_group_assigned_partitions"), "partitions that a member owns"),
            Ask(_of_group("evenkeel_group_drifted_partitions"), "partitions without the expected owner"),
        ],
    ),
    Panel(
        "Imbalance",
        "Most partitions of a member over the mean, minus 1; and the least that any assignment could have.",
        PanelKind.LINES,
        [
            Ask(_of_group("evenkeel_group_imbalance_ratio"), "now"),
            Ask(_of_group("evenkeel_group_imbalance_optimal_ratio"), "least possible"),
        ],
        unit="percentunit",
    ),
]

_REBALANCES = [
    Panel(
        "Rebalances, by the hour",
        f"In the hour before each round: the {_MOST} groups with the most. A group without any has no line.",
        PanelKind.LINES,
        [Ask(_top("evenkeel_group_rebalances_last_hour"), "{{group}}")],
    ),
    Panel(
        "Partitions moved, by the hour",
        "From one owner to another by these rebalances, where that is known.",
        PanelKind.LINES,
        [Ask(_top("evenkeel_group_partitions_moved_last_hour"), "{{group}}")],
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
