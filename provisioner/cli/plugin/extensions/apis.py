"""`apis`: which extension gives the caller which API, and what the caller may do with it."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from dataclasses import replace

from provisioner.cli.plugin.extensions.installed import MAX_QUESTIONS, installed, own_rights
from provisioner.cli.plugin.extensions.listing import of_apis, record_of
from provisioner.cli.plugin.reading import add_cluster, bare_name, cluster_of, namespace_of
from provisioner.cli.plugin.terminal import page, write
from provisioner.escaping import visible
from provisioner.extensions import Extension, ExtensionApi, OwnRights
from provisioner.render import write as as_yaml

HELP = "which extension gives you which API, and what you may do with it"
EPILOG = """\
An extension is a BundleDeployment. Its APIs are those of the CustomResource-
Definitions and APIServices that Pratique wrote for it. What you may do is what
the API server says, in the namespace of your context or in that of -n; with -A
in the whole cluster. "get of x" is a right to the object x only.

Needs `get` on BundleDeployments, and `list` on CustomResourceDefinitions and
APIServices: the ClusterRole pratique-reader has all of it.

exit status
  0  everything was found out
  1  none fits what was typed
  2  something could not be found out: standard error says what is missing
"""
OK, NONE_FITS, UNKNOWN = 0, 1, 2


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "api",
        metavar="API",
        nargs="?",
        default="",
        help="only those with this in their kind, name, group or short name",
    )
    add_cluster(parser)
    parser.add_argument("--of", metavar="NAME", type=bare_name, default="", help="only those of this BundleDeployment")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("-n", "--namespace", metavar="NS", default="", help="default: that of the context")
    place.add_argument("-A", "--all-namespaces", action="store_true", help="what you may do in the whole cluster")
    parser.add_argument(
        "-o", "--output", choices=("text", "wide", "json", "yaml"), default="text", help="default: %(default)s"
    )


def apis(options: argparse.Namespace) -> int:
    api = cluster_of(options)
    namespace = "" if options.all_namespaces else options.namespace or namespace_of(options)
    found = installed(api, options.of)
    chosen = _fitting(found.extensions, options.api)
    rights = own_rights(api, [one for extension in chosen for one in extension.apis], namespace)
    problems = [*found.problems, *_unasked(rights)]
    _print(options, chosen, rights, (namespace, problems))
    for words in problems:
        print(f"kubectl pratique: {visible(words)}", file=sys.stderr)
    if problems or any(one.unknown for one in chosen):
        return UNKNOWN
    if options.api and not chosen:
        print(f"kubectl pratique: {_nothing_fits(found.extensions, options.api)}", file=sys.stderr)
        return NONE_FITS
    return OK


def _print(
    options: argparse.Namespace, chosen: list[Extension], rights: OwnRights, more: tuple[str, list[str]]
) -> None:
    namespace, problems = more
    if options.output in ("json", "yaml"):
        record = record_of(chosen, rights, namespace, problems)
        is_json = options.output == "json"
        write(json.dumps(record, indent=2) + "\n" if is_json else as_yaml(record))
    elif chosen:
        page(of_apis(chosen, rights, namespace, is_wide=options.output == "wide", is_whole=not problems))
    elif not options.api and not problems:
        write("No extensions are installed.\n")


def _fitting(extensions: tuple[Extension, ...], word: str) -> list[Extension]:
    """The extensions with those of their APIs that fit; without a word all, those without an API, too."""
    if not word:
        return list(extensions)
    kept = [
        replace(
            one,
            apis=tuple(api for api in one.apis if _fits(api, word.lower())),
            unknown=tuple(it for it in one.unknown if word.lower() in f"{it.version}.{it.group}".lower()),
        )
        for one in extensions
    ]
    return [one for one in kept if one.apis or one.unknown]


def _fits(api: ExtensionApi, word: str) -> bool:
    return word in api.kind.lower() or word in api.name.lower() or word in api.short_names


def _nothing_fits(extensions: tuple[Extension, ...], word: str) -> str:
    known = {name for one in extensions for api in one.apis for name in (api.kind, api.name, api.plural)}
    near = difflib.get_close_matches(word, sorted(known), n=3)
    more = f": did you mean {' or '.join(near)}?" if near else "; `kubectl pratique apis` lists all that you can see"
    return visible(f"no extension serves an API that fits {word}{more}")


def _unasked(rights: OwnRights) -> list[str]:
    if not rights.unasked:
        return []
    words = f"the API server cannot list your rights ({rights.problem or 'it does not say why'}): {MAX_QUESTIONS} were "
    words += f"asked one by one, and {rights.unasked:,} are not known. Name an extension (--of) or an API to ask fewer"
    return [words]
