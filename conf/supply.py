"""What Evenkeel is made of, and what is known to be wrong with it.

    python conf/supply.py sbom      # build/sbom.json (CycloneDX) and build/licences.md
    python conf/supply.py audit     # known vulnerabilities of all of it

`make sbom` and `make audit` run it with the Python of .venv. The tools are in an environment of their own in the cache
(conf/supply.lock). Exit codes of the audit: 0 nothing is known, 1 something is, 3 a source of advisories could not be
reached, so that nobody takes silence for health.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from xml.etree import ElementTree as ET

import pyspark
import requests
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from streaming.jars import jar_sets
from streaming.places import cache_folder

ROOT = Path(__file__).resolve().parent.parent
CONF = ROOT / "conf"
BUILD = ROOT / "build"

# Jars that run where Evenkeel is used; those of the demo's broker; all others are for tests.
USED_SETS, DEMO_SETS = {"spark", "s3a"}, {"broker"}

# A database of advisories for Maven among others; its batch answers with ids for many packages at once.
ADVISORIES = "https://api.osv.dev/v1/querybatch"
AT_ONCE = 500
TIMEOUT_S = 30

KNOWN, UNREACHABLE = 1, 3


def sbom():
    """Write the bill of materials and the list of licences."""
    document = python_components()
    parts = document["components"]
    parts += [
        jar_component(jar.path_in(cache_folder() / "jars"), jar.sha256, jar.group, jar.artifact, jar.version)
        | {"scope": scope_of(sets)}
        for jar, sets in listed_jars().items()
    ]
    parts += page_components()
    document["components"] = sorted(parts, key=lambda part: (part["purl"].split("/")[0], part["name"].lower()))
    BUILD.mkdir(exist_ok=True)
    (BUILD / "sbom.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    rows = list(licence_rows(document))
    (BUILD / "licences.md").write_text("\n".join(rows) + "\n", encoding="utf-8")
    unknown = sum("| unknown |" in row for row in rows)
    print(f"build/sbom.json and build/licences.md: {len(rows) - 2} parts, of {unknown} of which the licence is unknown")
    return 0


def python_components():
    """CycloneDX's document of .venv, each package with its scope."""
    command = ["environment", "--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "--of", "JSON"]
    found = json.loads(run_tool("cyclonedx-py", *command, "-o", "-", sys.executable).stdout)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    required = closure(project["dependencies"])
    optional = closure([line for name in extras if name != "dev" for line in extras[name]])
    for part in found["components"]:
        name = canonicalize_name(part["name"])
        part["scope"] = "required" if name in required else "optional" if name in optional else "excluded"
        if part["name"] == "pyspark":
            part["components"] = [
                jar_component(path, hashlib.sha256(path.read_bytes()).hexdigest(), *coordinate(path))
                for path in pyspark_jars()
            ]
    return found


def closure(lines):
    """The names of the packages that these requirements bring."""
    left = [Requirement(line) for line in lines]
    found = set()
    while left:
        wanted = left.pop()
        extras = {"", *wanted.extras}
        if (canonicalize_name(wanted.name), *sorted(extras)) in found:
            continue
        found |= {canonicalize_name(wanted.name), (canonicalize_name(wanted.name), *sorted(extras))}
        try:
            needs = map(Requirement, requires(wanted.name) or ())
        except PackageNotFoundError:  # an extra that is not installed here
            continue
        left += [
            need for need in needs if any(need.marker is None or need.marker.evaluate({"extra": e}) for e in extras)
        ]
    return found


def listed_jars():
    """The jars of conf/jars.toml, each with the sets that it is in."""
    found = {}
    for name, jars in jar_sets().items():
        for jar in jars:
            found.setdefault(jar, set()).add(name)
    return found


def scope_of(sets):
    """Who needs a jar that is in these sets."""
    return "required" if sets & USED_SETS else "optional" if sets & DEMO_SETS else "excluded"


def pyspark_jars():
    """The jars that pyspark brings, Spark's own among them."""
    return sorted(Path(pyspark.__file__).parent.glob("jars/*.jar"))


def coordinate(path):
    """Group, artifact and version of a jar of pyspark; the group is None where the jar does not say it."""
    artifact, version = re.fullmatch(r"(.+?)-(\d.*)\.jar", path.name).groups()
    with zipfile.ZipFile(path) as jar:
        insides = [re.fullmatch(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties", name) for name in jar.namelist()]
    group = next((inside[1] for inside in insides if inside and inside[2] == artifact), None)
    return group, artifact, version


def jar_component(path, sha256, group, artifact, version):
    """A jar; its group is None where nobody says it."""
    purl = f"pkg:maven/{group}/{artifact}@{version}" if group else f"pkg:generic/{artifact}@{version}"
    licence = of_jar(path) or (of_pom(group, artifact, version) if group else None)
    return component(purl, group, artifact, version, {"alg": "SHA-256", "content": sha256}, licence)


def page_components():
    """The browser's libraries (conf/scripts.toml): in the wheel, except those of the tests."""
    for name, package in tomllib.loads((CONF / "scripts.toml").read_text(encoding="utf-8")).items():
        is_shipped = "for" not in package
        text = ROOT / "dashboards" / "static" / "vendor" / next(n for n in package["files"] if n.endswith(".LICENSE"))
        licence = of_text(text.read_bytes()) if is_shipped and text.exists() else None
        purl, digest = f"pkg:npm/{name}@{package['version']}", {"alg": "SHA-512", "content": package["sha512"]}
        yield component(purl, None, name, package["version"], digest, licence) | {
            "scope": "required" if is_shipped else "excluded"
        }


def component(purl, group, name, version, digest, licence):
    """A part of the list; what is not known of it is left out."""
    known = {
        "group": group,
        "hashes": [digest],
        "licenses": [{"license": {"name": licence}}] if licence else None,
    }
    found = {"type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version}
    return found | {name: value for name, value in known.items() if value}


def licence_rows(document):
    """A line of Markdown a part."""
    yield "| part | version | licence | scope |"
    yield "|---|---|---|---|"
    for part in document["components"]:
        for each in (part, *part.get("components", ())):
            name = f"{each['group']}:{each['name']}" if each.get("group") else each["name"]
            if each is not part:
                name = f"{name} (in {part['name']})"
            told = dict.fromkeys(
                entry.get("expression") or entry["license"].get("id") or entry["license"]["name"]
                for entry in each.get("licenses", ())
            )
            words = "; ".join(told).replace("License :: OSI Approved :: ", "").replace("|", "/") or "unknown"
            yield f"| {name} | {each['version']} | {words} | {each.get('scope', part.get('scope', ''))} |"


# A jar says its licence in the POM inside it, in its manifest, or by the text of a licence. Where it says nothing, its
# POM in the registry of Maven artifacts and that POM's parents may. Nothing is guessed from names.

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


def of_jar(path):
    """The names of a jar's licences, joined by " and ", or None."""
    with zipfile.ZipFile(path) as jar:
        names = jar.namelist()
        poms = [name for name in names if re.fullmatch(r"META-INF/maven/[^/]+/[^/]+/pom\.xml", name)]
        # A jar with several POMs has other jars in it, and theirs are not its own.
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
        context = MavenContext(resolver=PythonResolver(), repo_cache=Path(scratch), timeout=TIMEOUT_S)
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


def audit():
    """Ask for known vulnerabilities of packages and jars; returns the exit code."""
    return max(audit_packages(), audit_jars())


def audit_packages():
    """By pip-audit, whose own exit code is 0 as well where it could look up nothing."""
    lock = str(CONF / "requirements.lock")
    done = run_tool("pip-audit", "-r", lock, "--require-hashes", "--disable-pip", "-f", "json", check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        print("Advisories of Python packages: not reachable here (pip-audit ended with an error).")
        return UNREACHABLE
    return report("Python packages", *judged(packages))


def judged(packages):
    """How many of pip-audit's packages were looked up, of how many, and a line for each known vulnerability."""
    looked_up = [package for package in packages if "vulns" in package]
    known = [f"{p['name']} {p['version']}: {v['id']}" for p in looked_up for v in p["vulns"]]
    return len(looked_up), len(packages), known


def audit_jars():
    """By the database of advisories."""
    named = [coordinate(path) for path in pyspark_jars()]
    pairs = {jar for jar in named if jar[0] is not None}
    print(f"{len(named) - len(pairs)} jars in pyspark do not say their group, and are not looked up.")
    pairs |= {(jar.group, jar.artifact, jar.version) for jar, sets in listed_jars().items() if sets & USED_SETS}
    jars, known = sorted(pairs), []
    for first in range(0, len(jars), AT_ONCE):
        some = jars[first : first + AT_ONCE]
        queries = [{"package": {"ecosystem": "Maven", "name": f"{g}:{a}"}, "version": v} for g, a, v in some]
        try:
            answer = requests.post(ADVISORIES, json={"queries": queries}, timeout=TIMEOUT_S)
            answer.raise_for_status()
            found = answer.json()["results"]
            known += [
                f"{':'.join(jar)}: {v['id']}" for jar, of in zip(some, found, strict=True) for v in of.get("vulns", ())
            ]
        except (requests.RequestException, ValueError, KeyError, TypeError):
            return report("jars", first, len(jars), known)
    return report("jars", len(jars), len(jars), known)


def report(what, looked_up, count, known):
    """Print what is known, and return the exit code."""
    for line in known:
        print(line)
    if looked_up < count:
        print(
            f"Advisories of {what}: not reachable here for {count - looked_up} of {count}, so nothing is known of them."
        )
        return UNREACHABLE
    print(f"Advisories of {what}: {len(known)} for {count}.")
    return KNOWN if known else 0


def run_tool(name, *arguments, check=True):
    """Run one of the tools, which are installed first where they are missing."""
    lock = CONF / "supply.lock"
    folder = cache_folder() / f"supply-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-P", "-m", "venv", "--clear", str(folder)], check=True)
        quiet = ["-q", "--disable-pip-version-check", "--no-input", "--require-hashes", "-r", str(lock)]
        subprocess.run([str(python), "-P", "-m", "pip", "install", *quiet], check=True)
        (folder / "complete").touch()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    # By its interpreter: the program's first line has the place where the checkout was then.
    command = [str(python), str(folder / "bin" / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=check, env=environment)


if __name__ == "__main__":
    commands = {"sbom": sbom, "audit": audit}
    chosen = "".join(sys.argv[1:])
    if chosen not in commands:
        sys.exit("Name what to do: sbom or audit.")
    sys.exit(commands[chosen]())
