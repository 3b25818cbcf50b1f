"""The OpenAPI document, from the lists and the comments of the tables' columns."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from streaming.serve.api.explained import ExplainFilter
from streaming.serve.api.listings import LISTINGS, Filter, Listing
from streaming.serve.api.noting import NewMark
from streaming.tables import table_named

_ROUND = {
    "type": "object",
    "description": "How old all of it is.",
    "properties": {
        "cluster": {"type": "string"},
        "round": {"type": "integer"},
        "round_time": {"type": "string", "format": "date-time"},
        "silent": {"type": "boolean", "description": "No round has come for longer than alerts and page allow."},
    },
}


@cache
def document(prefix: str) -> dict[str, Any]:
    """The document; its paths are below a prefix."""
    paths = {f"{prefix}/{listing.name}": {"get": _operation(listing)} for listing in LISTINGS}
    paths[f"{prefix}/groups/{{group}}"] = {
        "get": _one("group", "One group, with its newest verdict and what other strategies would have done.")
    }
    paths[f"{prefix}/topics/{{topic}}"] = {"get": _one("topic", "One topic, with the lag of each group that reads it.")}
    paths[f"{prefix}/explain"] = {"get": _explain()}
    paths[f"{prefix}/marks"]["post"] = _marking()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Evenkeel",
            "version": version("evenkeel"),
            "description": "Reads alone, but for marks. Times are UTC.",
        },
        "paths": paths,
        "components": {
            "schemas": {
                "Problem": {
                    "type": "object",
                    "description": "RFC 9457",
                    "required": ["type", "title", "status", "detail"],
                    "properties": {
                        "type": {"type": "string"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                    },
                },
                "Round": _ROUND,
            }
        },
    }


def _marking() -> dict[str, Any]:
    schema = msgspec.json.schema(NewMark)
    of_mark = schema["$defs"]["NewMark"]
    return {
        "operationId": "add_mark",
        "summary": "Mark a moment, such as a deploy: with the token serve.marks_token, as a bearer.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": of_mark}}},
        "responses": {
            "201": {"description": "The mark is in the table; the page shows it within seconds."},
            **{
                code: {"description": why}
                for code, why in (
                    ("400", "It is no mark, or of no known cluster."),
                    ("401", "The token is missing or wrong."),
                    ("403", "The server takes no marks: no token is set."),
                    ("429", "More than one a second."),
                    ("503", "The lake cannot be written now."),
                )
            },
        },
    }


def _operation(listing: Listing) -> dict[str, Any]:
    return {
        "operationId": f"list_{listing.name.replace('-', '_')}",
        "summary": listing.told,
        "parameters": parameters(listing.filters),
        "responses": {
            "200": {
                "description": "A page.",
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "required": ["items", "next", "rounds"],
                            "properties": {
                                "items": {"type": "array", "items": _row_schema(listing)},
                                "next": {"type": ["string", "null"], "description": "`cursor` of the next page."},
                                "rounds": {"type": "array", "items": {"$ref": "#/components/schemas/Round"}},
                            },
                        }
                    }
                },
            },
            **_problems("400", "503"),
        },
    }


def _one(what: str, told: str) -> dict[str, Any]:
    name = {"name": what, "in": "path", "required": True, "schema": {"type": "string"}}
    cluster = [one for one in parameters(Filter) if one["name"] == "cluster"]
    return {
        "operationId": f"get_{what}",
        "summary": told,
        "parameters": [name, *cluster],
        "responses": {
            "200": {"description": f"The {what}.", "content": {"application/json": {"schema": {"type": "object"}}}},
            **_problems("400", "404", "503"),
        },
    }


def _explain() -> dict[str, Any]:
    told = "Who should own what in a group, and why; for drift, what is different. `evenkeel explain` as JSON."
    return {
        "operationId": "explain",
        "summary": told,
        "parameters": parameters(ExplainFilter),
        "responses": {
            "200": {
                "description": "A line of `evenkeel assign` (the verdict's inputs), with the object `explanation`. "
                "For RocketMQ of the worst topic, with those of the others in `other_topics`.",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            **_problems("400", "404", "503"),
        },
    }


def _problems(*statuses: str) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": "A problem.", "content": content} for status in statuses}


def parameters(filters: type[msgspec.Struct]) -> list[dict[str, Any]]:
    """A struct's fields as parameters of a query."""
    schema = msgspec.json.schema(filters)
    (properties,) = [one["properties"] for one in schema["$defs"].values()]
    found = []
    for name, given in properties.items():
        told = dict(given)
        description = told.pop("description", "")
        told.pop("default", None) if told.get("default") is None else None
        found.append({"name": name, "in": "query", "description": description, "schema": told})
    return found


def _row_schema(listing: Listing) -> dict[str, Any]:
    columns = {column.name: column.comment for name in reversed(listing.tables) for column in table_named(name).columns}
    return {"type": "object", "description": "Columns of the tables keep their names.", "x-columns": columns}
