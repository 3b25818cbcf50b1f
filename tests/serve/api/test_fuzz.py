"""Any path and any parameters: no failure of the server, and no answer that takes long."""

from __future__ import annotations

import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming.serve.api import PREFIX
from streaming.serve.api.listings import LISTINGS
from tests.dashboards.made_lake import CLUSTER
from tests.serve.conftest import Served
from tests.serve.texts import TEXTS

# A thousand times what such an answer takes: only what hangs is slow.
_LONG_S = 20

NAMES = ("cluster", "group", "topic", "status", "verdict", "since", "limit", "cursor", "mode", "nonsense")

PATHS = st.one_of(
    st.sampled_from([f"{PREFIX}/{listing.name}" for listing in LISTINGS]),
    st.sampled_from(["/", "/metrics", "/metrics/kminion", f"{PREFIX}/openapi.json"]),
    TEXTS.map(lambda text: f"{PREFIX}/groups/{text}"),
    TEXTS.map(lambda text: f"/metrics/{text}"),
    st.tuples(
        st.sampled_from(["consumer", "topic"]), TEXTS, st.sampled_from(["", "/status", "/lag", "/consumers"])
    ).map(lambda parts: f"/v3/kafka/{CLUSTER}/{parts[0]}/{parts[1]}{parts[2]}"),
    TEXTS.map(lambda text: f"/v3/kafka/{text}/consumer"),
    TEXTS.map(lambda text: f"/{text}"),
)


@given(path=PATHS, parameters=st.lists(st.tuples(st.one_of(st.sampled_from(NAMES), TEXTS), TEXTS), max_size=4))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_request_fails_the_server(served: Served, path: str, parameters: list[tuple[str, str]]) -> None:
    began = time.monotonic()
    answer = served.get(f"{path}?{'&'.join(f'{name}={value}' for name, value in parameters)}")
    assert answer.status < 500
    assert time.monotonic() - began < _LONG_S
