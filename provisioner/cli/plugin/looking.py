"""`list`, `show`, `history` and `diff`: what is asked of the cluster, and of the service by whoever has logged in."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import yaml

from provisioner.api_groups import OWN_GROUP
from provisioner.cli.plugin.reading import (
    DEPLOYMENT,
    REQUEST,
    VERSION,
    Subject,
    all_of,
    cluster_of,
    is_open,
    requests_of,
    reviews_of,
    standing_of,
    standings_of,
    subject_of,
    upgrades_of,
    why_not_installed,
)
from provisioner.cli.plugin.reports import WholeReport, planned_objects, title_of, whole_report
from provisioner.cli.plugin.service import Service, ServiceSilent, service_url, told_by
from provisioner.cli.plugin.showing import of_history, of_list, of_names, of_request
from provisioner.cli.plugin.signing_in import login_for
from provisioner.cli.plugin.terminal import CLEARED, is_coloured, page, write
from provisioner.cli.usage import Usage
from provisioner.errors import TryLater
from provisioner.escaping import visible
from provisioner.review.base.record import plain
from provisioner.review.output.terminal import as_text, differences_as_text

WATCH_SECONDS = 2.0
# The objects, and how they are shown at a moment.
Shown = Callable[[datetime], str]
Read = Callable[[], tuple[Any, Shown]]


def list_requests(options: argparse.Namespace) -> int:
    api = cluster_of(options)

    def read() -> tuple[Any, Shown]:
        found = [one for one in all_of(api, REQUEST) if options.all or is_open(one)]
        if not found and api.resource_of(OWN_GROUP, VERSION, DEPLOYMENT) is None:
            raise Usage(why_not_installed(api))
        standings = standings_of(api) if options.output == "wide" else None
        if options.output == "name":
            return _as_list(found), lambda _: of_names(found)
        return _as_list(found), lambda now: of_list(
            found, now=now, standings=standings, is_coloured=is_coloured(options)
        )

    return _print(options, read)


def history(options: argparse.Namespace) -> int:
    api = cluster_of(options)

    def read() -> tuple[Any, Shown]:
        found = requests_of(api, options.name)
        text = of_names(found) if options.output == "name" else of_history(found, is_coloured=is_coloured(options))
        return _as_list(found), lambda _: text

    return _print(options, read)


def show(options: argparse.Namespace) -> int:
    api = cluster_of(options)
    reports = _Reports(options)

    def read() -> tuple[Any, Shown]:
        subject = subject_of(api, options.name)
        if options.report:
            whole = reports.needed(subject)
            return dict(whole.record), lambda _: _report_text(whole, options)
        if options.output != "text":
            return subject.request, lambda _: ""
        reviews, standing = reviews_of(api, subject.deployment), standing_of(api, subject)
        text = of_request(
            subject.request,
            reviews,
            standing=standing,
            upgrades=upgrades_of(api, subject.deployment),
            is_coloured=is_coloured(options),
        )
        text += reports.text(subject)
        return subject.request, lambda _: text

    return _print(options, read)


def diff(options: argparse.Namespace) -> int:
    """0 where nothing differs, 1 where something does, as `kubectl diff`."""
    subject = subject_of(cluster_of(options), options.name)
    reports = _Reports(options)
    whole = reports.needed(subject)
    service = reports.service(subject)
    with told_by(service):
        found = list(planned_objects(service, whole, options.object))
    records = [
        {"ref": str(one.ref), "action": str(one.action), "before": one.before, "after": one.after} for one in found
    ]
    text = differences_as_text(found, colours=is_coloured(options), with_credentials=options.show_credentials)
    page(_formed(options, _as_list([plain(one) for one in records]), text))
    return 1 if text else 0


def objects_to_diff(options: argparse.Namespace) -> list[str]:
    """The objects of the request's plan, as `diff` takes them. Raises Usage where there is no login."""
    subject = subject_of(cluster_of(options), options.name)
    actions = _Reports(options).needed(subject).record["plan"]["actions"]
    return sorted({title_of(one["ref"]) for one in actions})


class _Reports:
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
            self._known = {key: self._asked(subject)}
        return self._known[key]

    def _asked(self, subject: Subject) -> WholeReport:
        service = self.service(subject)
        try:
            with told_by(service):
                return whole_report(service, subject)
        except ServiceSilent as exc:
            if exc.status != 401:
                raise
            raise Usage(f"{exc}. Log in again: kubectl pratique login --service {service.url}") from exc

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
    return text


def _as_list(found: list[Any]) -> dict[str, Any]:
    return {"kind": "List", "apiVersion": "v1", "items": found}


def _print(options: argparse.Namespace, read: Read) -> int:
    """Once, or with --watch whenever it is another text than before; what does not answer then is asked again."""
    if not options.watch:
        objects, shown = read()
        page(_formed(options, objects, shown(datetime.now(UTC))))
        return 0
    last = said = ""
    began = datetime.now(UTC)
    while True:
        try:
            objects, shown = read()
        except TryLater as exc:
            said = _say_once(exc, said)
        else:
            # An age that grows is nothing new.
            text = _formed(options, objects, shown(began))
            if text != last:
                now = _formed(options, objects, shown(datetime.now(UTC)))
                write(_apart(options, now, is_first=not last))
            last, said = text, ""
        time.sleep(WATCH_SECONDS)


def _say_once(exc: TryLater, said: str) -> str:
    words = visible(f"kubectl pratique: {exc}; asking again")
    if words != said:
        print(words, file=sys.stderr)
    return words


def _apart(options: argparse.Namespace, text: str, *, is_first: bool) -> str:
    """A terminal shows the latest only; a file gets one after the other."""
    if options.output in ("text", "wide") and sys.stdout.isatty():
        return CLEARED + text
    between = {"yaml": "---\n", "json": ""}.get(options.output, "\n")
    return text if is_first else between + text


def _formed(options: argparse.Namespace, objects: Any, text: str) -> str:
    if options.output == "json":
        return json.dumps(objects, indent=2, sort_keys=True) + "\n"
    return yaml.safe_dump(objects, sort_keys=True) if options.output == "yaml" else text
