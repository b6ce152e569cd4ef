"""A large installation, as rows: 100,000 requests of 2,000 deployments on four clusters, 500 of them in review.

Rows are multiplied inside PostgreSQL: one of each kind is made by the models, and copied with some columns drawn anew.

python -m tests.support.program tests.bench.installation KUBECONFIG [REQUESTS DEPLOYMENTS IN_REVIEW]
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from approvals.audit import entry_hash
from approvals.models import (
    AuditEntry,
    BundleDeployment,
    Cluster,
    Finding,
    InventoryItem,
    KubernetesIdentity,
    Policy,
    PolicyEvaluation,
    Report,
    Request,
    RequestAsker,
    RequestRule,
    RequestText,
    Review,
    Revision,
)
from approvals.services.sessions import SIGN_IN
from tests.support.approvals import reports, scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.reports import many
from tests.support.approvals.world import session_of
from tests.support.provisioner.example_crd import crd

CLUSTERS = ("prod-eu", "prod-us", "staging", "edge")
# Of every hundred deployments so many are on the last cluster.
ON_EDGE = 2
FINDINGS_EACH = 5
POLICIES = 3
ASKERS = 300
# May approve everything; some by name; nothing; and reads one small cluster only.
PEOPLE = {"ada": CLUSTERS, "carla": CLUSTERS, "dora": CLUSTERS, "edgar": ("edge",)}
BY_NAME = 40
WORST = ("critical", "breaking", "unknown", "dangerous", "notable", "safe")
SECTIONS = ("objects", "permissions", "crds", "pods")
# A CRD as large as the largest of strimzi: groups of fields, fields in each.
GROUPS, FIELDS = 60, 30
WEIGHT = f"7 - array_position(ARRAY{list(WORST)}, {{}}::text)"
LISTED = f"""
UPDATE approvals_request r SET weight = {WEIGHT.format("p.worst")} FROM approvals_report p
WHERE p.request_id = r.id AND p.round = r.round;
INSERT INTO approvals_requesttext (request_id, text)
SELECT r.id, left(lower(concat_ws(E'\\n', d.name, (
    SELECT string_agg(line, E'\\n') FROM jsonb_array_elements_text(p.headline) line
))), 400)
FROM approvals_request r JOIN approvals_bundledeployment d ON d.id = r.deployment_id
LEFT JOIN approvals_report p ON p.request_id = r.id AND p.round = r.round;
INSERT INTO approvals_requestasker (request_id, username)
SELECT DISTINCT r.id, person ->> 'username' FROM approvals_request r, jsonb_array_elements(r.requesters) person
WHERE person ->> 'username' <> '';
INSERT INTO approvals_requestrule (request_id, rule, weight)
SELECT r.id, f.rule, max({WEIGHT.format("f.severity")})
FROM approvals_finding f JOIN approvals_report p ON p.id = f.report_id
JOIN approvals_request r ON r.id = p.request_id AND r.round = p.round
WHERE f.object NOT LIKE 'Secret %' GROUP BY r.id, f.rule;
"""
ENDS = ("applied", "applied", "applied", "denied", "failed", "superseded", "expired", "withdrawn")


@dataclass(frozen=True)
class Size:
    requests: int = 100_000
    deployments: int = 2_000
    in_review: int = 500

    @property
    def each(self) -> int:
        """How many requests a deployment has had."""
        return self.requests // self.deployments


def one_of(words: tuple[str, ...], number: str) -> str:
    """SQL: a word by a number that is drawn from `number`, the same each time."""
    listed = ", ".join(f"'{word}'" for word in words)
    return f"(ARRAY[{listed}])[1 + ({drawn(number)} % {len(words)})]"


def drawn(number: str, salt: int = 0) -> str:
    return f"(hashint8({number}::bigint + {salt})::bigint & 2147483647)"


def multiply(template: Model, source: str, **columns: str) -> None:
    """Insert a copy of the row for each row of `source`, a SELECT whose rows are called n, with these columns in SQL."""
    meta = type(template)._meta
    kept = [field.column for field in meta.concrete_fields if not field.primary_key or field.column in columns]
    values = ", ".join(columns.get(column, f't."{column}"') for column in kept)
    names = ", ".join(f'"{column}"' for column in kept)
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{meta.db_table}" ({names}) SELECT {values}'
            f' FROM "{meta.db_table}" t, ({source}) n WHERE t."{meta.pk.column}" = {template.pk}'
        )


def series(count: int) -> str:
    return f"SELECT g AS n FROM generate_series(1, {count}) g"


def rights() -> list[dict[str, Any]]:
    """What lets the people do that: ClusterRoles and their bindings."""
    group, requests = ["core.rukpak.io"], ["bundledeploymentrequests"]
    approve = {"apiGroups": group, "resources": ["bundledeployments"], "verbs": ["approve"]}
    names = [f"app-{number:05}" for number in range(1, BY_NAME * 10, 10)]
    return [
        *role("size-read", {"apiGroups": group, "resources": requests, "verbs": ["get"]}, *PEOPLE),
        *role("size-approve", approve, "ada"),
        *role("size-approve-some", {**approve, "resourceNames": names}, "carla"),
        *role("size-see-crds", {"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["get"]}, "ada"),
    ]


def role(name: str, rule: dict[str, Any], *people: str) -> list[dict[str, Any]]:
    group = "rbac.authorization.k8s.io"
    to = [{"kind": "User", "name": person, "apiGroup": group} for person in people]
    ref = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    about = {"apiVersion": f"{group}/v1", "metadata": {"name": name}}
    return [
        {**about, "kind": "ClusterRole", "rules": [rule]},
        {**about, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": to},
    ]


def clusters_of(kubeconfig: str) -> dict[str, Cluster]:
    now = timezone.now()
    return {
        name: Cluster.objects.create(name=name, uid=name, kubeconfig=kubeconfig, created_at=now) for name in CLUSTERS
    }


def people_of(clusters: dict[str, Cluster]) -> dict[str, User]:
    return {name: person(name, [clusters[where] for where in places]) for name, places in PEOPLE.items()}


def person(name: str, clusters: list[Cluster]) -> User:
    made = User.objects.create_user(name)
    for cluster in clusters:
        KubernetesIdentity.objects.create(
            user=made, cluster=cluster, authenticator="mapped", username=name, groups=[], groups_seen_at=timezone.now()
        )
    return made


def session(user: User) -> str:
    """The key of a browser's session in which this person is signed in."""
    kept = SessionStore()
    kept["_auth_user_id"], kept["_auth_user_backend"] = str(user.pk), "django.contrib.auth.backends.ModelBackend"
    kept["_auth_user_hash"], kept[SIGN_IN] = user.get_session_auth_hash(), session_of(user).pk
    kept.save()
    return str(kept.session_key)


def deployments_of(first: BundleDeployment, size: Size, clusters: dict[str, Cluster]) -> None:
    keys = ", ".join(str(clusters[name].pk) for name in CLUSTERS[:-1])
    where = f"CASE WHEN n % 100 < {ON_EDGE} THEN {clusters[CLUSTERS[-1]].pk} ELSE (ARRAY[{keys}])[1 + n % 3] END"
    multiply(
        first,
        series(size.deployments),
        name="'app-' || lpad(n::text, 5, '0')",
        uid="gen_random_uuid()::text",
        cluster_id=where,
        health="CASE WHEN n % 9 = 0 THEN 'InProgress' ELSE 'Current' END",
    )


def requests_of(first: Request, size: Size) -> None:
    """The last one of a deployment may be open; so many of these are in review, as many again on their way."""
    each = (
        "SELECT row_number() OVER () AS d, d.id AS deployment, d.cluster_id AS cluster FROM approvals_bundledeployment d"
        " WHERE d.name LIKE 'app-%' ORDER BY d.id"
    )
    numbered = (
        f"SELECT (k - 1) * {size.deployments} + d AS n, k, d, deployment, cluster"
        f" FROM generate_series(1, {size.each}) k, ({each}) e ORDER BY 1"
    )
    on_its_way = "(ARRAY['preparing', 'approved', 'applying', 'stale'])[1 + d % 4]"
    is_last, is_open = f"k = {size.each}", f"k = {size.each} AND d <= {2 * size.in_review}"
    state = (
        f"CASE WHEN {is_last} AND d <= {size.in_review} THEN 'in_review' WHEN {is_open} THEN {on_its_way}"
        f" ELSE {one_of(ENDS, 'n')} END"
    )
    asker = f"'asker-' || ({drawn('n', 7)} % {ASKERS})"
    at = f"now() - ({size.requests} - n) * interval '5 minutes'"
    multiply(
        first,
        numbered,
        uid="gen_random_uuid()",
        deployment_id="deployment",
        number="k",
        state=state,
        cluster_id="cluster",
        purpose="CASE WHEN n % 97 = 0 THEN 'delete' ELSE 'deploy' END",
        requesters=f"jsonb_build_array(jsonb_build_object('username', {asker}, 'uid', '', 'groups', '[]'::jsonb,"
        " 'groups_at', '', 'via', 'kubectl', 'user_id', NULL, 'issuer', '', 'subject', ''))",
        problem=f"CASE WHEN {state} = 'failed' THEN 'the registry did not answer' ELSE '' END",
        subject_digest="'sha256:' || n",
        created_at=at,
        changed_at=at,
        settled_at=f"CASE WHEN {is_open} THEN NULL ELSE {at} END",
        expires_at=f"{at} + interval '3 days'",
        mirrored_at=at,
        look_again_at="now() + interval '1 day'",
    )


OF_REQUESTS = "SELECT r.id AS n, r.* FROM approvals_request r JOIN approvals_bundledeployment d ON d.id = r.deployment_id WHERE d.name LIKE 'app-%'"


def reports_of(first: Report) -> None:
    """Of all but those that are being prepared; the words name one of some hundred kinds of objects."""
    headline = (
        f"jsonb_build_array('removes ' || {one_of(('v1beta2', 'v1alpha1', 'v2'), 'n')} || ' of kafka-'"
        f" || ({drawn('n', 3)} % 500) || ', with ' || ({drawn('n', 5)} % 90) || ' stored objects',"
        " '14 objects change, 2 are new')"
    )
    multiply(
        first,
        f"{OF_REQUESTS} AND r.state <> 'preparing'",
        request_id="n.id",
        round="n.round",
        worst=one_of(WORST, "n"),
        headline=headline,
        computed_at="n.created_at",
    )
    source = f"SELECT p.id AS n, p.worst, k FROM approvals_report p, generate_series(0, {FINDINGS_EACH - 1}) k"
    one = Finding.objects.create(
        report=first, position=0, rule="OB-01", section="objects", severity="safe", message="one", fingerprint="f"
    )
    multiply(
        one,
        f"{source} WHERE p.id <> {first.pk}",
        report_id="n.n",
        position="k",
        severity=f"CASE WHEN k = 0 THEN n.worst ELSE {one_of(WORST, 'n.n * 7 + k')} END",
        rule=f"{one_of(('OB', 'RB', 'CRD', 'PD', 'IM'), 'n.n + k')} || '-' || lpad(({drawn('n.n * 3 + k')} % 20)::text, 2, '0')",
        section=one_of(SECTIONS, "n.n + k"),
        message="'it changes what object ' || n.n || ' does'",
    )
    one.delete()


def listed() -> None:
    """What lists find the requests by, worked out from the rows; approvals/ledger/pivots/requests.py keeps it one by one."""
    for model in (RequestText, RequestRule, RequestAsker):
        model.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(LISTED)


def reviews_of(first: Review) -> None:
    multiply(
        first,
        f"{OF_REQUESTS} AND r.state IN ('applied', 'denied', 'applying', 'approved')",
        request_id="n.id",
        decision="CASE WHEN n.state = 'denied' THEN 'Deny' ELSE 'Approve' END",
        subject_digest="n.subject_digest",
        given_at="n.created_at",
    )


def revisions_of(first: Revision, size: Size) -> None:
    """Of what was applied; the last one of each deployment runs."""
    multiply(
        first,
        f"{OF_REQUESTS} AND r.state = 'applied'",
        deployment_id="n.deployment_id",
        number="n.number",
        request_id="n.id",
        state="'replaced'",
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE approvals_revision v SET state = 'active' FROM (SELECT max(id) AS id FROM approvals_revision"
            " GROUP BY deployment_id) l WHERE l.id = v.id"
        )
        cursor.execute(
            "UPDATE approvals_bundledeployment d SET active_revision_id = v.id FROM approvals_revision v"
            " WHERE v.deployment_id = d.id AND v.state = 'active'"
        )


def audit_of() -> None:
    """The chain of it all, about four entries a request, each with the hash of the one before."""
    columns_read = ("uid", "created_at", "deployment__name", "deployment__uid", "deployment__cluster__name")
    # Whole before the copying starts, during which the connection can read nothing.
    rows = list(Request.objects.order_by("pk").values_list(*columns_read, "requesters", "state"))
    verbs = (("request.made", "kubectl"), ("request.prepared", "machine"), ("request.approve", "browser"), ("", ""))
    last = AuditEntry.objects.order_by("-number").first()
    previous, number = (last.hash, last.number) if last else ("", 0)
    columns = [field.column for field in AuditEntry._meta.concrete_fields if not field.primary_key]
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY approvals_auditentry ({', '.join(columns)}) FROM STDIN") as out,
    ):
        for uid, at, name, deployment, cluster, askers, state in rows:
            for verb, via in verbs:
                number += 1
                actor = "pratique" if via == "machine" else askers[0]["username"] if verb == "request.made" else "ada"
                entry = AuditEntry(
                    number=number, at=at, verb=verb or f"request.{state}", actor=actor, via=via or "machine",
                    cluster=cluster, deployment=name, deployment_uid=deployment, request_uid=str(uid),
                    facts={"from": "preparing", "to": state, "round": 1}, previous_hash=previous,
                )  # fmt: skip
                previous = entry.hash = entry_hash(entry)
                told = {**{column: getattr(entry, column) for column in columns}, "facts": json.dumps(entry.facts)}
                out.write_row([told[column] for column in columns])


def policies_of(clusters: dict[str, Cluster], by: User) -> None:
    first = PolicyEvaluation.objects.first()
    for number in range(POLICIES):
        made = scene.policy(clusters["prod-eu"], by, f"policy-{number}")
        made.names = []
        made.save()
        source = f"{OF_REQUESTS} AND d.cluster_id = {clusters['prod-eu'].pk} AND r.state <> 'preparing'"
        if first is None:
            scene.said(made, Request.objects.order_by("pk")[0])
            first = PolicyEvaluation.objects.get()
            first.delete()
            first = PolicyEvaluation.objects.create(
                request=Request.objects.order_by("pk")[0], round=99, policy=made, policy_version=1,
                result="silent", words="worst_new is breaking", at=timezone.now(),
            )  # fmt: skip
        multiply(
            first, source, request_id="n.id", round="n.round", policy_id=str(made.pk), at="n.created_at",
            result=one_of(("passes", "holds", "silent"), "n.id"),
        )  # fmt: skip
    if first is not None:
        first.delete()


def large_crd(words: str, *versions: str) -> dict[str, Any]:
    """More than 5,000 lines for each version; every tenth field says these words."""
    groups = {}
    for group in range(GROUPS):
        fields = {
            f"field{at:02}": {"type": "string", "description": words if at % 10 == 0 else "What it is for."}
            for at in range(FIELDS)
        }
        groups[f"group{group:02}"] = {"type": "object", "properties": fields}
    return crd(groups, *versions)


def inventory_of(deployment: BundleDeployment, count: int) -> None:
    first = InventoryItem.objects.filter(deployment=deployment).first()
    assert first is not None
    multiply(
        first, series(count), name="'object-' || n", health="CASE WHEN n % 7 = 0 THEN 'InProgress' ELSE 'Current' END"
    )


@transaction.atomic
def make(kubeconfig: str, size: Size) -> dict[str, Any]:
    """All rows; answers with the session of each person, and the address of a request with a large report."""
    clusters = clusters_of(kubeconfig)
    people = people_of(clusters)
    rita = person("rita", list(clusters.values())[:1])
    here = World(clusters["prod-eu"], world.FakeKubernetes(), people["ada"], people["dora"], rita)
    large = many(here, findings=1_000, objects=500, name="large")
    schemas = reports.drawn(here, [large_crd("Before.", "v1", "v1beta2")], [large_crd("After.", "v1")], name="schemas")
    running = scene.running(scene.asked(here.cluster, "running", rita))
    inventory_of(running, 5_000)
    template = scene.reported(scene.asked(here.cluster, "template", rita), scene.report_of("image-known-before"))
    deployments_of(template.deployment, size, clusters)
    requests_of(template, size)
    reports_of(template.reports.get())
    review = Review.objects.create(
        request=running.requests.get(), round=1, decision="Approve", subject_digest="x", channel="browser",
        voter=f"user:{people['ada'].pk}", user=people["ada"], username="ada", given_at=timezone.now(),
    )  # fmt: skip
    reviews_of(review)
    assert running.active_revision is not None
    revisions_of(running.active_revision, size)
    listed()
    policies_of(clusters, people["ada"])
    Policy.objects.update(mode="dry-run")
    audit_of()
    return {
        "sessions": {name: session(user) for name, user in people.items()},
        "large": f"/requests/{large.uid}",
        "crd": f"/requests/{schemas.uid}/changes/0",
        "running": f"/deployments/prod-eu/{running.name}",
    }


def main(kubeconfig: Path, *numbers: str) -> None:
    size = Size(*map(int, numbers)) if numbers else Size()
    print(json.dumps(make(kubeconfig.read_text(), size)))
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
