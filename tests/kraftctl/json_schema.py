"""As much of JSON schema as the shipped schemas use."""

from collections.abc import Iterator, Mapping

_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


def violations(value: object, schema: object, at: str = "$") -> Iterator[str]:
    """What a value has that its schema does not allow, or lacks."""
    assert isinstance(schema, dict), at
    choices = [list(violations(value, each, at)) for each in schema.get("anyOf", ())]
    if choices and all(choices):
        yield from choices[0]
    kinds = schema.get("type", list(_TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(_is(value, kind) for kind in kinds):
        yield f"{at}: {value!r} is none of {kinds}"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if isinstance(value, dict):
        known = schema.get("properties", {})
        yield from (f"{at}: no {name}" for name in schema.get("required", ()) if name not in value)
        for name in known.keys() & value.keys():
            yield from violations(value[name], known[name], f"{at}.{name}")
        if known:
            yield from (f"{at}: {name} is unknown" for name in value.keys() - known.keys())
    if isinstance(value, list) and "items" in schema:
        for number, each in enumerate(value):
            yield from violations(each, schema["items"], f"{at}[{number}]")


def _is(value: object, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
