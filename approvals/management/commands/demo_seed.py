"""`pratique-manage demo_seed`: fill the demo's cluster and database. Running it again changes nothing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from approvals import access, services
from approvals.access import Caller, Credential
from approvals.audit import Actor
from approvals.errors import Refused
from approvals.lifecycle import SETTLED, State
from approvals.management.demo.seeds import (
    BERTHS,
    CHANGES,
    CLUSTER,
    DEPLOYMENTS,
    NAMESPACE,
    PEOPLE,
    POLICY,
    SERVICE,
    SERVICE_NAMESPACE,
    bundle_spec,
    cluster_objects,
    with_token,
)
from approvals.models import BundleDeployment, Cluster, Policy, Request
from provisioner.api_groups import ADMISSION_GROUP, OWN_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import ObjectRef

OPERATOR = Actor("demo", "shell")
PATIENCE_SECONDS = 300
# Each start of the demo gives the service a new one.
TOKEN_SECONDS = 30 * 24 * 3600
SEEDER = "pratique-demo"


class Command(BaseCommand):
    help = "Fill the demo: people, rights, bundles, two running deployments and three open requests."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--kubeconfig", type=Path, required=True)
        parser.add_argument("--bundles", required=True, help="URL of the demo's archives")

    def handle(self, *args: Any, **options: Any) -> None:
        kubeconfig = options["kubeconfig"].read_text()
        api = Api.connect(kubeconfig, timeout_seconds=20, trusted=True)
        prepare_cluster(api)
        own = kubeconfig_of_service(api, kubeconfig)
        cluster = _register_cluster(own)
        people = {name: create_person(name, cluster) for name in PEOPLE}
        for name, version in DEPLOYMENTS.items():
            if not BundleDeployment.objects.filter(cluster=cluster, name=name, gone_at__isnull=True).exists():
                self._install_first(people, cluster, name, bundle_spec(options["bundles"], name, version))
        for obj in BERTHS:
            if api.get(ObjectRef.of(obj)) is None:
                api.create(obj)
        self._request_changes(people, cluster, options["bundles"])
        if not Policy.objects.filter(name=POLICY["name"], uid="").exists():
            services.save_policy(by=acting(people["ada"]), cluster=cluster, via="shell", **POLICY)

    def _install_first(self, people: dict[str, User], cluster: Cluster, name: str, wish: dict[str, Any]) -> None:
        """A deployment that runs already: asked for by rita, approved by ada."""
        made = services.create_deployment(
            by=acting(people["rita"]), cluster=cluster, name=name, spec=wish, labels={"team": "harbour"}, via="shell"
        )
        request = wait_for(made, State.IN_REVIEW)
        services.review(
            by=acting(people["ada"]),
            request_id=request.pk,
            decision="Approve",
            subject_digest=request.subject_digest,
            reason="First installation. I read every object.",
            channel="browser",
        )
        wait_for(made, State.APPLIED)

    def _request_changes(self, people: dict[str, User], cluster: Cluster, bundles: str) -> None:
        """The three requests that wait."""
        for name, version in CHANGES.items():
            known = BundleDeployment.objects.filter(cluster=cluster, name=name, gone_at__isnull=True).first()
            wish = bundle_spec(bundles, name, version)
            if known is None:
                services.create_deployment(
                    by=acting(people["rita"]),
                    cluster=cluster,
                    name=name,
                    spec=wish,
                    labels={"team": "harbour"},
                    via="shell",
                )
            elif known.requests.count() == 1:
                services.change_deployment(
                    by=acting(people["rita"]), deployment=known, spec=wish, generation=known.generation, via="shell"
                )
        for name in CHANGES:
            deployment = BundleDeployment.objects.get(cluster=cluster, name=name, gone_at__isnull=True)
            latest = deployment.requests.order_by("-number").first()
            if latest and latest.state not in SETTLED:
                wait_for(deployment, State.IN_REVIEW)


def _register_cluster(kubeconfig: str) -> Cluster:
    try:
        return services.register_cluster(
            name=CLUSTER, kubeconfig=kubeconfig, by=OPERATOR, replacing=services.Replacing()
        )
    except Refused as exc:
        raise CommandError(f"{exc}. To start over on this cluster, delete the folder of the demo") from exc


def prepare_cluster(api: Api) -> None:
    """CRDs, rights, admission policies, the namespace and its installing account, by server-side apply: a second time
    changes nothing. Policies that stamp authors need a Kubernetes that serves MutatingAdmissionPolicies."""
    root = Path(settings.BASE_DIR)
    for path in sorted((root / "deploy/crds").glob("*.yaml")):
        api.apply(yaml.safe_load(path.read_text()), field_manager=SEEDER)
    wait_until(lambda: _is_served(api), "the CRDs are served")
    names = ["rbac", "admission/mirrors", "admission/reviews", "admission/finalizer"]
    if api.resource_of(ADMISSION_GROUP, "v1", "MutatingAdmissionPolicy"):
        names += ["admission/author-stamp", "admission/authors", "admission/review-stamp"]
    shipped = [root / f"deploy/{name}.yaml" for name in names]
    for obj in [*(obj for file in shipped for obj in yaml.safe_load_all(file.read_text())), *cluster_objects()]:
        api.apply(obj, field_manager=SEEDER)


def kubeconfig_of_service(api: Api, kubeconfig: str) -> str:
    """The same cluster by a token of the account `pratique`, which has the rights of deploy/rbac.yaml, not yours."""
    path = f"/api/v1/namespaces/{SERVICE_NAMESPACE}/serviceaccounts/{SERVICE}/token"
    wish = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    token = api.post(path, wish, subject=f"serviceaccount {SERVICE}")["status"]["token"]
    return json.dumps(with_token(kubeconfig, token))


def _is_served(api: Api) -> bool:
    api.forget_discovery()
    kinds = ("BundleDeployment", "BundleDeploymentRequest")
    return all(api.resource_of(OWN_GROUP, "v1alpha2", kind) for kind in kinds)


def create_person(name: str, cluster: Cluster) -> User:
    user, is_new = User.objects.get_or_create(username=name)
    if is_new:
        user.set_password(os.environ["DEMO_PASSWORD"])
        user.save()
    if access.last_known_of(user, cluster) is None:
        services.map_identity(user=user, cluster=cluster, username=name, groups=[PEOPLE[name]], by=OPERATOR)
    return user


def acting(user: User) -> Caller:
    return access.of_operator(user, Credential.SHELL)


def wait_for(deployment: BundleDeployment, state: State) -> Request:
    """The deployment's latest request, once it has come to `state`; what went another way is an error in words."""

    def is_there() -> bool:
        latest = deployment.requests.order_by("-number").first()
        if latest and latest.state in SETTLED and latest.state != state:
            raise CommandError(f"{deployment.name} is {latest.state}, expected {state}: {latest.problem}")
        return latest is not None and latest.state == state

    wait_until(is_there, f"{deployment.name} in {NAMESPACE} is {state}")
    found = deployment.requests.order_by("-number").first()
    assert found is not None
    return found


def wait_until(is_so: Any, words: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise CommandError(f"waited {PATIENCE_SECONDS} s until {words}")
        time.sleep(0.1)
