"""The description of the HTTP interface (OpenAPI 3.1), generated from the table of routes."""

from __future__ import annotations

import re
from typing import Any

import tacit

ERROR = {
    "type": "object",
    "required": ["error", "message", "hint", "exit_code", "charged"],
    "properties": {
        "error": {"type": "string", "description": "the name of the class in tacit.errors"},
        "message": {"type": "string"}, "hint": {"type": "string"},
        "exit_code": {"type": "integer", "description": "that of the command line: 1 refused, 2 bad input, 3 charged"},
        "charged": {"type": "boolean", "description": "was the budget charged?"},
    },
}  # fmt: skip
ASKED = {
    "type": "object",
    "required": ["releases"],
    "properties": {
        "releases": {
            "type": "array", "minItems": 1,
            "description": "what is asked: the words of [[release]] tables of a plan",
            "items": {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}},
        },
        "spend": {
            "type": "object", "description": "the price of all of them together; there is no default",
            "properties": {n: {"type": "number"} for n in ("epsilon", "delta", "rho", "mu")},
        },
        "title": {"type": "string"},
        "key": {
            "type": "string",
            "description": "8 to 40 characters; the same key twice is one job, and /jobs finds it by the key, too",
        },
        "note": {"type": "string", "description": "of a request: for the approver"},
        "rehearsal": {"type": "boolean", "description": "on made-up rows, free"},
    },
}  # fmt: skip


def document(url: str) -> dict[str, Any]:
    """The whole document."""
    from tacit.server.app import ROUTES

    paths: dict[str, Any] = {}
    for route in ROUTES:
        if not route.api:
            continue
        path = re.sub(r":path\}", "}", route.path)
        said: dict[str, Any] = {
            "operationId": route.name,
            "summary": (route.call.__doc__ or "").split("\n")[0],
            "responses": {
                "200": {
                    "description": "as the summary says",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
                "default": {
                    "description": "a refusal, in the library's words",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                },
            },
        }  # fmt: skip
        if "public" not in route.roles:
            said["security"] = [{"token": []}]
            said["description"] = f"scope: {route.scope}; roles: {', '.join(route.roles)}"
        names = re.findall(r"\{(\w+)\}", path)
        if names:
            said["parameters"] = [
                {"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names
            ]
        if route.method == "POST" and not route.name.endswith("cancel"):
            body = {"application/json": {"schema": {"$ref": "#/components/schemas/Asked"}}}
            said["requestBody"] = {"required": True, "content": body}
        paths.setdefault(path, {})[route.method.lower()] = said
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tacit",
            "version": tacit.__version__,
            "description": "The custodian's desk over HTTP.",
        },
        "servers": [{"url": url}],
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR, "Asked": ASKED},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
