"""`catalog diff`: what differs in the catalog, and what would change, which the service works out on demand."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.service import Service, told_by
from provisioner.escaping import visible
from provisioner.review.base.grouping import NEVER_FOLDED
from provisioner.review.workloads.workload_changes import image_words
from provisioner.sentences import and_more, number, some
from provisioner.values import SHAPES, ObjectRef, Severity
from provisioner.versions import range_of, version_of

NOTHING = "nothing"
POLL_SECONDS = 1.0
WAIT_SECONDS = 300.0
MOST_LINES = 200
IN_CATALOG = ("version", "image", "url", "checksum", "kubernetes", "deprecation")
LISTED_IN_CATALOG = (("apis", "API"), ("needs", "constraint on other bundles"))
SIGNS = {"create": "+", "update": "~", "replace": "!", "rerun": "~", "delete": "-", "orphan": "=", "hidden": "?"}
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line, and how grave that is of which it tells, "" where nobody says so."""

    words: str
    severity: str = ""


def read_comparison(service: Service, address: str, asked: Mapping[str, str], *, seconds: float) -> dict[str, Any]:
    """The comparison as the service knows it, asked for where it does not yet; says meanwhile what is being done.

    Raises Usage where it failed or takes longer, and ServiceSilent where the service refuses it.
    """
    with told_by(service):
        found, told, end = service.post(address, asked), "", time.monotonic() + seconds
        while found["state"] == "waiting":
            words = visible(found["progress"] or "waiting for a worker")
            if words != told:
                print(f"{words} …", file=sys.stderr)
                told = words
            if time.monotonic() > end:
                raise Usage(f"it is not ready after {seconds:g} s. The service continues: run the command again")
            time.sleep(POLL_SECONDS)
            found = service.get(address, **asked)
        if found["state"] == "failed":
            raise Usage(f"it could not be compared: {found['problem']} [{found['problem_code']}]")
        return {**found, "result": _whole(service, address, asked, found["result"])}


def _whole(service: Service, address: str, asked: Mapping[str, str], result: dict[str, Any]) -> dict[str, Any]:
    """The result with all parts of its report."""
    report = result["report"]
    findings, actions, parts = [*report["findings"]], [*report["plan"]["actions"]], report["parts"]
    while (at := parts["findings"]["next"]) is not None or parts["actions"]["next"] is not None:
        begins = {
            "findings_from": len(findings) if at is None else at,
            "actions_from": len(actions) if parts["actions"]["next"] is None else parts["actions"]["next"],
        }
        more = service.get(address, **asked, **begins)["result"]["report"]
        added = more["findings"], more["plan"]["actions"]
        if not any(added):
            raise Usage("the service stopped in the middle of the report: run the command again")
        findings, actions, parts = findings + added[0], actions + added[1], more["parts"]
    whole = {key: value for key, value in report.items() if key not in ("parts", "is_whole")}
    return {**result, "report": {**whole, "findings": findings, "plan": {**report["plan"], "actions": actions}}}


def is_changing(result: Record) -> bool:
    """Whether anything would change."""
    return any(action["action"] != "none" for action in result["report"]["plan"]["actions"])


def comparison_lines(comparison: Record) -> Iterator[str]:
    """The comparison for a terminal."""
    result = comparison["result"]
    yield f"In namespace {result['install_namespace']}, without the live objects of the cluster:"
    yield from (f"  {sentence}" for sentence in result["report"]["headline"])
    yield from (f"  hidden from you: {words}" for words in result["hidden"])
    yield from _titled("objects", _objects(result["report"]))
    yield from _titled("permissions", _risks(result["permissions"]))
    yield from _titled("images", map(_Line, _images(result["images"])))
    findings = result["report"]["findings"]
    loud = sorted((finding for finding in findings if finding["severity"] != Severity.SAFE), key=_rank)
    lines = (
        _Line(
            f"{SHAPES[finding['severity']]} {finding['severity']} {finding['rule']} {finding['message']}",
            finding["severity"],
        )
        for finding in loud
    )
    safe = len(findings) - len(loud)
    yield from _titled("findings", lines, noun="findings", end=f"and {number(safe, 'safe finding')}" if safe else "")
    yield from _titled("rights", map(_Line, _rights(result["permissions"]["accounts"])))
    if result["installer"]:
        yield from _titled("installer", map(_Line, _installer(result)))


def _titled(title: str, lines: Iterable[_Line], *, noun: str = "lines", end: str = "") -> Iterator[str]:
    """Bounded, but for what is critical or unknown (S24): says what is left out, and how grave that is."""
    found = list(lines)
    room = MOST_LINES - sum(1 for one in found if one.severity in NEVER_FOLDED)
    kept, left = list[str](), Counter[str]()
    for line in found:
        is_grave = line.severity in NEVER_FOLDED
        if is_grave or room > 0:
            kept.append(line.words)
            room -= not is_grave
        else:
            left[line.severity] += 1

    told = ", ".join(f"{left[severity]:,} {severity}" for severity in Severity if left[severity])
    more = and_more(left.total(), f"{noun}{f' ({told})' if told else ''}; -o json has all")
    if words := [*kept, *filter(None, (more, end))]:
        yield ""
        yield f"{title}:"
        yield from (f"  {word}" for word in words)


def _objects(report: Record) -> Iterator[_Line]:
    """Those with the worst findings first."""
    worst = dict[ObjectRef, Severity]()
    for finding in sorted((judged for judged in report["findings"] if judged.get("ref")), key=_rank):
        if finding["severity"] != Severity.SAFE:
            worst.setdefault(_ref(finding["ref"]), Severity(finding["severity"]))
    planned = [(action, _ref(action["ref"])) for action in report["plan"]["actions"] if action["action"] in SIGNS]
    for one, ref in sorted(planned, key=lambda it: worst.get(it[1], Severity.SAFE).rank):
        yield _Line(f"{SIGNS[one['action']]} {ref}", worst.get(ref, ""))


def _risks(permissions: Record) -> Iterator[_Line]:
    """What accounts can newly do, the worst first. An account stays above its risks: its line counts as they do."""
    for account in sorted(permissions["accounts"], key=lambda it: min(map(_rank, it["risks"]), default=len(Severity))):
        grave = (risk["severity"] for risk in account["risks"] if risk["severity"] in NEVER_FOLDED)
        yield _Line(account["sentence"], next(grave, ""))
        for risk in account["risks"]:
            yield _Line(f"  {SHAPES[risk['severity']]} {risk['sentence']}", risk["severity"])
    # Nobody says how grave these are, so they may be as grave as anything.
    everybody = [rule["sentence"] for rule in permissions["everybody"]]
    unknown = [*everybody, *(f"not known: {problem}" for problem in permissions["problems"])]
    yield from (_Line(sentence, Severity.UNKNOWN) for sentence in unknown)


def _rank(judged: Record) -> int:
    return Severity(judged["severity"]).rank


def _rights(accounts: Sequence[Record]) -> Iterator[str]:
    for account in accounts:
        if account["gained_count"] or account["lost_count"]:
            yield str(account["account"])
        for sign, kind in (("+", "gained"), ("-", "lost")):
            yield from (f"  {sign} {words}" for words in account[kind])
            if left := and_more(account[f"{kind}_count"] - len(account[kind]), "rights"):
                yield f"  {sign} {left}"


def _images(images: Sequence[Record]) -> Iterator[str]:
    for image in images:
        sign = "~" if image["before"] and image["after"] else "+" if image["after"] else "-"
        yield f"{sign} {_ref(image['ref'])!s} {image['container']}: {image_words(image['before'], image['after'])}"


def _installer(result: Record) -> Iterator[str]:
    installer = result["installer"]
    yield f"{result['install_namespace']}/{result['service_account']} needs {installer['summary']}; -o yaml has them"
    yield from (str(obstacle) for obstacle in installer["obstacles"])


def _ref(ref: Record) -> ObjectRef:
    return ObjectRef(**{part: ref[part] for part in ("group", "version", "kind", "namespace", "name")})


def bundle_facts(bundle: Record) -> Iterator[str]:
    """What the catalog says of a bundle that follows nothing: all of it is new."""
    yield from (f"{key}: {bundle[key]}" for key in IN_CATALOG if bundle.get(key))
    yield from (f"+ {words} {item}" for key, words in LISTED_IN_CATALOG for item in sorted(bundle[key]))


def catalog_differences(found: Record, before: Record, after: Record) -> Iterator[str]:
    """What differs between two bundles in the catalog alone."""
    for key in IN_CATALOG:
        if before.get(key) != after.get(key):
            yield f"{key}: {before.get(key) or 'none'} → {after.get(key) or 'none'}"
    for key, words in LISTED_IN_CATALOG:
        yield from (f"- {words} {item}" for item in sorted(set(before[key]) - set(after[key])))
        yield from (f"+ {words} {item}" for item in sorted(set(after[key]) - set(before[key])))
    if before["name"] == after["name"]:
        return
    direct = [
        channel["name"]
        for channel in found["channels"]
        for entry in channel["entries"]
        if entry["name"] == after["name"] and _follows(entry, before)
    ]
    if direct:
        yield f"may follow directly in {some(direct)}"


def _follows(entry: Record, before: Record) -> bool:
    if entry["replaces"] == before["name"] or before["name"] in entry["skips"]:
        return True
    return bool(entry["skip_range"]) and version_of(before["version"]) in range_of(entry["skip_range"])


def find_bundle(found: Record, words: str) -> Record:
    """The bundle of a package by name or version. Raises Usage."""
    if not words:
        raise Usage("catalog diff needs NAME PACKAGE FROM TO, the last two bundles or versions of the package")
    fitting = [
        bundle for bundle in found["bundles"] if words == bundle["name"] or words.removeprefix("v") == bundle["version"]
    ]
    if len(fitting) != 1:
        has = some([bundle["version"] for bundle in found["bundles"]], 10)
        raise Usage(
            f"{words}: {number(len(fitting), 'bundle')} of {found['name']} of this name or version; it has {has}"
        )
    return dict(fitting[0])


# The service answers so many questions of this kind within a minute.
MOST_OBJECTS = 200


def read_object_lines(service: Service, address: str, asked: Mapping[str, str], result: Record) -> list[dict[str, Any]]:
    """The lines of each object in the order of the plan, of the first MOST_OBJECTS that change."""
    with told_by(service):
        places = sorted(map(int, result["changed"]))[:MOST_OBJECTS]
        return [_read_object(service, f"{address}/objects/{at}", asked) for at in places]


def _read_object(service: Service, address: str, asked: Mapping[str, str]) -> dict[str, Any]:
    found = service.get(address, **asked)
    hunks, at = [*found["hunks"]], found["parts"]["lines"]["next"]
    while at is not None:
        part = service.get(address, **asked, lines_from=at)
        hunks += part["hunks"]
        after = part["parts"]["lines"]["next"]
        if after is not None and after <= at:
            raise Usage("the service stopped in the middle of an object: run the command again")
        at = after
    return {"ref": found["ref"], "is_hidden": found["is_hidden"], "hunks": hunks, "left_out": found["left_out"]}


def print_object_lines(result: Record, objects: Sequence[Record]) -> Iterator[str]:
    """For a terminal; says of how many objects nothing is shown."""
    for shown in objects:
        yield ""
        yield f"{ObjectRef(**shown['ref'])}:"
        if shown["is_hidden"]:
            yield "  you may not get it"
        for hunk in shown["hunks"]:
            yield f"  @ {hunk['place']}".rstrip()
            yield from (f"  {line['kind']} {line['text']}" for line in hunk["lines"])
        if shown["left_out"]:
            yield f"  {and_more(shown['left_out'], 'lines')}; the report of a request shows them"
    if left := len(result["changed"]) - len(objects):
        yield ""
        yield f"and the lines of {number(left, 'more object')}"
