"""What Grafana makes of a query before it sends it."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

_EPOCH = datetime.fromtimestamp(0, UTC)


def interpolated(text: str, cluster: str = "", group: str = "", since: datetime = _EPOCH) -> str:
    """The query with values for its variables, and without the tables' schema.

    Grafana's percent encoding is encodeURIComponent, and of !'()* as well: letters, digits and -_.~ stay.
    """
    return (
        text.replace("${cluster:percentencode}", quote(cluster, safe=""))
        .replace("${group:percentencode}", quote(group, safe=""))
        .replace("${__from}", str(int(since.timestamp() * 1000)))
        .replace("evenkeel.", "")
    )
