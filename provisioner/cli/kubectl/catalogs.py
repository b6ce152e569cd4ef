"""`catalog list` and `show`: how catalogs stand is asked of the cluster, their packages of the service."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from provisioner.api_groups import OWN_GROUP
from provisioner.catalogs.values import package_to_address
from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.catalog_diff import (
    NOTHING,
    WAIT_SECONDS,
    bundle_facts,
    catalog_differences,
    comparison_lines,
    find_bundle,
    is_changing,
    print_object_lines,
    read_comparison,
    read_object_lines,
)
from provisioner.cli.kubectl.cluster import NOT_INSTALLED, VERSION, add_cluster, cluster_of
from provisioner.cli.kubectl.login import login_for
from provisioner.cli.kubectl.requests import format_output
from provisioner.cli.kubectl.service import Service, add_service, service_url, told_by
from provisioner.cli.kubectl.tables import age_of, table
from provisioner.cli.kubectl.terminal import page
from provisioner.cluster.client.api import ClusterClient
from provisioner.escaping import visible
from provisioner.sentences import and_more, number, some
from provisioner.values import ObjectRef

KIND = "Catalog"
MOST_PACKAGES = 1_000
SHOWN_PROBLEMS = 20
ACTIONS = ("list", "show", "diff")
HELP = "list catalogs, show a catalog or a package, or compare two versions of a package"
EPILOG = """\
list                          list the catalogs of the cluster and their state
show NAME                     show a catalog: its problems and, with a login, its
                              packages
show NAME PACKAGE             show a package: channels, versions, upgrade edges
diff NAME PACKAGE FROM TO     compare two versions: the catalog entries, and what
                              would change: objects, permissions, CRDs, images

FROM and TO are names or versions of bundles. FROM can be `nothing`; with
--deployment, it is what that BundleDeployment runs. Packages are read from
Pratique's service: you need `get` on the catalog, and a login (`login --help`).
For diff you also need `create` on BundleDeployments. The service fetches and
compares both versions on demand, up to a limit per person and hour. It does not
read live objects; `preview` does. --catalog-only fetches nothing.

exit status
  0  done; diff: no differences
  1  diff: there are differences
  2  an error
"""
Record = Mapping[str, Any]


def add(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("action", choices=ACTIONS, help="what to do")
    sub.add_argument("name", metavar="NAME", nargs="?", default="", help="name of a catalog")
    sub.add_argument("package", metavar="PACKAGE", nargs="?", default="", help="a package of the catalog")
    sub.add_argument("before", metavar="FROM", nargs="?", default="", help="the first bundle or version")
    sub.add_argument("after", metavar="TO", nargs="?", default="", help="the second bundle or version")
    sub.add_argument(
        "--search", metavar="WORDS", default="", help="only packages whose name or description contains these words"
    )
    sub.add_argument(
        "--deployment", metavar="NAME", default="", help="diff: compare TO with what this BundleDeployment runs"
    )
    sub.add_argument("--lines", action="store_true", help="diff: also show the lines that differ in each object")
    sub.add_argument("--catalog-only", action="store_true", help="diff: only what differs in the catalog")
    sub.add_argument("--timeout", type=float, default=WAIT_SECONDS, help="diff: seconds to wait; default: %(default)s")
    sub.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: %(default)s")
    add_service(sub)
    add_cluster(sub)


def run(options: argparse.Namespace) -> int:
    api = cluster_of(options)
    if options.action == "list":
        return _list_catalogs(api, options)
    if not options.name:
        raise Usage(f"catalog {options.action} needs the NAME of a catalog: `kubectl pratique catalog list`")
    live = _read_catalog(api, options.name)
    if options.action == "diff":
        return _run_diff(options, live)
    if options.package:
        found = _read_package(options, live)
        _print_result(options, found, _package_lines(found))
        return 0
    _print_result(options, live, _catalog_lines(live, _read_offer(options, live)))
    return 0


def _list_catalogs(api: ClusterClient, options: argparse.Namespace) -> int:
    resource = api.resource_of(OWN_GROUP, VERSION, KIND)
    if resource is None:
        raise Usage(NOT_INSTALLED.format(kind=KIND))
    found = sorted(api.list(resource), key=lambda one: str(one["metadata"]["name"]))
    now = datetime.now(UTC)
    rows = [_catalog_cells(catalog, now) for catalog in found]
    heads = ("NAME", "PRIORITY", "PACKAGES", "BUNDLES", "READY", "PROBLEMS", "READ", "SOURCE")
    text = table(heads, rows) if rows else "No catalogs in this cluster.\n"
    page(format_output(options, {"items": found}, text))
    return 0


def _catalog_cells(live: Record, now: datetime) -> tuple[str, ...]:
    status = live.get("status") or {}
    read = status.get("readAt")
    ready = [condition for condition in status.get("conditions") or [] if condition.get("type") == "Ready"]
    return (
        str(live["metadata"]["name"]),
        str((live.get("spec") or {}).get("priority") or 0),
        str(status.get("packages", "")),
        str(status.get("bundles", "")),
        str(ready[0].get("status", "Unknown")) if ready else "Unknown",
        str(status.get("problems", "")),
        f"{age_of(now - datetime.fromisoformat(read))} ago" if read else "",
        _source_of(live),
    )


def _source_of(live: Record) -> str:
    source = (live.get("spec") or {}).get("source") or {}
    body = source.get(source.get("kind")) or {}
    return str(body.get("ref") if isinstance(body.get("ref"), str) else body.get("repository") or body.get("url") or "")


def _read_catalog(api: ClusterClient, name: str) -> Record:
    if api.resource_of(OWN_GROUP, VERSION, KIND) is None:
        raise Usage(NOT_INSTALLED.format(kind=KIND))
    found = api.get(ObjectRef(OWN_GROUP, VERSION, KIND, "", name))
    if found is None:
        raise Usage(f"there is no catalog {name}: `kubectl pratique catalog list`")
    return found


def _service_of(options: argparse.Namespace) -> Service | None:
    url = service_url(options)
    login = login_for(url)
    return Service(url, login.token) if login else None


def _catalog_address(service: Service, live: Record) -> str:
    """The catalog at the service, which knows the cluster by a name of its own."""
    found = service.get("catalogs", uid=live["metadata"]["uid"])["results"]
    if not found:
        raise Usage(
            f"the service does not show you catalog {live['metadata']['name']}: it was not read yet, or Kubernetes "
            "does not let you get it"
        )
    return "/".join(quote(part, safe="") for part in ("catalogs", found[0]["cluster"], found[0]["name"]))


def _read_offer(options: argparse.Namespace, live: Record) -> Record | None:
    """What the service says of a catalog and its packages; None without a login."""
    service = _service_of(options)
    if service is None:
        return None
    address = _catalog_address(service, live)
    packages: list[Record] = []
    cursor = ""
    while len(packages) < MOST_PACKAGES:
        found = service.get(f"{address}/packages", page_size=200, search=options.search, cursor=cursor)
        packages += found["results"]
        cursor = (found["next"] or "").partition("cursor=")[2].partition("&")[0]
        if not cursor:
            break
    return {**service.get(address), "packages": packages, "more": bool(cursor)}


def _read_package(options: argparse.Namespace, live: Record) -> Record:
    if not options.package:
        raise Usage("which PACKAGE? `kubectl pratique catalog show NAME` lists them")
    service = _service_of(options)
    if service is None:
        raise Usage("packages are read at Pratique's service: log in there with `kubectl pratique login --service URL`")
    found: Record = service.get(
        f"{_catalog_address(service, live)}/packages/{quote(package_to_address(options.package), safe='')}"
    )
    return found


def _catalog_lines(live: Record, offer: Record | None) -> Iterator[str]:
    status = live.get("status") or {}
    yield f"{live['metadata']['name']}  {_source_of(live)}"
    for condition in status.get("conditions") or []:
        yield f"{condition['type']}: {condition['status']} ({condition['reason']})"
        if offer is None or condition["type"] != "Sound":  # of which the service says more, below
            yield from (f"  {line}" for line in str(condition.get("message") or "").splitlines())
    if offer is None:
        yield ""
        yield "Log in to see its packages: kubectl pratique login --service URL"
        return
    problems = offer["problems"]
    if problems:
        yield ""
        yield f"{number(len(problems), 'problem')} in it:"
        yield from (f"  {problem['where']}: {problem['message']}" for problem in problems[:SHOWN_PROBLEMS])
        if left := and_more(len(problems) - SHOWN_PROBLEMS):
            yield f"  {left}"
    yield ""
    heads = ("PACKAGE", "CHANNEL", "VERSION", "BUNDLES", "SUMMARY")
    rows = [
        (
            package["name"],
            package["default_channel"],
            package["head_version"],
            str(package["bundle_count"]),
            ("deprecated. " if package["is_deprecated"] else "") + package["summary"][:100],
        )
        for package in offer["packages"]
    ]
    yield from table(heads, rows).splitlines() if rows else ("No packages.",)
    if offer["more"]:
        yield f"More than {MOST_PACKAGES} packages: narrow them with --search"


def _package_lines(found: Record) -> Iterator[str]:
    yield f"{found['name']}  {found['display_name']}  {found['provider']}".rstrip()
    if found["deprecation"] is not None:
        yield f"  {_deprecation_line(found)}"
    if found["summary"]:
        yield f"  {found['summary']}"
    yield from (f"  {name}: {words}" for name, words in _publisher_facts(found.get("facts")) if words)
    bundles = {bundle["name"]: bundle for bundle in found["bundles"]}
    for channel in found["channels"]:
        is_default = " (default)" if channel["name"] == found["default_channel"] else ""
        yield ""
        yield f"channel {channel['name']}{is_default}, head {some(channel['heads']) or 'none'}"
        if channel["deprecation"] is not None:
            yield f"  {_deprecation_line(channel)}"
        for entry in channel["entries"]:
            yield f"  {'; '.join(_entry_words(entry, bundles.get(entry['name'])))}"


def _deprecation_line(one: Record) -> str:
    """What its publisher says about it, in one line."""
    return f"deprecated: {' '.join(one['deprecation'].split())}".removesuffix(": ")


def _publisher_facts(facts: Record | None) -> Iterator[tuple[str, str]]:
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
    people = [
        f"{maintainer['name']} <{maintainer['email']}>".strip() if maintainer["email"] else str(maintainer["name"])
        for maintainer in facts["maintainers"]
    ]
    yield "maintainers", ", ".join(people)
    yield from (("link", f"{link['name']} {link['url']}") for link in facts["links"])


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
        yield _deprecation_line(bundle)
    if bundle["changed_content"]:
        yield f"changed its content, before {bundle['changed_content']['before']}"


def _run_diff(options: argparse.Namespace, live: Record) -> int:
    """FROM may be `nothing`; with --deployment there is only TO."""
    words = (options.before, options.after)
    if options.deployment:
        if options.after:
            raise Usage("with --deployment, FROM is what it runs: name only TO")
        words = ("", options.before)
    found = _read_package(options, live)
    after = find_bundle(found, words[1])
    is_nothing = bool(options.deployment) or words[0] == NOTHING
    before = None if is_nothing else find_bundle(found, words[0])
    lines = list(catalog_differences(found, before, after)) if before else []
    if before is None and options.catalog_only:
        lines = list(bundle_facts(after))
    record: dict[str, Any] = {"from": before["name"] if before else "", "to": after["name"], "differences": lines}
    is_same = before is not None and before["name"] == after["name"]
    if before and not lines:
        lines = [f"{before['name']} and {after['name']} do not differ in the catalog."]
    if options.catalog_only or is_same:
        _print_result(options, record, lines)
        return 1 if record["differences"] else 0
    service = _service_of(options)
    assert service is not None  # the package was read there
    asked = {"from": record["from"], "to": record["to"], "deployment": options.deployment}
    address = f"{_catalog_address(service, live)}/packages/{quote(package_to_address(found['name']), safe='')}/changes"
    comparison = read_comparison(service, address, asked, seconds=options.timeout)
    if options.lines:
        comparison["lines"] = read_object_lines(service, address, asked, comparison["result"])
    with told_by(service):
        told = [*lines, *([""] if lines else []), *comparison_lines(comparison)]
        if options.lines:
            told += print_object_lines(comparison["result"], comparison["lines"])
        is_other = bool(record["differences"]) or is_changing(comparison["result"])
    _print_result(options, {**record, "changes": comparison}, told)
    return 1 if is_other else 0


def _print_result(options: argparse.Namespace, record: Record, lines: Sequence[str] | Iterator[str]) -> None:
    text = "".join(f"{visible(line)}\n" for line in lines)
    page(format_output(options, record, text))
