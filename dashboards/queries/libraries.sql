-- Which libraries and protocols are in use? Living groups with members, by what leads them.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
-- Columns: one row per kind of group, protocol and library.
--   group_type     classic, consumer, share, streams; NULL when the broker does not say
--   protocol_type  consumer, connect, ...; NULL when not known
--   library        client library, with the first release of its era, that gives the leaders' assignments; NULL where
--                  nobody knows: another verdict on the strategy that runs than identical, or the broker assigns
--   groups         such groups
--   members        their members
SELECT group_type, protocol_type, library, count(*) AS groups, CAST(sum(members) AS BIGINT) AS members
FROM (
  SELECT h.group_type, h.protocol_type, h.members,
    CASE WHEN h.verdict <> 'pending' AND coalesce(d.own_verdict, d.verdict) = 'identical' AND NOT contains(d.matching_library, 'broker:') THEN d.matching_library END
      AS library
  FROM group_health_current AS h
  LEFT JOIN (
    -- (Not max_by: DuckDB's passes over a decision that no library is known to have made, and gives that of an older one.
    -- Of a group that decides topic by topic it is that of the first topic.)
    SELECT cluster, group_id, verdict, own_verdict, matching_library,
      row_number() OVER (PARTITION BY cluster, group_id ORDER BY decision DESC, topic NULLS FIRST) AS place
    FROM drift_current
  ) AS d ON d.cluster = h.cluster AND d.group_id = h.group_id AND d.place = 1
  WHERE h.members > 0 AND (:cluster IS NULL OR h.cluster = :cluster)
) AS led
GROUP BY group_type, protocol_type, library
ORDER BY groups DESC, group_type NULLS LAST, protocol_type NULLS LAST, library NULLS LAST
