"""Texts as anybody could put them into an address, quoted."""

from __future__ import annotations

from urllib.parse import quote, quote_from_bytes

from hypothesis import strategies as st

from streaming.serve.api.listings import encode_cursor
from tests.dashboards.made_lake import CLUSTER, HOSTILE

TEXTS = st.one_of(
    st.text(max_size=60).map(lambda text: quote(text.encode("utf-8", "surrogatepass"))),
    st.binary(max_size=60).map(quote_from_bytes),
    st.sampled_from([*map(quote, HOSTILE), CLUSTER, "null", "0", "-1", "1000", "1" * 400, "1e9", "NaN", "%00", "+"]),
    st.datetimes().map(lambda time: quote(f"{time.isoformat()}Z")),
    st.lists(st.one_of(st.text(max_size=9), st.integers(), st.floats(allow_nan=False), st.none()),
             max_size=5).map(encode_cursor),
)  # fmt: skip
