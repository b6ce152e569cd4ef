"""`list`, `show`, `history` and `diff`: requests from the cluster, and whole reports from the service after a login."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from provisioner.api_groups import OWN_GROUP
from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.cluster import (
    DEPLOYMENT,
    REQUEST,
    VERSION,
    Subject,
    cluster_of,
    is_open,
    list_kind,
    requests_of,
    reviews_of,
    standing_of,
    standings_of,
    subject_of,
    upgrades_of,
    why_not_installed,
)
from provisioner.cli.kubectl.login import login_for
from provisioner.cli.kubectl.service import Service, ServiceSilent, service_url, told_by
from provisioner.cli.kubectl.tables import history_table, request_names, request_text, requests_table
from provisioner.cli.kubectl.terminal import CLEARED, is_coloured, page, write
from provisioner.errors import TryLater
from provisioner.escaping import visible
from provisioner.review.base.record import action_from, from_record, plain
from provisioner.review.output.headline import in_own_words
from provisioner.review.output.terminal import as_text, differences_as_text
from provisioner.values import Action, ObjectRef, PlannedAction, Report

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


def request_uid(service: Service, subject: Subject) -> str:
    """The service's name for a request with exactly the digest that the cluster shows. Raises Usage where there is
    none, or it has moved on."""
    number = subject.name.rpartition("-")[2]
    digest = str(subject.status.get("subjectDigest") or "")
    found = [row for row in _request_rows(service, subject.deployment) if str(row["number"]) == number]
    if not found:
        raise Usage(f"{service.url} shows you no request {subject.name}: is it this cluster's, and may you read there?")
    same = [row for row in found if row["subject_digest"] == digest]
    if not digest:
        raise Usage(f"request {subject.name} has no report yet")
    if not same:
        raise Usage(f"request {subject.name} has changed: the cluster shows digest {digest}, the service another one")
    return str(same[0]["uid"])


def whole_report(service: Service, subject: Subject) -> WholeReport:
    """The report of exactly that digest; raises as `request_uid`."""
    uid = request_uid(service, subject)
    first = service.get(f"requests/{uid}/report")
    findings, actions = [*first["findings"]], [*first["plan"]["actions"]]
    part = first
    while not first["is_whole"]:
        held, totals = {"findings": len(findings), "actions": len(actions)}, part["parts"]
        wanted = {f"{name}_from": count for name, count in held.items() if count < totals[name]["total"]}
        if not wanted:
            break
        part = service.get(f"requests/{uid}/report", **wanted)
        more = [*part["findings"]] if "findings_from" in wanted else []
        planned = [*part["plan"]["actions"]] if "actions_from" in wanted else []
        if not more and not planned:
            raise Usage(f"{service.url} stopped in the middle of the report: run the command again")
        findings, actions = findings + more, actions + planned
    record = {**first, "findings": findings, "plan": {**first["plan"], "actions": actions}}
    return WholeReport(uid, record, bool(first["is_whole"]))


def planned_objects(service: Service, whole: WholeReport, wanted: str) -> Iterator[PlannedAction]:
    """What is planned for the objects that `wanted` names ("": all that change), with their states.

    Of a large report each object is asked for by itself. Raises Usage where none has this name.
    """
    actions = whole.record["plan"]["actions"]
    chosen = [(at, action) for at, action in enumerate(actions) if _is_named(action["ref"], wanted)]
    if wanted and not chosen:
        names = sorted({object_title(action["ref"]) for action in actions})
        raise Usage(f"the request plans nothing for {wanted}; it is about {', '.join(names[:20])}")
    for at, one in chosen:
        if Action(one["action"]) not in WITH_LINES and not wanted:
            continue
        yield action_from(one if whole.is_whole else service.get(f"requests/{whole.uid}/report/objects/{at}"))


def object_title(ref: Record) -> str:
    """`ConfigMap/shop/settings`, or `ClusterRole/reader`: what OBJECT is written like."""
    return "/".join(part for part in (ref["kind"], ref["namespace"], ref["name"]) if part)


def _is_named(ref: Record, wanted: str) -> bool:
    """By kind and name, with the namespace between them if need be; the name alone, too."""
    whole = object_title(ref).lower()
    short = f"{ref['kind']}/{ref['name']}".lower()
    return not wanted or wanted.lower() in (whole, short, ref["name"].lower())


def _request_rows(service: Service, deployment: str) -> Iterator[Record]:
    cursor = ""
    for _ in range(MOST_PAGES):
        page = service.get("requests", deployment=deployment, cursor=cursor)
        yield from page["results"]
        following = parse_qs(urlsplit(page["next"] or "").query).get("cursor")
        if not following:
            return
        cursor = following[0]


WATCH_SECONDS = 2.0
# The objects, and how they are shown at a moment.
Shown = Callable[[datetime], str]
Read = Callable[[], tuple[Any, Shown]]


def list_requests(options: argparse.Namespace) -> int:
    api = cluster_of(options)

    def read() -> tuple[Any, Shown]:
        found = [request for request in list_kind(api, REQUEST) if options.all or is_open(request)]
        if not found and api.resource_of(OWN_GROUP, VERSION, DEPLOYMENT) is None:
            raise Usage(why_not_installed(api))
        standings = standings_of(api) if options.output == "wide" else None
        if options.output == "name":
            return _as_list(found), lambda _: request_names(found)
        return _as_list(found), lambda now: requests_table(
            found, now=now, standings=standings, is_coloured=is_coloured(options)
        )

    return _print_or_watch(options, read)


def history(options: argparse.Namespace) -> int:
    api = cluster_of(options)

    def read() -> tuple[Any, Shown]:
        found = requests_of(api, options.name)
        text = (
            request_names(found) if options.output == "name" else history_table(found, is_coloured=is_coloured(options))
        )
        return _as_list(found), lambda _: text

    return _print_or_watch(options, read)


def show(options: argparse.Namespace) -> int:
    api = cluster_of(options)
    reports = Reports(options)

    def read() -> tuple[Any, Shown]:
        subject = subject_of(api, options.name)
        if options.report:
            whole = reports.needed(subject)
            return dict(whole.record), lambda _: _report_text(whole, options)
        if options.output != "text":
            return subject.request, lambda _: ""
        reviews, standing = reviews_of(api, subject.deployment), standing_of(api, subject)
        text = request_text(
            subject.request,
            reviews,
            standing=standing,
            upgrades=upgrades_of(api, subject.deployment),
            is_coloured=is_coloured(options),
        )
        text += reports.text(subject)
        return subject.request, lambda _: text

    return _print_or_watch(options, read)


def diff(options: argparse.Namespace) -> int:
    """0 where nothing differs, 1 where something does, as `kubectl diff`."""
    subject = subject_of(cluster_of(options), options.name)
    reports = Reports(options)
    whole = reports.needed(subject)
    service = reports.service(subject)
    with told_by(service):
        found = list(planned_objects(service, whole, options.object))
    records = [
        {"ref": str(planned.ref), "action": str(planned.action), "before": planned.before, "after": planned.after}
        for planned in found
    ]
    text = differences_as_text(found, colours=is_coloured(options), with_credentials=options.show_credentials)
    page(format_output(options, _as_list([plain(record) for record in records]), text))
    return 1 if text else 0


def objects_to_diff(options: argparse.Namespace) -> list[str]:
    """The objects of the request's plan, as `diff` takes them. Raises Usage where there is no login."""
    subject = subject_of(cluster_of(options), options.name)
    actions = Reports(options).needed(subject).record["plan"]["actions"]
    return sorted({object_title(action["ref"]) for action in actions})


class Reports:
    """Whole reports; each is asked for once, as long as the digest that it is of stays."""

    def __init__(self, options: argparse.Namespace):
        self._options = options
        self._known: dict[tuple[str, str], WholeReport] = {}

    def service(self, subject: Subject) -> Service:
        """Raises Usage where there is no login for the service that is meant."""
        url = service_url(self._options, subject.request)
        if not url:
            raise Usage("which service? Name it with --service https://HOST (see `kubectl pratique login --help`)")
        login = login_for(url)
        if login is None and url != service_url(self._options, {}):
            # Whoever may edit the object may write any address there: it is shown, and not proposed.
            raise Usage(
                f"the request names the service {url}, where you are not logged in. If that is the address you know as "
                "your Pratique, log in there with `kubectl pratique login --service`"
            )
        if login is None:
            raise Usage(f"you are not logged in there: kubectl pratique login --service {url}")
        return Service(url, login.token)

    def needed(self, subject: Subject) -> WholeReport:
        key = (subject.name, str(subject.status.get("subjectDigest") or ""))
        if key not in self._known:
            service = self.service(subject)
            try:
                with told_by(service):
                    self._known = {key: whole_report(service, subject)}
            except ServiceSilent as exc:
                if exc.status != 401:
                    raise
                raise Usage(f"{exc}. Log in again: kubectl pratique login --service {service.url}") from exc
        return self._known[key]

    def text(self, subject: Subject) -> str:
        """The report as text; where there is none for the caller one line that says how to get it."""
        if not subject.status.get("subjectDigest"):
            return ""
        try:
            return f"\n{_report_text(self.needed(subject), self._options)}"
        except Usage as exc:
            return f"\nThe whole report is not shown: {visible(str(exc))}\n"


def _report_text(whole: WholeReport, options: argparse.Namespace) -> str:
    text = as_text(whole.report, title="Report", colours=is_coloured(options), with_all=options.all)
    if not whole.is_whole:
        text += "\nThe report is large: what changes in containers is left out here. `diff` shows it.\n"
    if whole.hidden:
        text += f"\nObjects that you may not get, and whose containers are therefore not shown: {whole.hidden}\n"
    if accepted := "".join(_list_accepted(whole.record["findings"])):
        text += f"\nAccepted findings, which guards ignore:\n{accepted}"
    return text


def _list_accepted(findings: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each time that one of these findings is accepted."""
    for finding in findings:
        about = f" {ObjectRef(**finding['ref'])}" if finding["ref"] else ""
        for given in finding.get("accepted", ()):
            by = f"exception {given['exception']} ({given['by']})" if given["exception"] else given["by"]
            until = f" until {given['until']}" if given["until"] else ""
            yield visible(f"  {finding['rule']}{about}: by {by}{until}: {given['reason']}") + "\n"


def _as_list(found: list[Any]) -> dict[str, Any]:
    return {"kind": "List", "apiVersion": "v1", "items": found}


def _print_or_watch(options: argparse.Namespace, read: Read) -> int:
    """Once, or with --watch whenever it is another text than before; what does not answer then is asked again."""
    if not options.watch:
        objects, shown = read()
        page(format_output(options, objects, shown(datetime.now(UTC))))
        return 0
    last = said = ""
    began = datetime.now(UTC)
    while True:
        try:
            objects, shown = read()
        except TryLater as exc:
            words = visible(f"kubectl pratique: {exc}; asking again")
            if words != said:
                print(words, file=sys.stderr)
            said = words
        else:
            # An age that grows is nothing new.
            text = format_output(options, objects, shown(began))
            if text != last:
                now = format_output(options, objects, shown(datetime.now(UTC)))
                if options.output in ("text", "wide") and sys.stdout.isatty():
                    now = CLEARED + now  # a terminal shows the latest only; a file gets one after the other
                elif last:
                    now = {"yaml": "---\n", "json": ""}.get(options.output, "\n") + now
                write(now)
            last, said = text, ""
        time.sleep(WATCH_SECONDS)


def format_output(options: argparse.Namespace, objects: Any, text: str) -> str:
    if options.output == "json":
        return json.dumps(objects, indent=2, sort_keys=True) + "\n"
    return yaml.safe_dump(objects, sort_keys=True) if options.output == "yaml" else text
