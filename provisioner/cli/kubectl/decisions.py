"""Commands that write as the caller: `approve`, `deny`, `request-changes`, `pause`, `resume`, `rollback`, `rotate`."""

from __future__ import annotations

import argparse
import re
import secrets
import shlex
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from provisioner.api_groups import OWN_GROUP, PAGE_ANNOTATION
from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.cluster import (
    DEPLOYMENT,
    REVIEW,
    VERSION,
    Record,
    Subject,
    ask_identity,
    cluster_of,
    deployment_of,
    own_ref,
    requests_of,
    reviews_of,
    standing_of,
    subject_of,
)
from provisioner.cli.kubectl.tables import applied_revisions, counted_of, request_text
from provisioner.cli.kubectl.terminal import is_agreed, is_coloured, is_conversation
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden
from provisioner.escaping import visible
from provisioner.values import Identity

OK, NOT_COUNTED, UNKNOWN = 0, 1, 2
WORDS = {
    "Approve": "approve",
    "Deny": "deny",
    "RequestChanges": "request changes of",
    "BreakGlass": "BREAK GLASS for",
    "Accept": "accept the break-glass of",
    "Object": "object to the break-glass of",
}
# Given after a request went by a break-glass.
AFTERWARDS = ("Accept", "Object")
POLL_SECONDS = 0.5
MAX_NAME = 240
# What `rotate` takes: all values, those of a Secret, or that of one of its keys.
TARGET = re.compile(r"\*|[a-z0-9][-a-z0-9.]{0,252}(/[-._a-zA-Z0-9]{1,253})?", re.ASCII)


def decide(options: argparse.Namespace) -> int:
    """0 where the review counted, 1 where it did not, 2 where nobody has said so in time."""
    api = cluster_of(options)
    subject = subject_of(api, options.name)
    state = str(subject.status.get("state") or "preparing")
    waits = state == "approved" and options.decision == "BreakGlass"
    is_open = state == "in_review" or waits or options.decision in AFTERWARDS
    if not is_open or not subject.status.get("subjectDigest"):
        words = state.replace("_", " ")
        raise Usage(
            f"request {subject.name} is {words}: only requests in review can be decided, see `kubectl pratique list`"
        )
    shown = request_text(
        subject.request,
        reviews_of(api, subject.deployment),
        standing=standing_of(api, subject),
        is_coloured=is_coloured(options),
    )
    sys.stderr.write(shown)
    if options.decision == "Approve":
        # Pratique has said that such an approval will not count, so none is created. The requester, who may not approve
        # in the browser either, is not sent there.
        why_not = (subject.status.get("reportSummary") or {}).get("onlyInBrowser")
        if why_not:
            page = (subject.request["metadata"].get("annotations") or {}).get(PAGE_ANNOTATION)
            where = f"approve it at {page}" if page else "approve it in the browser"
            if (subject.request["spec"].get("requester") or {}).get("username") == ask_identity(api).username:
                where = f"you requested it, so someone else must {where}"
            raise Usage(
                f"nothing was created: request {subject.name} cannot be approved without seeing its report, because "
                f"{why_not}: {where}"
            )
    apply_at = _read_time(options.apply_at) if options.decision == "Approve" and options.apply_at else ""
    reason = options.reason or _asked_reason(options)
    if not is_agreed(options, f"{WORDS[options.decision]} {subject.name}, digest {subject.status['subjectDigest']}"):
        raise Usage("nothing was decided")
    if moved := _why_moved(api, subject):
        print(visible(moved), file=sys.stderr)
        return NOT_COUNTED
    spec: dict[str, Any] = {
        "requestRef": {"name": subject.name},
        "bundleDeploymentName": subject.deployment,
        "decision": options.decision,
        "subjectDigest": subject.status["subjectDigest"],
        "round": subject.status["round"],
        "acknowledges": list(options.acknowledge or ()),
        "reason": reason,
        **({"incident": options.incident} if options.incident else {}),
        **({"applyAt": apply_at} if apply_at else {}),
    }
    review = review_object(_review_name(subject), ask_identity(api), spec)
    counted = _wait_until_counted(api, _create_review(api, review), options.timeout)
    left = [str(action) for action in ((counted or {}).get("status") or {}).get("unacknowledged") or []]
    if not left:
        return _status_of(counted)
    if not _are_accepted(options, left):
        return NOT_COUNTED
    more = [*review["spec"]["acknowledges"], *left]
    again = {**review, "metadata": {"name": _review_name(subject)}, "spec": {**review["spec"], "acknowledges": more}}
    return _status_of(_wait_until_counted(api, _create_review(api, again), options.timeout))


def _read_time(text: str) -> str:
    """In UTC, as Kubernetes writes it; what names no zone is of this machine's."""
    try:
        at = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise Usage(f"--apply-at is {text!r}; expected a time such as 2026-12-05T03:00 or 2026-12-05T02:00Z") from exc
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def review_object(name: str, who: Identity, spec: Record) -> dict[str, Any]:
    reviewer = {"username": who.username, "groups": list(who.groups), **({"uid": who.uid} if who.uid else {})}
    meta = {"apiVersion": f"{OWN_GROUP}/{VERSION}", "kind": REVIEW, "metadata": {"name": name}}
    return {**meta, "spec": {**spec, "reviewer": reviewer}}


def _status_of(counted: Record | None) -> int:
    if counted is None:
        return UNKNOWN
    condition = counted_of(counted)
    return OK if condition and condition["status"] == "True" else NOT_COUNTED


def _are_accepted(options: argparse.Namespace, left: Sequence[str]) -> bool:
    """Ask, where somebody is there to answer; else say what to type."""
    if options.yes or not is_conversation():
        words = " ".join(shlex.join(["--acknowledge", action]) for action in left)
        print(f"To accept all of it, add: {visible(words)}", file=sys.stderr)
        return False
    sys.stderr.write("\nAn approval accepts all of this:\n")
    sys.stderr.write("".join(f"  {visible(action)}\n" for action in left))
    sys.stderr.write("Do you want to accept it, and approve? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Usage("nothing was approved")
    return True


def _why_moved(api: ClusterClient, shown: Subject) -> str:
    """Why what was shown is no longer what would be decided; "" where it still is."""
    now = subject_of(api, shown.name).status
    was = shown.status
    if now.get("subjectDigest") != was.get("subjectDigest") or now.get("round") != was.get("round"):
        return (
            f"kubectl pratique: nothing was decided, because request {shown.name} changed while you looked: it was "
            f"round {was.get('round')} with {was.get('subjectDigest')}, and now is round {now.get('round')} with "
            f"{now.get('subjectDigest')}. Run the command again to see what changed"
        )
    if now.get("state") != was.get("state"):
        words = str(now.get("state") or "preparing").replace("_", " ")
        return f"kubectl pratique: nothing was decided, because request {shown.name} is {words}"
    return ""


def _asked_reason(options: argparse.Namespace) -> str:
    if options.decision in ("Approve", "Accept"):
        return ""
    if is_conversation():
        sys.stderr.write("Reason: ")
        sys.stderr.flush()
        found = sys.stdin.readline().strip()
        if found or options.decision == "Deny":
            return found
    if options.decision == "RequestChanges":
        raise Usage("--reason is missing: say what has to change before this can be approved")
    if options.decision in ("BreakGlass", "Object"):
        raise Usage("--reason is missing: others will see it")
    return ""


def _review_name(subject: Subject) -> str:
    return f"{subject.name[:MAX_NAME]}-{secrets.token_hex(4)}"


def _create_review(api: ClusterClient, review: Record) -> str:
    try:
        return str(api.create(review, field_manager="kubectl-pratique")["metadata"]["name"])
    except Forbidden as exc:
        raise Usage(f"Kubernetes refused the review: {exc.server_words or exc}") from exc


def _wait_until_counted(api: ClusterClient, name: str, seconds: float) -> Record | None:
    """The review once Pratique has said whether it counted, which is printed; None where nobody has in time."""
    ends_at = time.monotonic() + seconds
    while True:
        review = api.get(own_ref(REVIEW, name))
        if review is None:
            raise Usage(f"review {name} was deleted before anybody said whether it counted")
        counted = counted_of(review)
        if counted:
            is_counted = counted["status"] == "True"
            words = "counted" if is_counted else f"not counted ({counted['reason']})"
            print(f"review {name} {words}: {visible(str(counted['message']), keep_newlines=True)}")
            return review
        if time.monotonic() >= ends_at:
            print(f"review {name} is created and not counted yet: kubectl get bundledeploymentreviews {name}")
            return None
        time.sleep(POLL_SECONDS)


MANAGER = "kubectl-pratique"
PAUSE_REASON, ROLLBACK_TO, ROTATE = (f"{OWN_GROUP}/{name}" for name in ("pause-reason", "rollback-to", "rotate"))
CHANGE_REASON, CHANGE_TICKET = (f"{OWN_GROUP}/change-{name}" for name in ("reason", "ticket"))


def pause(options: argparse.Namespace) -> int:
    _write_wish(options, {"spec": {"paused": True}}, {PAUSE_REASON: options.reason or None})
    print(f"bundledeployment {options.name} is paused: approved requests wait until somebody resumes it")
    return 0


def resume(options: argparse.Namespace) -> int:
    _write_wish(options, {"spec": {"paused": False}}, {PAUSE_REASON: None})
    print(f"bundledeployment {options.name} is resumed")
    return 0


def rollback(options: argparse.Namespace) -> int:
    """What follows the slash means nothing: the same revision can be asked for twice."""
    try:
        known = applied_revisions(requests_of(cluster_of(options), options.name))
    except Forbidden:
        # Whoever may not list requests asks all the same: the service looks again, and says so in the conditions.
        known = [options.revision]
    if options.revision not in known:
        there = f"its revisions are {', '.join(map(str, known))}" if known else "nothing was ever applied"
        raise Usage(
            f"{options.name} has no revision {options.revision} to go back to: {there}. "
            f"See `kubectl pratique history {options.name}`"
        )
    _write_wish(options, {}, {ROLLBACK_TO: f"{options.revision}/{secrets.token_hex(4)}", **_change_words(options)})
    print(
        f"asked for revision {options.revision} of {options.name}: the rollback is a request and needs approval: "
        f"kubectl pratique history {options.name}"
    )
    return 0


def rotate(options: argparse.Namespace) -> int:
    """What follows the @ means nothing: the same values can be asked for twice."""
    if not TARGET.fullmatch(options.target):
        raise Usage(f"the values to replace are {options.target[:100]!r}; expected SECRET, SECRET/KEY or *")
    sys.stderr.write(
        "Pods that read a Secret when they start use the old value until they are restarted. Data that was set up with "
        "a password, such as a database, still expects the old one.\n"
    )
    named = "all values that the chart made up" if options.target == "*" else options.target
    if not is_agreed(options, f"request new values for {named} of {options.name}"):
        raise Usage("nothing was requested")
    _write_wish(options, {}, {ROTATE: f"{options.target}@{secrets.token_hex(4)}", **_change_words(options)})
    print(
        f"asked for new values for {named} of {options.name}: the rotation is a request and needs approval: "
        f"kubectl pratique history {options.name}. If none is made, kubectl describe bd {options.name} says why"
    )
    return 0


def _change_words(options: argparse.Namespace) -> dict[str, str | None]:
    """What follows the @ means nothing: the same ticket can be written for two changes."""
    ticket = f"{options.ticket}@{secrets.token_hex(4)}" if options.ticket else None
    return {CHANGE_REASON: options.reason or None, CHANGE_TICKET: ticket}


def _write_wish(options: argparse.Namespace, body: dict[str, Any], annotations: dict[str, str | None]) -> None:
    """To exactly the deployment that is there now: its uid is the precondition."""
    api: ClusterClient = cluster_of(options)
    live = deployment_of(api, options.name)["metadata"]
    about = {"name": options.name, "uid": live["uid"]}
    part = {"apiVersion": f"{OWN_GROUP}/{VERSION}", "kind": DEPLOYMENT}
    # A reason that stands there from an earlier change counts again only if it is written anew.
    reason = annotations.get(CHANGE_REASON)
    if reason and (live.get("annotations") or {}).get(CHANGE_REASON) == reason:
        api.merge({**part, "metadata": {**about, "annotations": {CHANGE_REASON: None}}}, field_manager=MANAGER)
    api.merge({**part, "metadata": {**about, "annotations": annotations}, **body}, field_manager=MANAGER)
