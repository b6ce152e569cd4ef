"""`convert`: files with RukPak's objects become files with ours."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from provisioner.cli.plugin.rukpak import Where, converted
from provisioner.cli.usage import Usage
from provisioner.escaping import visible
from provisioner.render import load_all

OK, TO_COMPLETE = 0, 1
HELP = "rewrite RukPak's BundleDeployments and Bundles as BundleDeployments of Pratique"
EPILOG = """\
FILE holds one or more objects, as YAML or JSON; - is standard input. It takes
  core.rukpak.io/v1alpha1 BundleDeployment and Bundle, as RukPak up to 0.16
  core.rukpak.io/v1alpha2 BundleDeployment, as RukPak from 0.17
  core.rukpak.io/v1alpha2 BundleDeployment, as RukPak's issue 703 proposed it
What is Pratique's already stays as it is. No cluster is asked, and nothing is
applied. What was not carried over is said on standard error.

exit status
  0  everything is converted
  1  it is, and you have to complete it: standard error says where
  2  it is not: something in FILE is not known. Nothing is printed
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what to read; - is standard input")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="default: %(default)s")
    parser.add_argument(
        "--install-namespace", metavar="NS", default="", help="where to install, if the object has none"
    )
    parser.add_argument(
        "--service-account", metavar="NAME", default="", help="as which account of it, if the object has none"
    )


def convert(options: argparse.Namespace) -> int:
    """Prints all objects of the file, or nothing."""
    name = "standard input" if options.file == "-" else options.file
    made = []
    for number, document in enumerate(_documents(options.file, name), start=1):
        try:
            made.append(converted(document, Where(options.install_namespace, options.service_account)))
        except Usage as exc:
            raise Usage(f"{name}, object {number}: {exc}") from exc
    if not made:
        raise Usage(f"{name}: no object in it")
    for one in made:
        about = one.body["metadata"]["name"]
        for kind, notes in (("not carried over", one.left_out), ("to complete", one.to_complete)):
            for note in notes:
                print(visible(f"{about}: {kind}: {note}"), file=sys.stderr)
    sys.stdout.write(_formed([one.body for one in made], options.output))
    return TO_COMPLETE if any(one.to_complete for one in made) else OK


def _documents(file: str, name: str) -> list[Any]:
    """Lists, as kubectl prints them, are taken apart."""
    text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    found: list[Any] = []
    for document in load_all(text, name=name):
        is_list = isinstance(document, dict) and str(document.get("kind") or "").endswith("List")
        found += _items(document, name) if is_list else [document]
    return found


def _items(listed: dict[str, Any], name: str) -> list[Any]:
    items = listed.get("items") or []
    if not isinstance(items, list):
        raise Usage(f"{name}: items of the {listed['kind']}: expected a list")
    return items


def _formed(bodies: list[dict[str, Any]], output: str) -> str:
    if output == "yaml":
        return yaml.safe_dump_all(bodies, sort_keys=False)
    whole = bodies[0] if len(bodies) == 1 else {"apiVersion": "v1", "kind": "List", "items": bodies}
    return json.dumps(whole, indent=2) + "\n"
