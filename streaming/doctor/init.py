"""`evenkeel init`: a short file of settings for one cluster, tried at once."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from rich.console import Console

from streaming.config import load_settings
from streaming.doctor.run import examine
from streaming.exceptions import EvenkeelError, SetupError
from streaming.places import own_file, shipped
from streaming.terminal import say

_FILE = """\
# Settings of Evenkeel: what is changed first. Every setting, with its default, is explained in
# {explained}
# `evenkeel doctor` tries them. The environment wins over this file (EVENKEEL_SERVE__LISTEN, ...).

# Folder of the tables, or a URI on an object store (docs/lake.md).
# lake = "lake"

# The clusters: repeat the entry for each further one.
[[clusters]]
# Its name in tables, page and alerts. Under another name it would be another cluster, without a past.
name = {cluster}

{connection}

[filters]
# Groups that are not watched: names, or regular expressions between slashes.
# ignore_groups = ["/^console-consumer-/"]

[serve]
# Where the page, the metrics and the API are. On another address than this machine's own, set a token (the variable
# EVENKEEL_SERVE__TOKEN), or put a proxy with a login in front.
# listen = "127.0.0.1:8090"

[alerts]
# A file with a line `name = URL` for each place where alerts go (docs/alerts.md).
# targets_file = "/etc/evenkeel/alert-targets"
"""

_KAFKA = """\
[clusters.kafka]
bootstrap_servers = {addresses}
# A login; the password may also be in the variable EVENKEEL_KAFKA__SASL_PASSWORD. docs/security.md has the rights.
# security_protocol = "SASL_SSL"
# sasl_mechanism = "SCRAM-SHA-512"
# sasl_username = "evenkeel"
# sasl_password_file = "/run/secrets/kafka-password"
# ssl_cafile = "/etc/ssl/kafka-ca.pem\""""

_ROCKETMQ = """\
[clusters.rocketmq]
# All name servers: each is asked, and compared with the others.
name_servers = {addresses}
# A login; the secret may also be in the variable EVENKEEL_ROCKETMQ__SECRET_KEY.
# access_key = "evenkeel"
# secret_key_file = "/run/secrets/rocketmq-secret\""""


def write_first_settings(
    output: Path, bootstrap: str | None, rocketmq: str | None, cluster: str, console: Console
) -> int:
    """Write a new file of settings, try it, and print the next command; returns the doctor's exit code.

    Args:
        output: The file.
        bootstrap: Addresses of Kafka's brokers; None where `rocketmq` is given.
        rocketmq: Addresses of RocketMQ's name servers.
        cluster: Name of the cluster.
        console: Where to print.

    Raises:
        SetupError: The file is there already or cannot be written, or not exactly one kind of cluster is named.
    """
    _write(output, _text(bootstrap, rocketmq, cluster))
    say(console, f"{output} is written.")
    found, prefix = own_file("evenkeel.toml"), ""
    if "EVENKEEL_CONFIG" in os.environ or found is None or not found.samefile(output):
        prefix = f"EVENKEEL_CONFIG={shlex.quote(str(output))} "
        os.environ["EVENKEEL_CONFIG"] = str(output)
    try:
        code = examine([load_settings()], console)
    except EvenkeelError as error:
        code = examine(error, console)
    if code:
        say(console, f"Next: correct what is wrong as its line says, and try again: {prefix}evenkeel doctor")
    else:
        say(console, f"Next: {prefix}evenkeel up")
    return code


def _text(bootstrap: str | None, rocketmq: str | None, cluster: str) -> str:
    if (bootstrap is None) == (rocketmq is None):
        message = "Name one cluster: --bootstrap HOST:9092 for Kafka, or --rocketmq HOST:9876 for RocketMQ."
        raise SetupError(message)
    connection, addresses = _KAFKA, bootstrap
    if rocketmq is not None:
        connection, addresses = _ROCKETMQ, rocketmq
    # A string of JSON is one of TOML.
    return _FILE.format(
        explained=shipped("evenkeel.toml"),
        cluster=json.dumps(cluster),
        connection=connection.format(addresses=json.dumps(addresses)),
    )


def _write(output: Path, text: str) -> None:
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        message = f"{output} is there already: name another file with --output, or try this one with `evenkeel doctor`."
        raise SetupError(message) from None
    except OSError as error:
        message = f"{output} cannot be written ({error.strerror}): name a file in a folder that is there with --output."
        raise SetupError(message) from None
