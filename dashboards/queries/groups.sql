-- Which groups need attention, and why? Every living group, the worst first.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :group_id  STRING  one group; NULL for all
--   :imbalance DOUBLE  the alert rules' threshold for imbalance above the least possible
-- Columns: one row per group; the columns of group_health keep their names, and
--   problems   what is wrong or worth knowing, the worst first, separated by spaces; '' when nothing is:
--              drifted, unassigned, stuck_rebalance, loses_data, split_brain, doubly_held, held_by_nobody,
--              orderly_not_locked, missing_topics, wrong_partition_counts, topology_not_ready,
--              doubly_owned, stopped, stalled                           partitions have the wrong owner or none, are not
--                                                                       consumed, or not before their retention ends
--              falling_behind, rewound, ahead, may_lose_data, imbalance, rebalance_storm, mismatch,
--              not_subscribed, no_such_partition,
--              member_lists_differ, route_differs, mixed_strategies, subscriptions_differ, duplicate_client_id,
--              not_answering, broker_not_answering, redelivering, stuck_deliveries, records_given_up,
--              standby_beside_active, long_warmup, assignment_error, worker_behind
--                                                                       works, but not as it should
--              offsets_blocked, lag_unknown, stale_metadata, topic_not_visible, topic_recreated, idle_members,
--              never_committed                                          unknown now, about to change, or perhaps meant so
--   health     by the worst problem: 3 critical, 2 warning, 1 unknown, one for each of the lines above; 0 ok; -1 ok,
--              no members
--   drifted_partitions  those of the newest verdict if it is drifted; else NULL
-- A group is imbalanced if its imbalance exceeds the least that any assignment could reach by more than the threshold.
-- Data is lost soon if retention ends within an hour, or its last tenth, as the shipped alert rule has it: certain where
-- members read topics with LogAppendTime (loses_data), else as far as producers' clocks and intentions go
-- (may_lose_data).
-- Findings are searched in their JSON text. No name can imitate them there: its quotes would be escaped.
WITH health AS (
  SELECT *, to_json(findings) AS findings_json, coalesce(imbalance - imbalance_optimal, 0) AS avoidable,
    CASE WHEN loses_data_in_seconds_max < least(3600, loses_data_retention_seconds / 10)
      THEN CASE WHEN loses_data_by = 'append_time' AND members > 0 THEN 'loses_data' ELSE 'may_lose_data' END
    END AS loss
  FROM group_health_current
  WHERE (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
),
judged AS (
  SELECT *,
    concat_ws(' ',
      CASE WHEN verdict = 'drifted' AND coalesce(verdict_basis, '') <> 'configured' THEN 'drifted' END,
      CASE WHEN contains(findings_json, '{"finding":"unassigned"') THEN 'unassigned' END,
      CASE WHEN contains(findings_json, '{"finding":"stuck_rebalance"') THEN 'stuck_rebalance' END,
      CASE WHEN loss = 'loses_data' THEN loss END,
      CASE WHEN contains(findings_json, '{"finding":"split_brain"') THEN 'split_brain' END,
      CASE WHEN contains(findings_json, '{"finding":"doubly_held"') THEN 'doubly_held' END,
      CASE WHEN contains(findings_json, '{"finding":"held_by_nobody"') THEN 'held_by_nobody' END,
      CASE WHEN contains(findings_json, '{"finding":"orderly_not_locked"') THEN 'orderly_not_locked' END,
      CASE WHEN contains(findings_json, '{"finding":"missing_topics"') THEN 'missing_topics' END,
      CASE WHEN contains(findings_json, '{"finding":"wrong_partition_counts"') THEN 'wrong_partition_counts' END,
      CASE WHEN contains(findings_json, '{"finding":"topology_not_ready"') THEN 'topology_not_ready' END,
      CASE WHEN contains(findings_json, '{"finding":"doubly_owned"') THEN 'doubly_owned' END,
      CASE WHEN lag_status IN ('stopped', 'stalled') THEN lag_status END
    ) AS critical,
    concat_ws(' ',
      CASE WHEN lag_status IN ('falling_behind', 'rewound', 'ahead') THEN lag_status END,
      CASE WHEN loss = 'may_lose_data' THEN loss END,
      CASE WHEN avoidable > :imbalance THEN 'imbalance' END,
      CASE WHEN contains(findings_json, '{"finding":"rebalance_storm"') THEN 'rebalance_storm' END,
      CASE WHEN contains(findings_json, '{"finding":"not_subscribed"') THEN 'not_subscribed' END,
      CASE WHEN contains(findings_json, '{"finding":"no_such_partition"') THEN 'no_such_partition' END,
      CASE WHEN contains(findings_json, '{"finding":"member_lists_differ"') THEN 'member_lists_differ' END,
      CASE WHEN contains(findings_json, '{"finding":"route_differs"') THEN 'route_differs' END,
      CASE WHEN contains(findings_json, '{"finding":"mixed_strategies"') THEN 'mixed_strategies' END,
      CASE WHEN contains(findings_json, '{"finding":"subscriptions_differ"') THEN 'subscriptions_differ' END,
      CASE WHEN contains(findings_json, '{"finding":"duplicate_client_id"') THEN 'duplicate_client_id' END,
      CASE WHEN contains(findings_json, '{"finding":"not_answering"') THEN 'not_answering' END,
      CASE WHEN contains(findings_json, '{"finding":"broker_not_answering"') THEN 'broker_not_answering' END,
      CASE WHEN contains(findings_json, '{"finding":"redelivering"') THEN 'redelivering' END,
      CASE WHEN contains(findings_json, '{"finding":"stuck_deliveries"') THEN 'stuck_deliveries' END,
      CASE WHEN contains(findings_json, '{"finding":"records_given_up"') THEN 'records_given_up' END,
      CASE WHEN contains(findings_json, '{"finding":"standby_beside_active"') THEN 'standby_beside_active' END,
      CASE WHEN contains(findings_json, '{"finding":"long_warmup"') THEN 'long_warmup' END,
      CASE WHEN contains(findings_json, '{"finding":"assignment_error"') THEN 'assignment_error' END,
      CASE WHEN contains(findings_json, '{"finding":"worker_behind"') THEN 'worker_behind' END,
      CASE WHEN strategy_mismatch THEN 'mismatch' END
    ) AS warning,
    concat_ws(' ',
      CASE WHEN contains(findings_json, '{"finding":"offsets_blocked"') THEN 'offsets_blocked'
           WHEN lag_status = 'unknown' THEN 'lag_unknown' END,
      CASE WHEN contains(findings_json, '{"finding":"stale_metadata"') THEN 'stale_metadata' END,
      CASE WHEN contains(findings_json, '{"finding":"topic_not_visible"') THEN 'topic_not_visible' END,
      CASE WHEN contains(findings_json, '{"finding":"topic_recreated"') THEN 'topic_recreated' END,
      CASE WHEN contains(findings_json, '{"finding":"idle_members"') THEN 'idle_members' END,
      CASE WHEN contains(findings_json, '{"finding":"never_committed"') THEN 'never_committed' END
    ) AS not_known
  FROM health
),
ranked AS (
  SELECT *,
    trim(concat_ws(' ', nullif(critical, ''), nullif(warning, ''), nullif(not_known, ''))) AS problems,
    CASE WHEN critical <> '' THEN 3 WHEN warning <> '' THEN 2 WHEN not_known <> '' THEN 1 WHEN members = 0 THEN -1 ELSE 0
    END AS health
  FROM judged
),
wrong AS (
  -- (A group that decides topic by topic has a verdict for each; one of a topic that it has left is older.)
  SELECT cluster, group_id, flatten(array_agg(drifted_partitions)) AS drifted_partitions
  FROM (SELECT *, max(decision) OVER (PARTITION BY cluster, group_id) AS newest FROM drift_current) AS d
  WHERE decision = newest AND verdict = 'drifted'
  GROUP BY cluster, group_id
)
SELECT
  r.cluster, r.group_id, r.health, r.problems, r.round_time, r.state, r.group_type, r.protocol_type, r.strategy,
  r.expected_strategy, r.generation, r.last_decision_time, r.members, r.verdict, r.verdict_basis, r.verdict_reason, r.drifted_count,
  r.findings, r.topics, r.partitions, r.assigned_partitions, r.lag_total,
  r.lag_read_committed_total, r.lost_records, r.lag_max, r.lag_unknown, r.lag_status,
  r.imbalance, r.imbalance_optimal, d.drifted_partitions, r.time_behind_seconds_min, r.time_behind_seconds_max,
  r.time_behind_reason, r.time_behind_topic, r.time_behind_partition, r.loses_data_in_seconds_min, r.loses_data_in_seconds_max,
  r.loses_data_topic, r.loses_data_partition, r.loses_data_by, r.source
FROM ranked AS r
LEFT JOIN wrong AS d ON d.cluster = r.cluster AND d.group_id = r.group_id AND r.verdict = 'drifted'
ORDER BY r.health DESC,
  CASE WHEN r.critical LIKE 'drifted%' THEN 0 WHEN r.lag_status = 'stopped' THEN 1 WHEN r.lag_status = 'stalled' THEN 2
       WHEN r.critical <> '' THEN 3 ELSE 4 END,
  r.group_id, r.cluster
