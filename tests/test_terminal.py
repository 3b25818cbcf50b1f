from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.terminal import age, counted, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-1 ü 😀", "orders-1 ü 😀"),
        ("two\nlines\r\n", "two\\nlines\\r\\n"),
        ("\x1b[2Jgone\x07", "\\x1b[2Jgone\\x07"),
        ("right \u202eto left", "right \\u202eto left"),
        ("\u2028 \x85 \ud800", "\\u2028 \\x85 \\ud800"),
        ("a" * 300 + "z", "a" * 99 + "…" + "a" * 98 + "z"),
    ],
)
def test_what_a_terminal_would_act_on_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters()), st.integers(3, 50))
def test_any_text_comes_on_one_short_line_that_can_be_encoded(text: str, longest: int) -> None:
    shown = visible(text, longest)
    assert shown.isprintable()
    assert len(shown) <= longest
    shown.encode("utf-8")


def test_a_span_has_a_unit_or_two() -> None:
    spans = {
        -5: "0 s",
        40: "40 s",
        119: "119 s",
        180: "3 min",
        7_800: "2 h 10 min",
        169_200: "47 h",
        3 * 86_400: "3 days",
    }
    assert {seconds: age(timedelta(seconds=seconds)) for seconds in spans} == spans


def test_a_noun_gets_an_s_unless_there_is_one() -> None:
    assert [counted(n, "partition") for n in (0, 1, 12_400)] == ["0 partitions", "1 partition", "12,400 partitions"]
