"""`pratique catalog`: what a file-based catalog offers, and what may follow what is installed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from provisioner.catalogs.choice import CatalogOffer, Choice, Installed, NoChoice, PackageWish, UpgradeEdges, choose
from provisioner.catalogs.edges import find_route, list_heads
from provisioner.catalogs.file_based import CatalogFile, read_catalog
from provisioner.catalogs.values import Catalog, CatalogBundle, Package
from provisioner.cli.arguments import ReviewCommand, Usage
from provisioner.cli.review import FINDINGS, OK, UNKNOWN
from provisioner.escaping import visible
from provisioner.sentences import and_more, number, some
from provisioner.versions import constraint_of

SUFFIXES = (".yaml", ".yml", ".json")
MAX_FILES = 100_000
SHOWN_PROBLEMS = 20
_EPILOG = """\
CATALOG is a file-based catalog: a file, or a folder of files, such as /configs
in OLM's catalog images.

upgrades
  --from names the installed bundle or its version. Only bundles that replace
  it, skip it, or have it in their skipRange may follow. --any-edge allows every
  version.

exit status
  0  the catalog was read; with --from, --version or --channel: a bundle fits
  1  no bundle fits
  2  an error, or a problem in the catalog
"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("catalog", metavar="CATALOG", type=Path, help="file or folder of the catalog")
    parser.add_argument("package", metavar="PACKAGE", nargs="?", help="show this package; default: list all packages")
    parser.add_argument("--channel", action="append", default=[], help="only this channel; can be repeated")
    parser.add_argument(
        "--version", metavar="RANGE", default="", help="only versions in this range, such as '>=1.2.0 <2.0.0'"
    )
    parser.add_argument(
        "--from", dest="installed", metavar="BUNDLE|VERSION", default="", help="the installed bundle or version"
    )
    parser.add_argument("--any-edge", action="store_true", help="allow any version after the installed one")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")


def _run(options: argparse.Namespace) -> int:
    asks = options.channel or options.version or options.installed or options.any_edge
    if asks and not options.package:
        raise Usage("--channel, --version, --from and --any-edge need a PACKAGE")
    catalog = read_catalog(_files(options.catalog))
    if not options.package:
        _print(options, catalog, _listed(catalog), _list_record(catalog))
        return UNKNOWN if catalog.problems else OK
    package = catalog.packages.get(options.package)
    if package is None:
        raise Usage(f"{options.package}: no such package; the catalog has {some(sorted(catalog.packages), 10)}")
    installed = _find_installed(package, options.installed) if options.installed else None
    chosen = None
    if asks:
        edges = UpgradeEdges.SELF_CERTIFIED if options.any_edge else UpgradeEdges.CATALOG_PROVIDED
        versions = constraint_of(options.version) if options.version else None
        wish = PackageWish(options.package, tuple(options.channel), versions, edges)
        current = Installed(installed.name, installed.version, installed.release) if installed else None
        chosen = choose(wish, [CatalogOffer(str(options.catalog), package)], current)
    _print(options, catalog, _package_lines(package, installed, chosen), _record(package, installed, chosen))
    # What could not be read may hold the bundle, channel or deprecation that would have changed the answer.
    if catalog.problems:
        return UNKNOWN
    return FINDINGS if isinstance(chosen, NoChoice) else OK


def _find_installed(package: Package, words: str) -> CatalogBundle:
    found = [
        bundle
        for bundle in package.bundles.values()
        if words == bundle.name or words.removeprefix("v") == str(bundle.version)
    ]
    if len(found) != 1:
        has = some([bundle.name for bundle in _newest_first(package)], 10)
        raise Usage(f"--from {words}: {len(found)} bundles of {package.name} have this name or version; it has {has}")
    return found[0]


def _files(place: Path) -> Iterator[CatalogFile]:
    if not place.exists():
        raise Usage(f"{place}: no such file or folder")
    if not place.is_dir():
        yield _file(place, place.name)
        return
    found = sorted(file for file in place.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not found or len(found) > MAX_FILES:
        raise Usage(f"{place}: {number(len(found), 'file')} with {', '.join(SUFFIXES)}; expected 1 to {MAX_FILES:,}")
    for file in found:
        yield _file(file, str(file.relative_to(place)))


def _file(path: Path, name: str) -> CatalogFile:
    return CatalogFile(name, lambda: path.open("rb"))


def _print(options: argparse.Namespace, catalog: Catalog, lines: Iterator[str], record: dict[str, object]) -> None:
    if options.output == "json":
        problems = [{"where": problem.where, "message": problem.words} for problem in catalog.problems]
        sys.stdout.write(json.dumps({**record, "problems": problems}, indent=2, sort_keys=True) + "\n")
    else:
        shown = [*lines]
        if catalog.problems:
            shown += ["", f"{number(len(catalog.problems), 'problem')} in the catalog:"]
            shown += [f"  {problem}" for problem in catalog.problems[:SHOWN_PROBLEMS]]
            left = len(catalog.problems) - SHOWN_PROBLEMS
            shown += [f"  {and_more(left)}; `-o json` lists all"] if left > 0 else []
        sys.stdout.writelines(f"{visible(line)}\n" for line in shown)


def _newest_first(package: Package) -> list[CatalogBundle]:
    return sorted(package.bundles.values(), key=lambda one: one.rank, reverse=True)


def _listed(catalog: Catalog) -> Iterator[str]:
    width = max(map(len, catalog.packages), default=0)
    for package in catalog.packages.values():
        newest = next((str(bundle.version) for bundle in _newest_first(package)), "none")
        counts = f"{number(len(package.channels), 'channel')}, {number(len(package.bundles), 'bundle')}"
        deprecated = (
            ", deprecated" if any(deprecation.schema == "olm.package" for deprecation in package.deprecations) else ""
        )
        yield f"{package.name:{width}}  newest {newest}, {counts}{deprecated}"
    if not catalog.packages:
        yield "The catalog has no packages."


def _package_lines(
    package: Package, installed: CatalogBundle | None, chosen: Choice | NoChoice | None
) -> Iterator[str]:
    yield package.name
    if package.description:
        yield from (f"  {line}" for line in package.description.strip().splitlines()[:10])
    for deprecation in package.deprecations:
        yield f"  deprecated: {deprecation.name or 'the package'}: {deprecation.message}"
    for channel in package.channels.values():
        yield ""
        is_default = " (default)" if channel.name == package.default_channel else ""
        yield f"channel {channel.name}{is_default}, head {some(list_heads(channel)) or 'none'}"
        ranks = {bundle.name: position for position, bundle in enumerate(_newest_first(package))}
        for entry in sorted(channel.entries, key=lambda it: ranks.get(it.name, len(ranks))):
            edges = [
                f"replaces {entry.replaces}" if entry.replaces else "",
                f"skips {some(entry.skips)}" if entry.skips else "",
                f"follows every version in {entry.skip_range}" if entry.skip_range else "",
                "deprecated" if package.deprecation_of(entry.name) is not None else "",
                "" if entry.name in package.bundles else "missing in the catalog",
            ]
            yield f"  {entry.name}" + "".join(f"; {words}" for words in edges if words)
    if chosen is not None:
        yield ""
        yield from _choice_lines(package, installed, chosen)


def _choice_lines(package: Package, installed: CatalogBundle | None, chosen: Choice | NoChoice) -> Iterator[str]:
    if isinstance(chosen, NoChoice):
        yield f"No bundle may be taken: {chosen.words}."
        return
    if installed is not None and chosen.bundle.name == installed.name:
        yield f"{installed.name} is the newest that may be taken."
    else:
        yield f"{chosen.bundle.name} may be taken, from channel {some(chosen.channels)}."
    yield f"  image {chosen.bundle.image or 'not named'}"
    if chosen.deprecation is not None:
        yield f"  deprecated: {chosen.deprecation}"
    for channel, way in _routes(package, installed).items():
        yield f"  to the head of channel {channel}: {' → '.join(way) if way else 'no edges lead there'}"


def _routes(package: Package, installed: CatalogBundle | None) -> dict[str, tuple[str, ...] | None]:
    """The way to the head of each channel that has one, from what is installed; None where no edges lead there."""
    if installed is None:
        return {}
    heads = {channel: list_heads(channel) for channel in package.channels.values()}
    return {
        channel.name: find_route(package, channel, installed, ends[0])
        for channel, ends in heads.items()
        if len(ends) == 1 and ends[0] != installed.name
    }


def _list_record(catalog: Catalog) -> dict[str, object]:
    return {
        "packages": [
            {
                "name": package.name,
                "defaultChannel": package.default_channel,
                "channels": sorted(package.channels),
                "bundles": len(package.bundles),
            }
            for package in catalog.packages.values()
        ]
    }


def _record(package: Package, installed: CatalogBundle | None, chosen: Choice | NoChoice | None) -> dict[str, object]:
    return {
        "name": package.name,
        "description": package.description,
        "defaultChannel": package.default_channel,
        "channels": [
            {
                "name": channel.name,
                "heads": list_heads(channel),
                "entries": [
                    {
                        "name": entry.name,
                        "replaces": entry.replaces,
                        "skips": entry.skips,
                        "skipRange": str(entry.skip_range) if entry.skip_range else "",
                    }
                    for entry in channel.entries
                ],
            }
            for channel in package.channels.values()
        ],
        "bundles": [
            {
                "name": bundle.name,
                "version": str(bundle.version),
                "image": bundle.image,
                "apis": bundle.apis,
                "needs": bundle.needs,
            }
            for bundle in _newest_first(package)
        ],
        "deprecations": [
            {"schema": deprecation.schema, "name": deprecation.name, "message": deprecation.message}
            for deprecation in package.deprecations
        ],
        "installed": installed.name if installed else None,
        "choice": _choice_record(chosen),
        "routes": _routes(package, installed),
    }


def _choice_record(chosen: Choice | NoChoice | None) -> object:
    if chosen is None:
        return None
    if isinstance(chosen, NoChoice):
        return {"bundle": None, "code": chosen.code, "message": chosen.words}
    return {"bundle": chosen.bundle.name, "channels": chosen.channels, "deprecation": chosen.deprecation}


COMMANDS: tuple[ReviewCommand, ...] = (
    ReviewCommand(
        "catalog", "show what a catalog offers, and which versions may follow the installed one", _add, _run, _EPILOG
    ),
)
