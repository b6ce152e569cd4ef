"""What deciding costs on PostgreSQL where there is much of it, measured in a program of its own.

python -m tests.support.program tests.bench.deciding.figures judge|change|replay

Each prints a line of JSON with what it measured.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

import approvals.project.celery  # noqa: F401 - importing makes it the default app, whose queue takes the wakes
from approvals import access, audit, gate, services, tasks
from approvals.audit import MACHINE
from approvals.gate import reader
from approvals.gate.facts import GateFacts, value_of
from approvals.gate.rules import standings
from approvals.ledger.deciding import deciding_objects
from approvals.lifecycle import State
from approvals.locks import for_change
from approvals.models import BundleDeployment, Finding, Report, Request
from approvals.policy.document import PolicyDocument, PolicyEffect, Validation
from approvals.steps import evaluate
from tests.bench.installation import Size, deployments_of, reports_of, requests_of
from tests.support.approvals import reports, scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting

POLICIES, RULES, FINDINGS, OBJECTS = 1_000, 200, 200, 100
LOOKS = 15
OPEN = 10_000
REPLAYED = 1_000
# Together they are true of the request, and as policies are: most ask for little, each for something else.
EXPRESSION = 'actions["delete"] < {0} + 1000 && !("X-{0}" in new_rules) && (is_first || size(kinds) < {0} + 100)'
CONDITION = 'purpose == "deploy" && !name.startsWith("x{}-")'


@contextmanager
def small_world() -> Iterator[World]:
    """A cluster that answers at once: what is measured is our own part."""
    where, fake = world.cluster(), world.FakeKubernetes()
    people = {name: world.user(name, where, "platform") for name in ("ada", "bert", "rita")}
    for name in ("ada", "bert"):
        fake.allow(name, "approve")
        fake.allow(name, "get")
    fake.allow("rita", "impersonate")
    with access.using(fake):
        yield World(where, fake, **people)


def observe(env: World, kind: str, name: str, spec: dict[str, Any], generation: int = 1) -> None:
    meta = {"name": name, "uid": f"{kind}-{name}", "generation": generation, "resourceVersion": str(generation)}
    obj = {"metadata": meta, "spec": spec}
    deciding_objects.observe(cluster=env.cluster, kind=kind, obj=obj, is_listed=False)


def policy(number: int) -> dict[str, Any]:
    """One in a hundred holds; one in twenty is a grant, which is not asked to approve."""
    is_grant, holds = number % 20 == 1, number % 100 == 0
    expression = "unjudged < 0" if is_grant or holds else EXPRESSION.format(number)
    return {
        "effect": "Grant" if is_grant else "Guard",
        "matchConstraints": {"names": ["arm*", f"other-{number}"]},
        "matchConditions": [{"name": "deploys", "expression": CONDITION.format(number)}],
        "validations": [{"expression": expression, "message": f"policy {number} does not want it"}],
        "validationActions": ["Audit" if holds else "Approve" if is_grant else "Deny"],
    }


def rule(number: int) -> dict[str, Any]:
    parts = [
        {"name": "platform", "count": 2, "groups": ["platform", f"team-{number}"]},
        {"name": "other", "users": ["bert", f"user-{number}"], "groups": ["security"]},
    ]
    return {"selector": {"names": ["arm*"]}, "when": f"size(requesters) < {number} + 2", "require": parts}


def timed(work: Callable[[], Any], taken: list[float]) -> Any:
    began = time.perf_counter()
    found = work()
    taken.append(time.perf_counter() - began)
    return found


def judge() -> dict[str, Any]:
    """One look at a request without any, and one with POLICIES policies and RULES rules, all of which select it."""
    with small_world() as env:
        armada = reports.many(env, findings=FINDINGS, objects=OBJECTS)
        for person in (env.ada, env.bert):
            world.review(armada, acting(person), reason="read it")
        plain = look(armada)[0]
        for number in range(POLICIES):
            observe(env, "ApprovalPolicy", f"policy-{number}", policy(number))
        for number in range(RULES):
            observe(env, "ApprovalRule", f"rule-{number}", rule(number))
        whole, parts, facts = look(armada)
        said = [one.result for one in (*(value_of(facts.guards) or ()), *(value_of(facts.grants) or ()))]
        return {
            "plain": plain,
            "seconds": whole,
            "parts": parts,
            "said": {result: said.count(result) for result in sorted({*said})},
            "satisfied": sum(one.is_satisfied for one in standings(facts)),
        }


def look(request: Request) -> tuple[float, dict[str, float], GateFacts]:
    """The median of some looks, with its parts; the first one compiles what is new, and is left out."""
    taken: dict[str, list[float]] = {name: [] for name in ("read", "keep", "judge")}
    for _ in range(LOOKS + 1):
        row = Request.objects.select_related("deployment__cluster", "from_revision").get(pk=request.pk)
        facts = timed(lambda row=row: reader.deciding(row), taken["read"])
        timed(lambda row=row, facts=facts: gate.keep(row, facts), taken["keep"])
        timed(lambda facts=facts: (gate.judge(facts, timezone.now()), standings(facts)), taken["judge"])
    parts = {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}
    return sum(parts.values()), parts, facts


def change() -> dict[str, Any]:
    """A rule is changed while OPEN requests wait, half of them for a window, and people go on deciding on others."""
    with small_world() as env:
        template = scene.reported(scene.asked(env.cluster, "template", env.rita), scene.report_of("image-known-before"))
        size = Size(OPEN, OPEN, OPEN)
        deployments_of(template.deployment, size, dict.fromkeys(("prod-eu", "prod-us", "staging", "edge"), env.cluster))
        requests_of(template, size)
        reports_of(template.reports.get())
        later, rows = timezone.now() + timedelta(hours=1), Request.objects.filter(deployment__name__startswith="app-")
        keys = list(rows.order_by("pk").values_list("pk", flat=True))
        waiting, in_review = keys[: OPEN // 2], keys[OPEN // 2 :]
        held = {"state": State.APPROVED, "awaits": "window", "look_again_at": later}
        rows.filter(pk__in=waiting).update(**held, expires_at=later, mirrored_at=timezone.now())
        rows.filter(pk__in=in_review).update(state=State.IN_REVIEW, expires_at=later)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        observe(env, "ApprovalRule", "four-eyes", {"require": [{"name": "a", "count": 2}]})
        rows.update(look_again_at=later)

        decisions, stop = list[float](), threading.Event()
        people = threading.Thread(target=decide, args=(keys, decisions, stop))
        people.start()
        time.sleep(1)
        before, changes = max(decisions), list[float]()
        decisions.clear()
        with CaptureQueriesContext(connection) as queries:
            spec = {"require": [{"name": "a", "count": 3}]}
            timed(lambda: observe(env, "ApprovalRule", "four-eyes", spec, 2), changes)
        stop.set()
        people.join()
        due = deciding_objects.count_due(env.cluster)
        released = rows.filter(pk__in=waiting, look_again_at__lt=later).count()
        BundleDeployment.objects.update(looked_after_at=timezone.now())
        sweeps = list[float]()
        timed(tasks.sweep, sweeps)
        looks, body = list[float](), template.reports.get().body
        for pk in in_review[:20]:
            report = Report.objects.defer("body").get(request=pk)
            report.body = body  # encrypted for its own request
            report.save(update_fields=["body"])
            row = Request.objects.select_related("deployment__cluster", "content", "from_revision").get(pk=pk)
            timed(lambda row=row: evaluate.run(row, ""), looks)
        return {
            "seconds": changes[0],
            "queries": len(queries),
            "decision": [before, max(decisions)],
            "due": due,
            "released": released,
            "sweep": sweeps[0],
            "look": statistics.median(looks),
        }


def decide(keys: list[int], taken: list[float], stop: threading.Event) -> None:
    """What a decision writes: a row that is locked, and its audit."""
    at = 0
    while not stop.is_set():
        at = (at + 997) % len(keys)
        began = time.perf_counter()
        with transaction.atomic(durable=True):
            row = for_change(Request.objects.filter(pk=keys[at])).select_related("deployment__cluster").get()
            row.save(update_fields=["mirrored_at"])
            audit.record(verb="request.looked_at", actor=MACHINE, request=row, facts={})
        taken.append(time.perf_counter() - began)
    connection.close()


def replay() -> dict[str, Any]:
    with small_world() as env:
        template = reports.many(env, findings=FINDINGS, objects=OBJECTS, name="template")
        clusters = dict.fromkeys(("prod-eu", "prod-us", "staging", "edge"), env.cluster)
        size = Size(REPLAYED - 1, REPLAYED - 1, 0)
        deployments_of(template.deployment, size, clusters)
        requests_of(template, size)
        now = timezone.now()
        Request.objects.update(created_at=now)
        # Each is encrypted for its own request, so that it cannot be copied as it lies there.
        report, findings = template.reports.get(), list(template.reports.get().findings.all())
        body = report.body
        for request in Request.objects.exclude(pk=template.pk):
            report.pk, report.request, report.body = None, request, body
            report.save(force_insert=True)
            for finding in findings:
                finding.pk, finding.report = None, report
            Finding.objects.bulk_create(findings)
        expression = 'worst_new in ["safe", "notable"] && actions["delete"] == 0 && !("RB-01" in new_rules)'
        document = PolicyDocument("draft", PolicyEffect.GUARD, (Validation(expression),))
        taken = list[float]()
        found = timed(
            lambda: services.replay_policy(by=acting(env.ada), document=document, clusters=[env.cluster]), taken
        )
        return {"seconds": taken[0], "counts": found.counts, "left_out": found.left_out, "why": found.why_left_out}


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"judge": judge, "change": change, "replay": replay}[sys.argv[1]]()) + "\n")
