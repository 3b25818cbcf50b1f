-- Who runs what? Client ids and hosts with the groups that they are in.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :text      STRING  part of a client id, host, instance id, rack or group, in small letters; '' for all
--   :most      INT     most rows to return
-- Columns: one row per client id and host in a group.
--   cluster, client_id, client_host, group_id  names as the broker recorded them
--   members         members with this client id and host
--   static_members  those of them with a group.instance.id
--   instance        the first of these; NULL without one
--   rack            the first client.rack; NULL without one
--   leads           whether one of them led the newest generation
--   partitions      partitions that they own; NULL where that cannot be read
--   group_type, protocol_type, strategy        those of the group
--   library         client library, with the first release of its era, that gives the leader's assignment. Only for those
--                   that led, where the verdict is identical: no record names any other's; NULL then
--   of_all          rows without the limit
WITH clients AS (
  SELECT cluster, client_id, client_host, group_id, count(*) AS members,
    CAST(sum(CASE WHEN group_instance_id IS NULL THEN 0 ELSE 1 END) AS BIGINT) AS static_members,
    min(group_instance_id) AS instance, min(rack) AS rack, max(CASE WHEN leader THEN 1 ELSE 0 END) = 1 AS leads,
    CAST(sum(partition_count) AS BIGINT) AS partitions
  FROM members_current
  WHERE (:cluster IS NULL OR cluster = :cluster)
    AND (:text = '' OR contains(lower(client_id), :text) OR contains(lower(client_host), :text)
      OR contains(lower(group_instance_id), :text) OR contains(lower(rack), :text) OR contains(lower(group_id), :text))
  GROUP BY cluster, client_id, client_host, group_id
)
SELECT c.cluster, c.client_id, c.client_host, c.group_id, c.members, c.static_members, c.instance, c.rack, c.leads,
  c.partitions, h.group_type, h.protocol_type, h.strategy,
  CASE WHEN c.leads AND h.verdict = 'identical' AND NOT contains(d.matching_library, 'broker:')
    THEN d.matching_library END AS library,
  count(*) OVER () AS of_all
FROM clients AS c
LEFT JOIN group_health_current AS h ON h.cluster = c.cluster AND h.group_id = c.group_id
LEFT JOIN (
    -- (As in libraries.sql.)
    SELECT cluster, group_id, matching_library,
      row_number() OVER (PARTITION BY cluster, group_id ORDER BY decision DESC, topic NULLS FIRST) AS place
    FROM drift_current
  ) AS d ON d.cluster = c.cluster AND d.group_id = c.group_id AND d.place = 1
ORDER BY c.client_id NULLS LAST, c.client_host NULLS LAST, c.group_id, c.cluster
LIMIT :most
