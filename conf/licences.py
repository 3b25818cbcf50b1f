"""Which licence a jar or a package of the page declares, read from itself; None where it says nothing that is known.

A jar says it in the POM inside it, in its manifest, or by the text of a licence. Where it says nothing, its POM in the
registry of Maven artifacts and that POM's parents may, if they can be reached (`of_pom`). Nothing is guessed from
names.
"""

import re
import tempfile
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

# How licences' own texts begin, to the id of SPDX.
_TEXTS = {
    "Apache License Version 2.0": "Apache-2.0",
    "MIT License": "MIT",
    "The MIT License": "MIT",
    "Zero-Clause BSD": "0BSD",
    "Eclipse Public License - v 2.0": "EPL-2.0",
    "COMMON DEVELOPMENT AND DISTRIBUTION LICENSE (CDDL) Version 1.0": "CDDL-1.0",
}

# The longest chain of parents seen is of four POMs.
_PARENTS = 6

_TIMEOUT_S = 30


def of_jar(path):
    """The names of a jar's licences, joined by " and ", or None."""
    with zipfile.ZipFile(path) as jar:
        names = jar.namelist()
        poms = [name for name in names if re.fullmatch(r"META-INF/maven/[^/]+/[^/]+/pom\.xml", name)]
        # (A jar with several POMs has other jars in it, and theirs are not its own.)
        declared = _declared(ET.fromstring(jar.read(poms[0]))) if len(poms) == 1 else []
        if not declared and "META-INF/MANIFEST.MF" in names:
            manifest = re.sub(r"\r?\n ", "", jar.read("META-INF/MANIFEST.MF").decode("utf-8", "replace"))
            declared = [line.strip() for line in re.findall(r"(?m)^Bundle-License: *(.+)$", manifest)]
        if not declared:
            texts = [name for name in names if re.fullmatch(r"(META-INF/)?LICENSE(\.txt|\.md)?", name)]
            declared = [text for text in (of_text(jar.read(name)) for name in texts) if text]
    return " and ".join(dict.fromkeys(declared)) or None


def of_text(text):
    """The licence whose text this is, by its first words; None for another."""
    begin = " ".join(text[:400].decode("utf-8", "replace").replace(",", " ").split())
    return next((name for words, name in _TEXTS.items() if begin.startswith(words)), None)


def of_pom(group, artifact, version):
    """The licences that a jar's POM in the registry declares, or its nearest parent's; None where none is found."""
    from jgo.config import GlobalSettings
    from jgo.maven import MavenContext, PythonResolver

    with tempfile.TemporaryDirectory() as scratch:
        context = MavenContext(resolver=PythonResolver(), repo_cache=Path(scratch), timeout=_TIMEOUT_S)
        context.remote_repos = {**dict(GlobalSettings.load().repositories), **context.remote_repos}
        try:
            for _ in range(_PARENTS):
                pom = context.project(group, artifact).at_version(version).pom()
                names = [name for each in pom.elements("licenses/license") if (name := _name(each))]
                if names:
                    return " and ".join(dict.fromkeys(names))
                group, artifact, version = (pom.value(f"parent/{p}") for p in ("groupId", "artifactId", "version"))
                if not (group and artifact and version):
                    return None
        except (OSError, RuntimeError):  # the registry is away, or has no such POM
            return None
    return None


def _declared(project):
    return [name for each in project.findall("{*}licenses/{*}license") if (name := _name(each))]


def _name(licence):
    found = licence.findtext("{*}name") or licence.findtext("{*}url")
    return found.strip() if found else None
