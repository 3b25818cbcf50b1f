"""The alert rules as texts to show. They are read from the file that the alerter reads, which checks them; here not."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streaming.config import SHIPPED_RULES, Thresholds, read_rules_file, rules_file
from streaming.exceptions import EvenkeelError

__all__ = ["RuleText", "Rules", "RulesFile", "rules_of"]

_THRESHOLD: Final = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")

# A file of thousands of rules is none that a person reads.
_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class RuleText:
    """One rule, as it stands in the file.

    Attributes:
        name: Name of the alert.
        enabled: Whether it is judged.
        severity: info, warning or critical.
        view: What it reads.
        when: The condition.
        hold: For how long it must have been true; "" for not at all.
        value: What number it shows; "" for none.
        message: Template of the message.
        labels: Pairs of name and template.
        per: Columns that name the subject of an alert over events; "" otherwise.
        keep: How long after the last event it resolves; "" where the file does not say.
        thresholds: Those in condition and value, with their numbers; None for one that the file does not have.
    """

    name: str
    enabled: bool
    severity: str
    view: str
    when: str
    hold: str
    value: str
    message: str
    labels: tuple[tuple[str, str], ...]
    per: str
    keep: str
    thresholds: tuple[tuple[str, float | None], ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """The content of a rules file.

    Attributes:
        rules: In the order of the file.
        shipped: Whether it is the file that comes with Evenkeel.
        problem: Why it cannot be read, in one sentence; None when it can.
    """

    rules: tuple[RuleText, ...]
    shipped: bool
    problem: str | None = None


class RulesFile:
    """The rules, read again when the file changes. Any thread may ask."""

    def __init__(self, file: Path | None = None) -> None:
        """Prepare.

        Args:
            file: The file; None finds it as the alerter does.
        """
        self._file = file
        self._lock = threading.Lock()
        self._seen: tuple[Path, int, int] | None = None
        self._rules = Rules((), shipped=False)

    def read(self) -> Rules:
        """The rules of now."""
        with self._lock:
            try:
                file = self._file or rules_file()
                stat = file.stat()
                seen = (file, stat.st_mtime_ns, stat.st_size)
                if seen != self._seen:
                    self._rules = Rules(rules_of(read_rules_file(file), file), shipped=file == SHIPPED_RULES)
                    self._seen = seen
            except (EvenkeelError, OSError) as error:
                self._seen = None
                return Rules((), shipped=False, problem=f"The alert rules cannot be read: {error}")
            return self._rules


def rules_of(content: Mapping[str, Any], file: Path) -> tuple[RuleText, ...]:
    """The rules in the content of a file; what is no rule is left out.

    Raises:
        SetupError: The thresholds are wrong.
    """
    thresholds = Thresholds.of(content.get("thresholds"), file).by_name()
    listed = content.get("rules")
    given = [rule for rule in (listed if isinstance(listed, list) else []) if isinstance(rule, dict)]
    return tuple(_rule(rule, thresholds) for rule in given[:_MOST])


def _rule(given: Mapping[Any, Any], thresholds: Mapping[str, float]) -> RuleText:
    when, value = _text(given.get("when")), _text(given.get("value"))
    labels, per = given.get("labels"), given.get("per")
    named = dict.fromkeys(_THRESHOLD.findall(f"{when} {value}"))
    return RuleText(
        name=_text(given.get("name")),
        enabled=given.get("enabled") is not False,
        severity=_text(given.get("severity")),
        view=_text(given.get("view")),
        when=when,
        hold=_text(given.get("for")),
        value=value,
        message=_text(given.get("message")),
        labels=tuple((_text(k), _text(v)) for k, v in sorted(labels.items(), key=str))
        if isinstance(labels, dict)
        else (),
        per=", ".join(map(_text, per)) if isinstance(per, list) else "",
        keep=_text(given.get("keep")),
        thresholds=tuple((name, thresholds.get(name)) for name in named),
    )


def _text(given: object) -> str:
    # (YAML reads `when: true` as a boolean.)
    if given is None:
        return ""
    return str(given).lower() if isinstance(given, bool) else str(given).strip()
