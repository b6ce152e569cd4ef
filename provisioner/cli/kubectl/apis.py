"""`apis`: the extensions of a cluster, their APIs, and what the caller may do with them."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from provisioner.api_groups import OWN_GROUP
from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.cluster import (
    DEPLOYMENT,
    VERSION,
    Record,
    add_cluster,
    bare_name,
    cluster_of,
    deployment_of,
    namespace_of,
    own_ref,
    why_not_installed,
)
from provisioner.cli.kubectl.tables import table
from provisioner.cli.kubectl.terminal import page, write
from provisioner.cluster.annotations import OWNER_KIND, OWNER_NAME, label_value
from provisioner.cluster.client.access import ask_self_many, own_rules
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden
from provisioner.escaping import visible
from provisioner.extensions import (
    ApiVersion,
    Extension,
    ExtensionApi,
    HeldVerbs,
    LocalRights,
    OwnRights,
    extensions_of,
    open_questions,
    owner_named,
    rights_of,
)
from provisioner.pipeline import FIELD_MANAGER
from provisioner.render import write as as_yaml
from provisioner.sentences import number, some
from provisioner.values import ObjectRef

EVERYTHING, NOTHING = "everything", "nothing"
MAX_NAMES = 3
_VERB_COUNT = 8


def apis_table(
    extensions: Sequence[Extension], rights: OwnRights, namespace: str, *, is_wide: bool, is_whole: bool
) -> str:
    """A line for each API; below stand the extensions that have none, and what of them nobody knows.

    Where not all could be read (not `is_whole`), nobody knows whether they have any.
    """
    may = f"YOU MAY IN {namespace}" if namespace else "YOU MAY EVERYWHERE"
    more = ("SHORT NAMES", "SUBRESOURCES", "FROM") if is_wide else ()
    rows = [_api_cells(extension, api, rights, is_wide=is_wide) for extension in extensions for api in extension.apis]
    lines = table(("EXTENSION", "API", "KIND", "VERSIONS", "SCOPE", *more, may), rows) if rows else ""
    notes = "".join(
        f"{visible(words)}\n" for extension in extensions for words in _api_notes(extension, is_whole=is_whole)
    )
    return lines + ("\n" if lines and notes else "") + notes


def _api_cells(extension: Extension, api: ExtensionApi, rights: OwnRights, *, is_wide: bool) -> tuple[str, ...]:
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
    said = ["" if version.is_served else "not served", "deprecated" if version.is_deprecated else ""]
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


def _api_notes(extension: Extension, *, is_whole: bool) -> Iterator[str]:
    for unread in extension.unknown:
        silent = f"what {unread.group}/{unread.version} serves is not known, for its server does not answer"
        yield f"{extension.name}: {silent}: {unread.why}"
    if not extension.apis and not extension.unknown:
        known = "serves none that could be found out"
        if is_whole:
            known = (
                "serves no APIs of its own"
                if extension.is_applied
                else "has not been applied yet, so it serves no APIs"
            )
        yield f"{extension.name} {known}."
    for api in extension.apis:
        for version in api.versions:
            if version.warning:
                yield f"{api.name} {version.name}: {version.warning}"


def apis_record(extensions: Sequence[Extension], rights: OwnRights, namespace: str, problems: Sequence[str]) -> Any:
    """The same as plain JSON values."""
    return {
        "namespace": namespace,
        "extensions": [
            {
                "name": extension.name,
                "applied": extension.is_applied,
                "apis": [_api_record(api, rights) for api in extension.apis],
                "unknown": [
                    {
                        "group": unread.group,
                        "version": unread.version,
                        "source": str(unread.source),
                        "message": unread.why,
                    }
                    for unread in extension.unknown
                ],
            }
            for extension in extensions
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
                "name": version.name,
                "served": version.is_served,
                "stored": version.is_stored,
                "deprecated": version.is_deprecated,
                "warning": version.warning,
            }
            for version in api.versions
        ],
        "youMay": {**_verbs_record(rights.apis[api.name]), "subresources": parts},
    }


def _verbs_record(held: HeldVerbs) -> dict[str, Any]:
    return {
        "verbs": list(held.verbs),
        "named": {verb: list(names) for verb, names in held.named.items()},
        "unknown": list(held.unknown),
    }


# Definitions hold whole schemas: a page of them is read at a time, and of each only what is told of it is kept.
PAGE = 25
DEPLOYMENTS_PAGE = 100
# Of rights, where the API server cannot list them.
MAX_QUESTIONS = 400
# Of deployments, by who may not list them.
MAX_LOOKS = 100
READER = "ask an administrator to bind you to the ClusterRole pratique-reader, which has it"
_DEFINITIONS = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_SERVICES = ("apiregistration.k8s.io", "v1", "APIService")


@dataclass(frozen=True, slots=True)
class InstalledExtensions:
    """`problems` says what could not be found out, and so may be missing."""

    extensions: tuple[Extension, ...]
    problems: tuple[str, ...] = ()


def read_extensions(api: ClusterClient, name: str = "") -> InstalledExtensions:
    """Every extension that the caller may get, or the one of this name."""
    named = {name: _is_applied(deployment_of(api, name))} if name else None
    problems: list[str] = []
    definitions = _list_labelled(api, _DEFINITIONS, name, problems)
    services = _list_labelled(api, _SERVICES, name, problems)
    deployments = _list_deployments(api, [*definitions, *services], problems) if named is None else named
    found = extensions_of(deployments, definitions, services, api.served(), FIELD_MANAGER)
    return InstalledExtensions(tuple(found), tuple(problems))


def _list_labelled(api: ClusterClient, kind: tuple[str, str, str], name: str, problems: list[str]) -> list[Record]:
    """What bears the labels of an extension, without schemas."""
    selector = f"{OWNER_KIND}={DEPLOYMENT}" + (f",{OWNER_NAME}={label_value(name)}" if name else "")
    resource = api.resource_of(*kind)
    if resource is None:
        problems.append(f"the cluster serves no {kind[2]}: {'/'.join(kind[:2])} is missing")
        return []
    try:
        return [_without_schemas(item) for item in api.list(resource, label_selector=selector, page=PAGE)]
    except Forbidden as exc:
        right = f"`list` on {resource.plural}.{resource.group}"
        problems.append(
            f"you may not list {kind[2]}s, so APIs are missing here ({exc.server_words or exc}). You need {right}: "
            f"{READER}"
        )
        return []


def _without_schemas(obj: Record) -> Record:
    spec = {**(obj.get("spec") or {})}
    if isinstance(spec.get("versions"), list):
        spec["versions"] = [{**version, "schema": None} for version in spec["versions"] if isinstance(version, dict)]
    return {**obj, "spec": spec}


def _list_deployments(api: ClusterClient, objects: Iterable[Record], problems: list[str]) -> dict[str, bool]:
    """By name whether a revision runs. Who may not list deployments may still get some of them."""
    resource = api.resource_of(OWN_GROUP, VERSION, DEPLOYMENT)
    if resource is None:
        raise Usage(why_not_installed(api))
    try:
        return {
            str(deployment["metadata"]["name"]): _is_applied(deployment)
            for deployment in api.list(resource, page=DEPLOYMENTS_PAGE)
        }
    except Forbidden as exc:
        known = sorted({owner for owned in objects if (owner := owner_named(owned, FIELD_MANAGER))})
        looked = {name: _get_deployment(api, name) for name in known[:MAX_LOOKS]}
        found = {name: _is_applied(obj) for name, obj in looked.items() if obj is not None}
        if not found:
            raise
        left = len(known) - len(found)
        words = (
            f"{number(left, 'extension')} left out: you may not get"
            if left
            else "those without an API are left out: you may not list"
        )
        problems.append(f"{words} BundleDeployments ({exc.server_words or exc})")
        return found


def _get_deployment(api: ClusterClient, name: str) -> Record | None:
    try:
        return api.get(own_ref(DEPLOYMENT, name))
    except Forbidden:
        return None


def _is_applied(deployment: Record) -> bool:
    return bool((deployment.get("status") or {}).get("activeRevision"))


def may_be_there(api: ClusterClient, namespace: str) -> bool:
    """False for a namespace that is surely not there; who may not look finds out by writing."""
    try:
        return api.get(ObjectRef("", "v1", "Namespace", "", namespace), metadata_only=True) is not None
    except Forbidden:
        return True


def own_rights(api: ClusterClient, apis: Sequence[ExtensionApi], namespace: str) -> OwnRights:
    """What the caller may do in a namespace, without one in the whole cluster: by two questions, or MAX_QUESTIONS more
    where an authorizer cannot list what it allows."""
    everywhere = own_rules(api)
    place = LocalRights(namespace, own_rules(api, namespace) if namespace else everywhere, everywhere)
    asked = list(open_questions(place, apis))
    return rights_of(place, apis, ask_self_many(api, asked[:MAX_QUESTIONS]))


HELP = "list the APIs of extensions, and what you may do with them"
EPILOG = """\
An extension is a BundleDeployment. Its APIs are the CustomResourceDefinitions
and APIServices that Pratique created for it. Your rights come from the API
server, for the namespace of your context or -n, or with -A for the whole
cluster. "get of x" is a right to the object x only.

Needs `get` on BundleDeployments, and `list` on CustomResourceDefinitions and
APIServices; the ClusterRole pratique-reader has these rights.

exit status
  0  done
  1  no API matches
  2  something could not be read: standard error says what is missing
"""
OK, NONE_FITS, UNKNOWN = 0, 1, 2


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "api",
        metavar="API",
        nargs="?",
        default="",
        help="only APIs with this text in their kind, name, group or short name",
    )
    add_cluster(parser)
    parser.add_argument("--of", metavar="NAME", type=bare_name, default="", help="only APIs of this BundleDeployment")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("-n", "--namespace", metavar="NS", default="", help="default: the namespace of the context")
    place.add_argument("-A", "--all-namespaces", action="store_true", help="show what you may do in the whole cluster")
    parser.add_argument(
        "-o", "--output", choices=("text", "wide", "json", "yaml"), default="text", help="default: %(default)s"
    )


def apis(options: argparse.Namespace) -> int:
    api = cluster_of(options)
    namespace = "" if options.all_namespaces else options.namespace or namespace_of(options)
    found = read_extensions(api, options.of)
    chosen = _match_extensions(found.extensions, options.api)
    rights = own_rights(api, [one_api for extension in chosen for one_api in extension.apis], namespace)
    problems = [*found.problems, *_unasked_rights(rights)]
    if options.output in ("json", "yaml"):
        record = apis_record(chosen, rights, namespace, problems)
        write(json.dumps(record, indent=2) + "\n" if options.output == "json" else as_yaml(record))
    elif chosen:
        page(apis_table(chosen, rights, namespace, is_wide=options.output == "wide", is_whole=not problems))
    elif not options.api and not problems:
        write("No extensions are installed.\n")
    for words in problems:
        print(f"kubectl pratique: {visible(words)}", file=sys.stderr)
    if problems or any(extension.unknown for extension in chosen):
        return UNKNOWN
    if options.api and not chosen:
        print(f"kubectl pratique: {_nothing_fits(found.extensions, options.api)}", file=sys.stderr)
        return NONE_FITS
    return OK


def _match_extensions(extensions: tuple[Extension, ...], word: str) -> list[Extension]:
    """The extensions with those of their APIs that fit; without a word all, those without an API, too."""
    if not word:
        return list(extensions)
    kept = [
        replace(
            extension,
            apis=tuple(api for api in extension.apis if _matches(api, word.lower())),
            unknown=tuple(
                unread for unread in extension.unknown if word.lower() in f"{unread.version}.{unread.group}".lower()
            ),
        )
        for extension in extensions
    ]
    return [extension for extension in kept if extension.apis or extension.unknown]


def _matches(api: ExtensionApi, word: str) -> bool:
    return word in api.kind.lower() or word in api.name.lower() or word in api.short_names


def _nothing_fits(extensions: tuple[Extension, ...], word: str) -> str:
    known = {name for extension in extensions for api in extension.apis for name in (api.kind, api.name, api.plural)}
    near = difflib.get_close_matches(word, sorted(known), n=3)
    more = f": did you mean {' or '.join(near)}?" if near else "; `kubectl pratique apis` lists all that you can see"
    return visible(f"no extension serves an API that fits {word}{more}")


def _unasked_rights(rights: OwnRights) -> list[str]:
    if not rights.unasked:
        return []
    words = f"the API server cannot list your rights ({rights.problem or 'it does not say why'}): {MAX_QUESTIONS} were "
    words += f"asked one by one, and {rights.unasked:,} are not known. Name an extension (--of) or an API to ask fewer"
    return [words]
