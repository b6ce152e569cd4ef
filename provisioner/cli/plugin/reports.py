"""The whole report of a request, as the service shows it to whoever has signed in: complete, however large it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from provisioner.cli.plugin.reading import Subject
from provisioner.cli.plugin.service import Service
from provisioner.cli.usage import Usage
from provisioner.review.base.record import action_from, from_record
from provisioner.review.output.headline import in_own_words
from provisioner.values import Action, PlannedAction, Report

MOST_PAGES = 20
WITH_LINES = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.RERUN, Action.ADOPT, Action.DELETE)
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WholeReport:
    """`record` is the service's, its parts put together. `is_whole`: its actions hold the objects before and after."""

    uid: str
    record: Record
    is_whole: bool

    @property
    def report(self) -> Report:
        return in_own_words(from_record(self.record))

    @property
    def hidden(self) -> int:
        """Objects whose containers the caller may not see."""
        return int(self.record.get("containersHidden") or 0)


def whole_report(service: Service, subject: Subject) -> WholeReport:
    """The report of exactly the digest that the cluster shows. Raises Usage where there is none, or it has moved on."""
    uid = str(_row(service, subject)["uid"])
    first = service.get(f"requests/{uid}/report")
    findings, actions = [*first["findings"]], [*first["plan"]["actions"]]
    part = first
    while not first["is_whole"] and (wanted := _next(part, len(findings), len(actions))):
        part = service.get(f"requests/{uid}/report", **wanted)
        more = [*part["findings"]] if "findings_from" in wanted else []
        planned = [*part["plan"]["actions"]] if "actions_from" in wanted else []
        if not more and not planned:
            raise Usage(f"{service.url} stopped in the middle of the report: run the command again")
        findings, actions = findings + more, actions + planned
    record = {**first, "findings": findings, "plan": {**first["plan"], "actions": actions}}
    return WholeReport(uid, record, bool(first["is_whole"]))


def _next(part: Record, findings: int, actions: int) -> dict[str, int]:
    """Where the next part starts, of each list that has more; {} at the end."""
    parts = part["parts"]
    wanted = {}
    if findings < parts["findings"]["total"]:
        wanted["findings_from"] = findings
    if actions < parts["actions"]["total"]:
        wanted["actions_from"] = actions
    return wanted


def planned_objects(service: Service, whole: WholeReport, wanted: str) -> Iterator[PlannedAction]:
    """What is planned for the objects that `wanted` names ("": all that change), with their states.

    Of a large report each object is asked for by itself. Raises Usage where none has this name.
    """
    actions = whole.record["plan"]["actions"]
    chosen = [(at, one) for at, one in enumerate(actions) if _is_meant(one["ref"], wanted)]
    if wanted and not chosen:
        names = sorted({title_of(one["ref"]) for one in actions})
        raise Usage(f"the request plans nothing for {wanted}; it is about {', '.join(names[:20])}")
    for at, one in chosen:
        if Action(one["action"]) not in WITH_LINES and not wanted:
            continue
        yield action_from(one if whole.is_whole else service.get(f"requests/{whole.uid}/report/objects/{at}"))


def title_of(ref: Record) -> str:
    """`ConfigMap/shop/settings`, or `ClusterRole/reader`: what OBJECT is written like."""
    return "/".join(part for part in (ref["kind"], ref["namespace"], ref["name"]) if part)


def _is_meant(ref: Record, wanted: str) -> bool:
    """By kind and name, with the namespace between them if need be; the name alone, too."""
    whole = title_of(ref).lower()
    short = f"{ref['kind']}/{ref['name']}".lower()
    return not wanted or wanted.lower() in (whole, short, ref["name"].lower())


def _row(service: Service, subject: Subject) -> Record:
    """The service's own record of the request: that of the same deployment, number and digest."""
    number = subject.name.rpartition("-")[2]
    digest = str(subject.status.get("subjectDigest") or "")
    found = [one for one in _rows(service, subject.deployment) if str(one["number"]) == number]
    if not found:
        raise Usage(f"{service.url} shows you no request {subject.name}: is it this cluster's, and may you read there?")
    same = [one for one in found if one["subject_digest"] == digest]
    if not digest:
        raise Usage(f"request {subject.name} has no report yet")
    if not same:
        raise Usage(f"request {subject.name} has changed: the cluster shows digest {digest}, the service another one")
    return dict(same[0])


def _rows(service: Service, deployment: str) -> Iterator[Record]:
    cursor = ""
    for _ in range(MOST_PAGES):
        page = service.get("requests", deployment=deployment, cursor=cursor)
        yield from page["results"]
        following = parse_qs(urlsplit(page["next"] or "").query).get("cursor")
        if not following:
            return
        cursor = following[0]
