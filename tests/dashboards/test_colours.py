"""The palette of the page, read from its style."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STYLE = (Path(__file__).parents[2] / "dashboards" / "static" / "page.css").read_text(encoding="utf-8")
PAIRS = re.findall(r"^  --([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);$", STYLE, re.MULTILINE)
LIGHT, DARK = ({name: pair[at] for name, *pair in PAIRS} for at in (0, 1))


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_colour_of_text_can_be_read_on_its_ground(palette: dict[str, str]) -> None:
    # WCAG 2.1, 1.4.3: 4.5 to 1 for text.
    for name in ("text", "quiet", "accent", "bad", "warn", "unsure"):
        assert _contrast(palette[name], palette["ground"]) >= 4.5, name
    for name in ("bad", "warn", "unsure"):
        assert _contrast(palette[name], palette[f"{name}-ground"]) >= 4.5, name
    # WCAG 2.1, 1.4.11: 3 to 1 for graphics.
    assert _contrast(palette["owned"], palette["ground"]) >= 3
