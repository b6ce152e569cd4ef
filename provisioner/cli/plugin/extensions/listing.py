"""What `apis` prints. PURE: extensions and rights come in, lines and records go out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from provisioner.cli.plugin.showing import table
from provisioner.escaping import visible
from provisioner.extensions import ApiVersion, Extension, ExtensionApi, HeldVerbs, OwnRights
from provisioner.sentences import some

EVERYTHING, NOTHING = "everything", "nothing"
MAX_NAMES = 3
_VERB_COUNT = 8


def of_apis(
    extensions: Sequence[Extension], rights: OwnRights, namespace: str, *, is_wide: bool, is_whole: bool
) -> str:
    """A line for each API; below stand the extensions that have none, and what of them nobody knows.

    Where not all could be read (not `is_whole`), nobody knows whether they have any.
    """
    may = f"YOU MAY IN {namespace}" if namespace else "YOU MAY EVERYWHERE"
    more = ("SHORT NAMES", "SUBRESOURCES", "FROM") if is_wide else ()
    rows = [_row(one, api, rights, is_wide=is_wide) for one in extensions for api in one.apis]
    lines = table(("EXTENSION", "API", "KIND", "VERSIONS", "SCOPE", *more, may), rows) if rows else ""
    notes = "".join(f"{visible(words)}\n" for one in extensions for words in _notes(one, is_whole=is_whole))
    return lines + ("\n" if lines and notes else "") + notes


def _row(extension: Extension, api: ExtensionApi, rights: OwnRights, *, is_wide: bool) -> tuple[str, ...]:
    versions = ", ".join(map(_version_words, api.versions))
    scope = "namespaced" if api.is_namespaced else "cluster"
    parts = (f"{part} ({verb_words(rights.subresources[api.name, part])})" for part in api.subresources)
    source = f"{api.source.kind} {api.source.name}"
    more = (", ".join(api.short_names), "; ".join(parts), source) if is_wide else ()
    may = verb_words(rights.apis[api.name])
    return (
        extension.name,
        api.name,
        api.kind,
        versions,
        scope,
        *more,
        f"{may}; but {api.problem}" if api.problem else may,
    )


def _version_words(version: ApiVersion) -> str:
    said = [
        "" if version.is_served else "not served",
        "deprecated" if version.is_deprecated else "",
    ]
    words = ", ".join(filter(None, said))
    return f"{version.name} ({words})" if words else version.name


def verb_words(held: HeldVerbs) -> str:
    """Such as `get, list`, `get of x, y`, or `nothing`."""
    parts = [EVERYTHING if len(held.verbs) >= _VERB_COUNT else ", ".join(held.verbs)]
    of_names: dict[tuple[str, ...], list[str]] = {}
    for verb, names in held.named.items():
        of_names.setdefault(names, []).append(verb)
    parts += [f"{', '.join(verbs)} of {some(names, MAX_NAMES)}" for names, verbs in of_names.items()]
    parts.append(f"not known: {', '.join(held.unknown)}" if held.unknown else "")
    return "; ".join(filter(None, parts)) or NOTHING


def _notes(extension: Extension, *, is_whole: bool) -> Iterator[str]:
    for one in extension.unknown:
        silent = f"what {one.group}/{one.version} serves is not known, for its server does not answer"
        yield f"{extension.name}: {silent}: {one.why}"
    if not extension.apis and not extension.unknown:
        known = _without_apis(extension) if is_whole else "serves none that could be found out"
        yield f"{extension.name} {known}."
    for api in extension.apis:
        for version in api.versions:
            if version.warning:
                yield f"{api.name} {version.name}: {version.warning}"


def _without_apis(extension: Extension) -> str:
    return "serves no APIs of its own" if extension.is_applied else "has not been applied yet, so it serves no APIs"


def record_of(extensions: Sequence[Extension], rights: OwnRights, namespace: str, problems: Sequence[str]) -> Any:
    """The same as plain JSON values."""
    return {
        "namespace": namespace,
        "extensions": [
            {
                "name": one.name,
                "applied": one.is_applied,
                "apis": [_api_record(api, rights) for api in one.apis],
                "unknown": [
                    {"group": it.group, "version": it.version, "source": str(it.source), "message": it.why}
                    for it in one.unknown
                ],
            }
            for one in extensions
        ],
        "problems": list(problems),
    }


def _api_record(api: ExtensionApi, rights: OwnRights) -> dict[str, Any]:
    parts = {part: _verbs_record(rights.subresources[api.name, part]) for part in api.subresources}
    return {
        "name": api.name,
        "group": api.group,
        "resource": api.plural,
        "kind": api.kind,
        "shortNames": list(api.short_names),
        "scope": "Namespaced" if api.is_namespaced else "Cluster",
        "source": str(api.source),
        "deprecated": api.is_deprecated,
        "problem": api.problem,
        "versions": [
            {
                "name": it.name,
                "served": it.is_served,
                "stored": it.is_stored,
                "deprecated": it.is_deprecated,
                "warning": it.warning,
            }
            for it in api.versions
        ],
        "youMay": {**_verbs_record(rights.apis[api.name]), "subresources": parts},
    }


def _verbs_record(held: HeldVerbs) -> dict[str, Any]:
    return {
        "verbs": list(held.verbs),
        "named": {verb: list(names) for verb, names in held.named.items()},
        "unknown": list(held.unknown),
    }
