"""`kraftctl schema NAME`: what the JSON of a command looks like, as a JSON schema.

The schemas are files beside this one, by the command's name with `.` for blanks; the envelope is
the same for all. A field may be added; one that is there keeps its name and its meaning.
"""

import json
import os

import click

from kraftctl.exit_codes import OK, NotFound
from kraftctl.output import SCHEMA, Json
from kraftctl.session import Session, command, output_option

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schemas")
SUFFIX = ".json"


def names() -> list[str]:
    """The commands that have a schema."""
    files = sorted(os.listdir(DIRECTORY))
    return [name.removesuffix(SUFFIX).replace(".", " ") for name in files if name.endswith(SUFFIX)]


def read_schema(name: str) -> dict[str, Json]:
    """The schema of a command's whole document."""
    if name not in names():
        hint = "kraftctl schema lists them all"
        raise NotFound(f"there is no schema {name!r}", hint=hint)
    path = os.path.join(DIRECTORY, name.replace(" ", ".") + SUFFIX)
    with open(path, encoding="utf-8") as file:
        data: Json = json.load(file)
    text: Json = {"type": "string"}
    error: Json = {
        "type": ["object", "null"],
        "properties": {
            "code": text,
            "message": text,
            "hint": text,
            "retriable": {"type": "boolean"},
        },
        "required": ["code", "message", "hint", "retriable"],
    }
    properties: dict[str, Json] = {
        "command": {"type": "string", "const": name},
        "schema": {"type": "integer", "const": SCHEMA},
        "data": {"anyOf": [data, {"type": "null"}]},
        "warnings": {"type": "array", "items": text},
        "error": error,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"kraftctl {name} -o json",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@click.command()
@click.argument("name", nargs=-1)
@output_option
@command
def schema(session: Session, name: tuple[str, ...]) -> int:
    """What the JSON of a command looks like; without a name, which there are."""
    if not name:
        known = names()
        session.output.show(list[Json](known), "\n".join(known))
        return OK
    found = read_schema(" ".join(name))
    session.output.show(found, json.dumps(found, indent=2))
    return OK
