"""`catalog list`, `show` and `diff`: how catalogs stand is asked of the cluster, their packages of the service."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import yaml

from provisioner.api_groups import OWN_GROUP
from provisioner.cli.plugin.reading import NOT_INSTALLED, VERSION, add_cluster, cluster_of
from provisioner.cli.plugin.service import ENVIRONMENT, Service, service_url
from provisioner.cli.plugin.showing import age_of, table
from provisioner.cli.plugin.signing_in import login_for
from provisioner.cli.plugin.terminal import page
from provisioner.cli.usage import Usage
from provisioner.cluster.client.api import ClusterClient
from provisioner.review.base.text import visible
from provisioner.sentences import and_more, number, some
from provisioner.values import ObjectRef

KIND = "Catalog"
MOST_PACKAGES = 1_000
SHOWN_PROBLEMS = 20
ACTIONS = ("list", "show", "diff")
HELP = "catalogs of the cluster: list them, show one or a package of it, compare two of its versions"
EPILOG = """\
list                          the catalogs of the cluster, and how they stand
show NAME                     one catalog: problems, and with a login its packages
show NAME PACKAGE             a package: channels, versions, what may follow what
diff NAME PACKAGE FROM TO     what differs between two of its versions, in the
                              catalog: image, APIs, deprecation, the way there

FROM and TO are names of bundles, or versions. Packages come from Pratique's
service, for whoever may `get` the catalog: see `login --help`.

exit status
  0  done; of diff: nothing differs
  1  of diff: something does
  2  it could not be found out
"""
Record = Mapping[str, Any]


def add(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("action", choices=ACTIONS, help="what to do")
    sub.add_argument("name", metavar="NAME", nargs="?", default="", help="a catalog")
    sub.add_argument("package", metavar="PACKAGE", nargs="?", default="", help="a package of it")
    sub.add_argument("before", metavar="FROM", nargs="?", default="", help="a bundle or version")
    sub.add_argument("after", metavar="TO", nargs="?", default="", help="another one")
    sub.add_argument("--search", metavar="WORDS", default="", help="only packages in whose names and words these stand")
    sub.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: %(default)s")
    sub.add_argument("--service", metavar="URL", default="", help=f"Pratique's address; else that of {ENVIRONMENT}")
    add_cluster(sub)


def run(options: argparse.Namespace) -> int:
    api = cluster_of(options)
    if options.action == "list":
        return _list(api, options)
    if not options.name:
        raise Usage(f"catalog {options.action} needs the NAME of a catalog: `kubectl pratique catalog list`")
    live = _live(api, options.name)
    if options.action == "diff":
        return _diff(_package(options, live), options)
    if options.package:
        found = _package(options, live)
        _print(options, found, _package_lines(found))
        return 0
    _print(options, live, _catalog_lines(live, _offer(options, live)))
    return 0


def _list(api: ClusterClient, options: argparse.Namespace) -> int:
    resource = api.resource_of(OWN_GROUP, VERSION, KIND)
    if resource is None:
        raise Usage(NOT_INSTALLED.format(kind=KIND))
    found = sorted(api.list(resource), key=lambda one: str(one["metadata"]["name"]))
    now = datetime.now(UTC)
    rows = [_row(one, now) for one in found]
    heads = ("NAME", "PACKAGES", "BUNDLES", "READY", "PROBLEMS", "READ", "SOURCE")
    text = table(heads, rows) if rows else "No catalogs in this cluster.\n"
    page(_formed(options, {"items": found}, text))
    return 0


def _row(live: Record, now: datetime) -> tuple[str, ...]:
    status = live.get("status") or {}
    read = status.get("readAt")
    return (
        str(live["metadata"]["name"]),
        str(status.get("packages", "")),
        str(status.get("bundles", "")),
        _condition(live, "Ready").get("status", "Unknown"),
        str(status.get("problems", "")),
        f"{age_of(now - datetime.fromisoformat(read))} ago" if read else "",
        _source(live),
    )


def _source(live: Record) -> str:
    source = (live.get("spec") or {}).get("source") or {}
    body = source.get(source.get("kind")) or {}
    return str(body.get("ref") if isinstance(body.get("ref"), str) else body.get("repository") or body.get("url") or "")


def _condition(live: Record, kind: str) -> Record:
    listed = (live.get("status") or {}).get("conditions") or []
    return next((one for one in listed if one.get("type") == kind), {})


def _live(api: ClusterClient, name: str) -> Record:
    if api.resource_of(OWN_GROUP, VERSION, KIND) is None:
        raise Usage(NOT_INSTALLED.format(kind=KIND))
    found = api.get(ObjectRef(OWN_GROUP, VERSION, KIND, "", name))
    if found is None:
        raise Usage(f"there is no catalog {name}: `kubectl pratique catalog list`")
    return found


def _service(options: argparse.Namespace) -> Service | None:
    url = service_url(options)
    login = login_for(url) if url else None
    return Service(url, login.token) if login else None


def _address(service: Service, live: Record) -> str:
    """The catalog at the service, which knows the cluster by a name of its own."""
    found = service.get("catalogs", uid=live["metadata"]["uid"])["results"]
    if not found:
        raise Usage(
            f"the service does not show you catalog {live['metadata']['name']}: it was not read yet, or Kubernetes "
            "does not let you get it"
        )
    return "/".join(quote(one, safe="") for one in ("catalogs", found[0]["cluster"], found[0]["name"]))


def _offer(options: argparse.Namespace, live: Record) -> Record | None:
    """What the service says of a catalog and its packages; None without a login."""
    service = _service(options)
    if service is None:
        return None
    address = _address(service, live)
    packages: list[Record] = []
    cursor = ""
    while len(packages) < MOST_PACKAGES:
        found = service.get(f"{address}/packages", page_size=200, search=options.search, cursor=cursor)
        packages += found["results"]
        cursor = _cursor_of(found["next"] or "")
        if not cursor:
            break
    return {**service.get(address), "packages": packages, "more": bool(cursor)}


def _cursor_of(following: str) -> str:
    return following.partition("cursor=")[2].partition("&")[0]


def _package(options: argparse.Namespace, live: Record) -> Record:
    if not options.package:
        raise Usage("which PACKAGE? `kubectl pratique catalog show NAME` lists them")
    service = _service(options)
    if service is None:
        raise Usage("packages are read at Pratique's service: log in there with `kubectl pratique login --service URL`")
    found: Record = service.get(f"{_address(service, live)}/packages/{quote(options.package, safe='')}")
    return found


def _catalog_lines(live: Record, offer: Record | None) -> Iterator[str]:
    status = live.get("status") or {}
    yield f"{live['metadata']['name']}  {_source(live)}"
    for one in status.get("conditions") or []:
        yield f"{one['type']}: {one['status']} ({one['reason']})"
        yield from (f"  {line}" for line in str(one.get("message") or "").splitlines())
    if offer is None:
        yield ""
        yield "Log in to see its packages: kubectl pratique login --service URL"
        return
    yield from _problem_lines(offer["problems"])
    yield ""
    heads = ("PACKAGE", "CHANNEL", "VERSION", "BUNDLES", "SUMMARY")
    rows = [
        (
            one["name"],
            one["default_channel"],
            one["head_version"],
            str(one["bundle_count"]),
            ("deprecated. " if one["is_deprecated"] else "") + one["summary"][:100],
        )
        for one in offer["packages"]
    ]
    yield table(heads, rows).rstrip("\n") if rows else "No packages."
    if offer["more"]:
        yield f"More than {MOST_PACKAGES} packages: narrow them with --search"


def _problem_lines(problems: Sequence[Record]) -> Iterator[str]:
    if problems:
        yield ""
        yield f"{number(len(problems), 'problem')} in it:"
        yield from (f"  {one['where']}: {one['message']}" for one in problems[:SHOWN_PROBLEMS])
        if left := and_more(len(problems) - SHOWN_PROBLEMS):
            yield f"  {left}"


def _package_lines(found: Record) -> Iterator[str]:
    yield f"{found['name']}  {found['display_name']}  {found['provider']}".rstrip()
    if found["deprecation"] is not None:
        yield f"  deprecated: {found['deprecation']}"
    if found["summary"]:
        yield f"  {found['summary']}"
    bundles = {one["name"]: one for one in found["bundles"]}
    for channel in found["channels"]:
        is_default = " (default)" if channel["name"] == found["default_channel"] else ""
        yield ""
        yield f"channel {channel['name']}{is_default}, head {some(channel['heads']) or 'none'}"
        for entry in channel["entries"]:
            yield f"  {'; '.join(_entry_words(entry, bundles.get(entry['name'])))}"


def _entry_words(entry: Record, bundle: Record | None) -> Iterator[str]:
    yield entry["name"]
    if entry["replaces"]:
        yield f"replaces {entry['replaces']}"
    if entry["skips"]:
        yield f"skips {some(entry['skips'])}"
    if entry["skip_range"]:
        yield f"follows every version in {entry['skip_range']}"
    if bundle is None:
        yield "missing in the catalog"
        return
    if bundle["deprecation"] is not None:
        yield "deprecated"
    if bundle["changed_content"]:
        yield f"changed its content, before {bundle['changed_content']['before']}"


def _diff(found: Record, options: argparse.Namespace) -> int:
    before, after = (_bundle(found, words) for words in (options.before, options.after))
    lines = list(_differences(found, before, after))
    record = {"from": before["name"], "to": after["name"], "differences": lines}
    _print(options, record, lines or [f"{before['name']} and {after['name']} do not differ in the catalog."])
    return 1 if lines else 0


def _bundle(found: Record, words: str) -> Record:
    if not words:
        raise Usage("catalog diff needs NAME PACKAGE FROM TO, the last two bundles or versions of the package")
    fitting = [one for one in found["bundles"] if words in (one["name"], one["version"])]
    if len(fitting) != 1:
        has = some([one["version"] for one in found["bundles"]], 10)
        raise Usage(
            f"{words}: {number(len(fitting), 'bundle')} of {found['name']} of this name or version; it has {has}"
        )
    return dict(fitting[0])


def _differences(found: Record, before: Record, after: Record) -> Iterator[str]:
    for key in ("version", "image", "url", "checksum", "deprecation"):
        if before[key] != after[key]:
            yield f"{key}: {before[key] or 'none'} → {after[key] or 'none'}"
    for key, words in (("apis", "API"), ("needs", "constraint on other bundles")):
        yield from (f"- {words} {one}" for one in sorted(set(before[key]) - set(after[key])))
        yield from (f"+ {words} {one}" for one in sorted(set(after[key]) - set(before[key])))
    if before["name"] == after["name"]:
        return
    direct = [
        channel["name"]
        for channel in found["channels"]
        for entry in channel["entries"]
        if entry["name"] == after["name"] and (entry["replaces"] == before["name"] or before["name"] in entry["skips"])
    ]
    if direct:
        yield f"may follow directly in {some(direct)}"


def _print(options: argparse.Namespace, record: Record, lines: Sequence[str] | Iterator[str]) -> None:
    text = "".join(f"{visible(line, keep_newlines=True)}\n" for line in lines)
    page(_formed(options, record, text))


def _formed(options: argparse.Namespace, record: Record, text: str) -> str:
    if options.output == "json":
        return json.dumps(record, indent=2, sort_keys=True) + "\n"
    return yaml.safe_dump(dict(record), sort_keys=True) if options.output == "yaml" else text
