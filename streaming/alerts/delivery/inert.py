"""Names as plain text: nothing in a message acts at a target, whatever the name of a group or a topic contains.

There are two dangers, each with its own remedy. Mentions, tags and links act in many services, in each by its own
rules, and also where Apprise sends a text as it is: a zero-width space separates the characters that would act
together, everywhere. Marks (`*`, `_`, ...) only change how a name looks: they are escaped where the service reads
markdown and Apprise treats it as text; the other conversions are Apprise's own.

One thing remains: some services turn a bare host name (`a.example`) into a link to that host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from apprise import NotifyBase, NotifyFormat
from apprise.conversion import convert_between

# U+200B, as the libraries of chat services put it into "@everyone". It is invisible, and no name can contain one of its
# own: unprintable characters are escaped before.
_PART = "\u200b"

_ACTIVE = re.compile(
    r"""
      @(?=\S)                     # @everyone, @here, @channel, @room, @all, @user
    | <(?=\S)                     # HTML; <@U1>, <!channel>, <users/all>, <at user_id="all">, <url|text>
    | \](?=[(\[:])                # [text](link), [text][name], [name]: link
    | \[(?=CQ:)                   # [CQ:at,qq=all]
    | \((?=(?:met|rol|chn)\))     # (met)all(met)
    | :(?=//)                     # a link that is shown as itself still makes a service fetch it for a preview
    | \bwww(?=\.)
    """,
    re.VERBOSE | re.IGNORECASE,
)

LINK_LINES: Final = frozenset({"page", "runbook"})
"""Names of the lines of a message that have nothing but a link of ours."""

# Services that read markdown, to which Apprise sends it as text.
_READS_MARKDOWN: Final = frozenset({"discord", "mmost", "mmosts", "revolt"})

# Services that read markdown in the title too, of which Apprise converts only the body.
_READS_MARKDOWN_IN_TITLES: Final = frozenset({"workflow", "workflows"})

_MARKS = re.compile(r"([\\`*_~|#>\[\]])")


def inert(text: str) -> str:
    """The text without anything that mentions, links or marks up; looks the same."""
    return _ACTIVE.sub(lambda found: found[0] + _PART, text)


def written(
    schema: str, service: NotifyBase, title: str, body: str, links: Sequence[str] = ()
) -> tuple[str, str, NotifyFormat]:
    """Title and body in the format that a service reads.

    Args:
        schema: Schema of the target's URL, in lower case.
        service: Its plug-in.
        title: One line of text.
        body: Lines of text.
        links: Addresses in the body that stay as they are: those of our settings, never a name's.

    Returns:
        Both, and the format for `notify`, which must not convert again: some plug-ins skip that step.
    """
    title = inert(title)
    reads = service.resolve_format(NotifyFormat.TEXT)
    as_read: Callable[[str], str] = partial(convert_between, NotifyFormat.TEXT, reads)
    if schema in _READS_MARKDOWN and reads == NotifyFormat.TEXT:
        return _escaped(title), _except(links, body, lambda text: _escaped(inert(text))), reads
    body = _except(links, body, inert)
    if service.title_maxlen <= 0:  # the title becomes a part of the body
        title = as_read(title)
    elif schema in _READS_MARKDOWN_IN_TITLES:
        title = _escaped(title)
    return title, as_read(body), reads


def _except(links: Sequence[str], text: str, change: Callable[[str], str]) -> str:
    """A text, changed but for lines that end with one of our links after their name ("page: https://...")."""
    lines = []
    for line in text.split("\n"):
        name, sign, rest = line.partition(": ")
        is_link = bool(sign) and rest in links and name in LINK_LINES
        lines.append(line if is_link else change(line))
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)
