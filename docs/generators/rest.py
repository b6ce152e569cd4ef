"""docs/reference/rest.md: each path with its parameters, body, answer and refusals, from the OpenAPI description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator

from docs.generators import markdown

METHODS = ("get", "post", "put", "patch", "delete")
PROBLEM = "application/problem+json"
WRAPPERS = {"Problem", "BlankEnum"}

INTRODUCTION = (
    (
        "The REST API is served below `/api/v1`. It does what the pages do, as the person that a token or a session "
        "belongs to. `/api/v1/schema` is the description that this page is made from, and `/api/v1/docs` "
        "shows it with "
        "forms to try it."
    ),
    (
        "Send `Authorization: Bearer TOKEN`. You create tokens on your account page; see "
        "[signing in](../operating/signing-in.md). Lists come in pages of `count`, `next`, `previous` and "
        "`results`. Follow `next` until it is null: it holds a cursor, so that rows which are added meanwhile move no "
        "page. `count` is null for more than 10,000 rows. Each "
        "answer to a GET carries an `ETag`: with `If-None-Match` you get 304 while nothing changed, and with "
        "`If-Match` a write "
        "is refused once something did."
    ),
    (
        "A list leaves out the rows of clusters that could not be asked, or on which your identity was proved "
        "too long ago. "
        "The headers `Pratique-Could-Not-Ask` and `Pratique-Proof-Too-Old` name these clusters."
    ),
    (
        "An error is a document of the type `application/problem+json` with a stable `code`. "
        "[Errors](errors.md) says what "
        "to do about each."
    ),
)

Operation = Mapping[str, Any]


@cache
def description() -> Mapping[str, Any]:
    schema: Mapping[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]  # drf-spectacular's
    return schema


@cache
def statuses_by_code() -> Mapping[str, frozenset[int]]:
    """With which statuses the API answers each code."""
    found: dict[str, set[int]] = {}
    for _, _, operation in _operations():
        for status, codes in _refusals(operation):
            for code in codes:
                found.setdefault(code, set()).add(status)
    return {code: frozenset(statuses) for code, statuses in found.items()}


def page() -> str:
    lines = markdown.heading_of_page("REST API", "the OpenAPI description", *INTRODUCTION)
    everywhere = _everywhere()
    rows = (
        (f"[`{method.upper()} {path}`](#{operation['operationId'].replace('_', '-')})", _words(operation))
        for path, method, operation in _operations()
    )
    lines += ["## Paths", "", *markdown.table(("call", "what it does"), rows)]
    lines += ["Every call can be refused with these codes, which are not repeated below: ", ""]
    lines[-2] += ", ".join(f"`{it}`" for it in sorted(everywhere)) + "."
    for path, method, operation in _operations():
        lines += _operation(path, method, operation, everywhere)
    lines += ["## Shapes", ""]
    for name, schema in sorted(description()["components"]["schemas"].items()):
        lines += _shape(name, schema)
    return markdown.page(lines)


def _operations() -> Iterator[tuple[str, str, Operation]]:
    for path, methods in description()["paths"].items():
        for method in METHODS:
            if method in methods:
                yield path, method, methods[method]


def _operation(path: str, method: str, operation: Operation, everywhere: frozenset[str]) -> Iterator[str]:
    yield from [f"### {operation['operationId'].replace('_', '-')}", "", f"`{method.upper()} {path}`", ""]
    yield from [_words(operation), ""]
    parameters = [
        (f"`{it['name']}`", it["in"], _type(it["schema"]), _meaning({**it["schema"], **it}))
        for it in operation.get("parameters", ())
    ]
    if parameters:
        yield from markdown.table(("parameter", "in", "type", "meaning"), parameters)
    if body := _body(operation.get("requestBody", {})):
        yield from [f"Body: {body}.", ""]
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            shape = _body(answer)
            yield from [f"Answer: {status}{f' with {shape}' if shape else ''}.", ""]
    own = [f"`{code}` ({status})" for status, codes in _refusals(operation) for code in codes if code not in everywhere]
    if own:
        yield from [f"Also refused with: {', '.join(own)}.", ""]


def _shape(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if name in WRAPPERS or name.startswith("Paginated"):
        return
    yield from [f"### {name}", ""]
    if "enum" in schema:
        yield from [f"One of {', '.join(f'`{it}`' for it in schema['enum'])}.", ""]
        return
    required = set(schema.get("required", ()))
    rows = (
        (f"`{field}`", _type(it), "yes" if field in required else "", _meaning(it))
        for field, it in schema.get("properties", {}).items()
    )
    yield from markdown.table(("field", "type", "always there" if "Input" not in name else "required", "meaning"), rows)


def _refusals(operation: Operation) -> Iterator[tuple[int, list[str]]]:
    for status, answer in operation["responses"].items():
        for part in answer.get("content", {}).get(PROBLEM, {}).get("schema", {}).get("allOf", ()):
            if codes := part.get("properties", {}).get("code", {}).get("enum"):
                yield int(status), codes


def _everywhere() -> frozenset[str]:
    each = [{code for _, codes in _refusals(operation) for code in codes} for _, _, operation in _operations()]
    return frozenset(set.intersection(*each))


def _words(operation: Operation) -> str:
    """Its own words. What many operations inherit says nothing about any of them: then what its name says."""
    words = str(operation.get("description", ""))
    if words and words not in _inherited():
        return words
    *subject, verb = operation["operationId"].split("_")
    about = " ".join(subject)
    return {"list": f"List {about}.", "retrieve": f"Read one of {about}."}.get(
        verb, f"{' '.join(subject[1:])} one.".capitalize()
    )


@cache
def _inherited() -> frozenset[str]:
    found = Counter(str(operation.get("description", "")) for _, _, operation in _operations())
    return frozenset(words for words, times in found.items() if times > 1)


def _body(part: Mapping[str, Any]) -> str:
    schema = part.get("content", {}).get("application/json", {}).get("schema")
    return _type(schema) if schema else ""


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if name.startswith("Paginated"):
            return f"a page of {_link(name.removeprefix('Paginated').removesuffix('List'))}"
        return _link(name)
    for union in ("allOf", "oneOf", "anyOf"):
        if union in schema:
            return " or ".join(_type(it) for it in schema[union] if not it.get("$ref", "").endswith("/BlankEnum"))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    return f"{kind} ({schema['format']})" if "format" in schema and kind != "integer" else str(kind)


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _meaning(schema: Mapping[str, Any]) -> str:
    words = str(schema.get("description", "")).split("* `")[0].strip()
    if "enum" in schema:
        words = f"{words} One of {', '.join(f'`{it}`' for it in schema['enum'] if it)}."
    return f"{words} Can be null." if schema.get("nullable") else words
