"""`catalog list` and `show`: how catalogs stand is asked of the cluster, their packages of the service."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import yaml

from provisioner.api_groups import OWN_GROUP
from provisioner.catalogs import package_to_address
from provisioner.cli.plugin.catalogs.comparing import (
    NOTHING,
    WAIT_SECONDS,
    bundle_of,
    contents,
    differences,
    is_changing,
    lines_of,
    worked_out,
)
from provisioner.cli.plugin.catalogs.lines import lines_of_objects, printed_lines
from provisioner.cli.plugin.reading import NOT_INSTALLED, VERSION, add_cluster, cluster_of
from provisioner.cli.plugin.service import ENVIRONMENT, Service, service_url, told_by
from provisioner.cli.plugin.showing import age_of, table
from provisioner.cli.plugin.signing_in import login_for
from provisioner.cli.plugin.terminal import page
from provisioner.cli.usage import Usage
from provisioner.cluster.client.api import ClusterClient
from provisioner.escaping import visible
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
diff NAME PACKAGE FROM TO     what differs between two of its versions, and what
                              would change: objects, permissions, CRDs, images

FROM and TO are names of bundles, or versions; FROM may be `nothing`, and with
--deployment it is what that one runs. Packages come from Pratique's service, for
whoever may `get` the catalog: see `login --help`. It fetches and compares both
versions on demand, for whoever may create a BundleDeployment as well; each person
may ask for some an hour. The live objects of the cluster are not looked at:
`preview` does that. --catalog-only fetches nothing. --lines shows what differs in
each object.

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
    sub.add_argument("--deployment", metavar="NAME", default="", help="of diff: compare TO with what this one runs")
    sub.add_argument("--lines", action="store_true", help="of diff: with the lines that differ in each object")
    sub.add_argument("--catalog-only", action="store_true", help="of diff: only what differs in the catalog")
    sub.add_argument(
        "--timeout", type=float, default=WAIT_SECONDS, help="of diff: seconds to wait; default: %(default)s"
    )
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
        return _diff(options, live)
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
    found: Record = service.get(
        f"{_address(service, live)}/packages/{quote(package_to_address(options.package), safe='')}"
    )
    return found


def _catalog_lines(live: Record, offer: Record | None) -> Iterator[str]:
    status = live.get("status") or {}
    yield f"{live['metadata']['name']}  {_source(live)}"
    for one in status.get("conditions") or []:
        yield f"{one['type']}: {one['status']} ({one['reason']})"
        if offer is None or one["type"] != "Sound":  # of which the service says more, below
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
    yield from table(heads, rows).splitlines() if rows else ("No packages.",)
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
        yield f"  {_deprecated(found)}"
    if found["summary"]:
        yield f"  {found['summary']}"
    yield from (f"  {name}: {words}" for name, words in _facts(found.get("facts")) if words)
    bundles = {one["name"]: one for one in found["bundles"]}
    for channel in found["channels"]:
        is_default = " (default)" if channel["name"] == found["default_channel"] else ""
        yield ""
        yield f"channel {channel['name']}{is_default}, head {some(channel['heads']) or 'none'}"
        if channel["deprecation"] is not None:
            yield f"  {_deprecated(channel)}"
        for entry in channel["entries"]:
            yield f"  {'; '.join(_entry_words(entry, bundles.get(entry['name'])))}"


def _deprecated(one: Record) -> str:
    """What its publisher says about it, in one line."""
    return f"deprecated: {' '.join(one['deprecation'].split())}".removesuffix(": ")


def _facts(facts: Record | None) -> Iterator[tuple[str, str]]:
    """What its publisher says of the bundle in which the default channel ends, each as one line. A service of the
    version before says nothing of it."""
    if facts is None:
        return
    yield "Kubernetes", facts["kubernetes"]
    yield "install modes", ", ".join(facts["install_modes"])
    yield "capability", facts["capability"]
    yield "maturity", facts["maturity"]
    yield "app version", facts["app_version"]
    yield "keywords", ", ".join(facts["keywords"])
    yield "maintainers", ", ".join(_person(one) for one in facts["maintainers"])
    yield from (("link", f"{one['name']} {one['url']}") for one in facts["links"])


def _person(one: Record) -> str:
    return f"{one['name']} <{one['email']}>".strip() if one["email"] else str(one["name"])


def _entry_words(entry: Record, bundle: Record | None) -> Iterator[str]:
    version = bundle["version"] if bundle else ""
    yield entry["name"] if entry["name"].endswith(version) else f"{entry['name']} ({version})"
    if entry["replaces"]:
        yield f"replaces {entry['replaces']}"
    if entry["skips"]:
        yield f"skips {some(entry['skips'])}"
    if entry["skip_range"]:
        yield f"follows every version in {entry['skip_range']}"
    if bundle is None:
        yield "missing in the catalog"
        return
    if bundle.get("kubernetes"):
        yield f"for Kubernetes {bundle['kubernetes']}"
    if bundle["deprecation"] is not None:
        yield _deprecated(bundle)
    if bundle["changed_content"]:
        yield f"changed its content, before {bundle['changed_content']['before']}"


def _diff(options: argparse.Namespace, live: Record) -> int:
    """FROM may be `nothing`; with --deployment there is only TO."""
    words = (options.before, options.after)
    if options.deployment:
        if options.after:
            raise Usage("with --deployment, FROM is what it runs: name only TO")
        words = ("", options.before)
    found = _package(options, live)
    after = bundle_of(found, words[1])
    is_nothing = bool(options.deployment) or words[0] == NOTHING
    before = None if is_nothing else bundle_of(found, words[0])
    return _compared(options, live, found, before, after)


def _compared(options: argparse.Namespace, live: Record, found: Record, before: Record | None, after: Record) -> int:
    lines = list(differences(found, before, after)) if before else []
    if before is None and options.catalog_only:
        lines = list(contents(after))
    record: dict[str, Any] = {"from": before["name"] if before else "", "to": after["name"], "differences": lines}
    is_same = before is not None and before["name"] == after["name"]
    if before and not lines:
        lines = [f"{before['name']} and {after['name']} do not differ in the catalog."]
    if options.catalog_only or is_same:
        _print(options, record, lines)
        return 1 if record["differences"] else 0
    service = _service(options)
    assert service is not None  # the package was read there
    asked = {"from": record["from"], "to": record["to"], "deployment": options.deployment}
    address = f"{_address(service, live)}/packages/{quote(package_to_address(found['name']), safe='')}/changes"
    comparison = worked_out(service, address, asked, seconds=options.timeout)
    if options.lines:
        comparison["lines"] = lines_of_objects(service, address, asked, comparison["result"])
    with told_by(service):
        told = [*lines, *([""] if lines else []), *lines_of(comparison)]
        if options.lines:
            told += printed_lines(comparison["result"], comparison["lines"])
        is_other = bool(record["differences"]) or is_changing(comparison["result"])
    _print(options, {**record, "changes": comparison}, told)
    return 1 if is_other else 0


def _print(options: argparse.Namespace, record: Record, lines: Sequence[str] | Iterator[str]) -> None:
    text = "".join(f"{visible(line)}\n" for line in lines)
    page(_formed(options, record, text))


def _formed(options: argparse.Namespace, record: Record, text: str) -> str:
    if options.output == "json":
        return json.dumps(record, indent=2, sort_keys=True) + "\n"
    return yaml.safe_dump(dict(record), sort_keys=True) if options.output == "yaml" else text
