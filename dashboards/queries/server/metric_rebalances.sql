-- How often did each group rebalance in the hour before its cluster's newest round, and how much moved?
--
-- Parameters: none.
-- Columns: one row per group that rebalanced.
--   cluster, group_id  the group
--   rebalances         decisions of kind rebalance
--   partitions_moved   sum of partitions_moved where it is known; NULL where it never is
SELECT c.cluster, c.group_id, count(*) AS rebalances, CAST(sum(c.partitions_moved) AS BIGINT) AS partitions_moved
FROM rebalance_churn_current AS c
JOIN rounds_current AS r ON r.cluster = c.cluster
WHERE c.kind = 'rebalance' AND c.record_time > r.round_time - INTERVAL 1 HOUR
GROUP BY c.cluster, c.group_id
ORDER BY c.cluster, c.group_id
