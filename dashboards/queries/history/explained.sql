-- The newest verdict on a group, a generation or a decision, with what it used.
--
-- Parameters:
--   :cluster     STRING  the cluster; NULL for all
--   :group_id    STRING  the group
--   :generation  INT     its generation or epoch; NULL for any
--   :decision    BIGINT  number of the decision; NULL for any
-- Columns: one row per cluster and topic (NULL for Kafka), the worst topic first and topics of retries last; the columns
-- of drift keep their names.
--   protocol_type  that of the decision; NULL if it is not known
SELECT cluster, group_id, topic, decision, record_time, generation, strategy, expected_strategy, verdict, basis, own_verdict, reason,
  matching_library, nearest_library, nearest_differing, drifted_count, drifted_partitions, inputs,
  (SELECT max(c.protocol_type) FROM rebalance_churn AS c
   WHERE c.cluster = known.cluster AND c.group_id = known.group_id AND c.decision = known.decision) AS protocol_type
FROM (
  SELECT *, row_number() OVER (PARTITION BY cluster, topic ORDER BY round DESC, decision DESC) AS age
  FROM drift
  WHERE group_id = :group_id AND (:cluster IS NULL OR cluster = :cluster)
    AND (:generation IS NULL OR generation = :generation) AND (:decision IS NULL OR decision = :decision)
) AS known
WHERE age = 1
ORDER BY cluster, decision DESC,
  CASE verdict WHEN 'drifted' THEN 0 WHEN 'unverified' THEN 1 WHEN 'identical' THEN 2 ELSE 3 END,
  CASE WHEN substring(topic, 1, 7) = '%RETRY%' THEN 1 ELSE 0 END, topic
