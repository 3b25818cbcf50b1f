"""Colours and fonts of the page, light and dark, for Streamlit and for our HTML.

Colours only mark what is wrong, and never alone: a sign and a word accompany each. The colours differ in lightness as
well as in hue, so that colour-blind readers and prints can distinguish them (after Okabe and Ito's palette).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

__all__ = ["DARK", "LIGHT", "THEME", "Palette", "css_variables"]


@dataclass(frozen=True, slots=True)
class Palette:
    """One colour scheme, light or dark.

    Attributes:
        ground: Background of the page.
        raised: Background of raised elements: table heads, chips.
        line: Hairlines.
        text: Text.
        quiet: Less important text.
        accent: Links, expected owners, the line of a chart.
        bad: Wrong.
        bad_ground: Background of `bad`.
        warn: Needs attention.
        warn_ground: Background of `warn`.
        unsure: Unknown.
        unsure_ground: Background of `unsure`.
        owned: Cells that are as they should be.
    """

    ground: str
    raised: str
    line: str
    text: str
    quiet: str
    accent: str
    bad: str
    bad_ground: str
    warn: str
    warn_ground: str
    unsure: str
    unsure_ground: str
    owned: str


LIGHT = Palette(
    ground="#fcfcfb",
    raised="#f3f4f4",
    line="#e2e5e7",
    text="#1b2126",
    quiet="#5d6871",
    accent="#0b61a4",
    bad="#b53a06",
    bad_ground="#fdece4",
    warn="#7a5600",
    warn_ground="#fdf3d6",
    unsure="#5a4b8a",
    unsure_ground="#efecf8",
    owned="#6c8ba3",
)

DARK = Palette(
    ground="#14181b",
    raised="#1d2327",
    line="#2c343a",
    text="#e7eaec",
    quiet="#98a4ad",
    accent="#74b8ee",
    bad="#ff9062",
    bad_ground="#3a2018",
    warn="#f2c14e",
    warn_ground="#352b12",
    unsure="#b9a9ee",
    unsure_ground="#2a2540",
    owned="#5f7d93",
)


def css_variables() -> str:
    """The palettes as CSS variables that follow the colour scheme of the surrounding page."""
    pairs = [(f.name.replace("_", "-"), getattr(LIGHT, f.name), getattr(DARK, f.name)) for f in fields(Palette)]
    return "\n".join(f"  --{name}: light-dark({light}, {dark});" for name, light, dark in pairs)


def _theme(name: str, palette: Palette) -> dict[str, Any]:
    return {
        f"theme_{name}_primaryColor": palette.accent,
        f"theme_{name}_backgroundColor": palette.ground,
        f"theme_{name}_secondaryBackgroundColor": palette.raised,
        f"theme_{name}_textColor": palette.text,
        f"theme_{name}_linkColor": palette.accent,
        f"theme_{name}_borderColor": palette.line,
    }


THEME: dict[str, Any] = {
    "theme_font": "sans-serif",
    "theme_baseFontSize": 14,
    "theme_baseRadius": "4px",
    **_theme("light", LIGHT),
    **_theme("dark", DARK),
}
"""Streamlit's options; "_" stands for the "." in their names."""
