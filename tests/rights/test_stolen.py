"""What the token of each process is good for in a thief's hands: each cell is the real API server's own answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import yaml

from approvals.rights.missing_rights import accounts_of
from approvals.rights.needs import AUTHENTICATION, ImpersonationForm, Process, Registered, manifests, roles
from provisioner.api_groups import RBAC_GROUP
from provisioner.cluster.client.access import ask_self
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Forbidden, Unreachable
from provisioner.values import AccessRequest, Identity, ObjectRef
from tests.rights.conftest import Noted
from tests.rights.household import INSTALLER, NAMESPACE, SHOP, basic_auth, prepare, token_of
from tests.support.journeys.deployed_site import binding, group
from tests.support.kubernetes import live
from tests.support.patience import scaled

CORE = "core.rukpak.io"
ACCOUNTS = ("web", "worker", "watch", "beat", "migrate")
# The one account of all processes, which an operator may choose.
ONE = "one"
# An account that installs for somebody else, in a cluster that Pratique knows nothing of.
YARD = "yard"
# An account that signs in and asks, as the first operator's may, and that nothing is installed by. It is cluster-admin.
CI, ROBOT_NAME = "ci", "robot"
ROBOT = Identity.of_service_account(CI, ROBOT_NAME)
PULL, ROBOTS = (ObjectRef("", "v1", "Secret", SHOP, name) for name in ("pull", "robots"))
KNOWN = Registered(
    people=frozenset({"rita", "alice", ROBOT.username}),
    groups=frozenset({"requesters", "platform"}),
    readers=frozenset({"rita", ROBOT.username}),
    installers=frozenset({(SHOP, INSTALLER)}),
    sources=frozenset({PULL, ROBOTS}),
    for_accounts=frozenset({ROBOTS}),
    watched=frozenset({("", "configmaps"), ("apps", "deployments")}),
)
ALICE, RITA = Identity("alice", ("platform",)), Identity("rita", ("requesters",))
OURS = Identity.of_service_account(SHOP, INSTALLER)
THEIRS = Identity.of_service_account(YARD, INSTALLER)
# Rita, as she is not: platform is alice's.
MIXED = Identity("rita", ("platform",))
MASTERS = Identity("admin", ("system:masters",))


@dataclass(frozen=True)
class Thief:
    """The tokens of all accounts, and the cluster's admin to look behind them."""

    admin: Api
    held: dict[str, Api]
    form: ImpersonationForm


@pytest.fixture(scope="module")
def thief(noted: Noted) -> Thief:
    """Everything as shipped and printed; alice may read every Secret, and both installers are cluster-admin."""
    admin = Api.connect(noted.control_plane.kubeconfig("admin"), timeout_seconds=scaled(60))
    prepare(admin)
    for obj in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": YARD}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": INSTALLER, "namespace": YARD}},
        binding("yard-installer", "cluster-admin", {"kind": "ServiceAccount", "name": INSTALLER, "namespace": YARD}),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CI}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ROBOT_NAME, "namespace": CI}},
        binding("ci-robot", "cluster-admin", {"kind": "ServiceAccount", "name": ROBOT_NAME, "namespace": CI}),
        binding("alice-edits", "edit", group("platform")),
        READS_ROLES,
        binding("alice-reads-roles", "reads-roles", group("platform")),
        *manifests(roles(KNOWN, noted.form), accounts_of(NAMESPACE)),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ONE, "namespace": NAMESPACE}},
        *of_one_account(noted.form),
        basic_auth("pull"),
        basic_auth("robots"),
        basic_auth("other"),
        {**WISH, "metadata": {"name": "target"}},
    ):
        admin.apply(obj, field_manager="stolen", force=True)
    held = {}
    for name in (*ACCOUNTS, ONE):
        config = yaml.safe_load(noted.control_plane.kubeconfig("admin"))
        config["users"][0]["user"] = {"token": token_of(admin, NAMESPACE, name)}
        held[name] = Api.connect(config, timeout_seconds=scaled(60))
    made = Thief(admin, held, noted.form)
    for name, attempt in (
        ("worker", "reads a source's Secret as a person"),
        ("watch", "lists what bundles brought as its installer"),
        ("web", "writes a wish as a person"),
        (ONE, "writes a wish as a person"),
    ):
        live.wait_until(partial(may_by_now, made, name, _attempts()[attempt]), f"{name} {attempt}")
    return made


def may_by_now(thief: Thief, account: str, attempt: Attempt) -> bool:
    """Not while an API server has policies about a kind that it has learned a moment ago: it refuses all writes then."""
    try:
        return may(thief, account, attempt)
    except Unreachable:
        return False


def of_one_account(form: ImpersonationForm) -> list[dict[str, Any]]:
    """What `--account` prints, beside what the accounts of their own have."""
    objects = manifests(roles(KNOWN, form), dict.fromkeys(Process, (NAMESPACE, ONE)))
    for made in objects:
        made["metadata"] = {**made["metadata"], "name": f"{made['metadata']['name']}-{ONE}"}
        if "roleRef" in made:
            made["roleRef"] = {**made["roleRef"], "name": f"{made['roleRef']['name']}-{ONE}"}
    return objects


@dataclass(frozen=True)
class Attempt:
    """A call that a thief makes; `identity` is whom they would be, None for the stolen account itself."""

    method: str
    ref: ObjectRef
    body: Any = None
    identity: Identity | None = None
    subresource: str = ""


def may(thief: Thief, account: str, attempt: Attempt) -> bool:
    """Whether the API server lets it happen; whatever it says but a refusal counts as yes. Nothing is stored."""
    api = thief.held[account]
    api = api.acting_as(attempt.identity) if attempt.identity else api
    ref = attempt.ref
    try:
        if attempt.method == "get":
            api.get(ref)
        elif attempt.method == "list":
            resource = api.resource_of(ref.group, ref.version, ref.kind)
            assert resource is not None
            api.excerpt(resource, namespace=ref.namespace, at_most=1)
        elif attempt.method == "create":
            api.create(attempt.body, dry_run=True)
        elif attempt.method == "post":
            api.post(attempt.body["path"], attempt.body["of"], subject="a thief")
        elif attempt.method == "delete":
            api.delete(ref, dry_run=True)
        else:
            api.apply(attempt.body, field_manager="thief", dry_run=True, subresource=attempt.subresource)
    except Forbidden:
        return False
    return True


def obj(api_version: str, kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **place}, **more}


def creates(body: dict[str, Any], identity: Identity | None = None) -> Attempt:
    return Attempt("create", ObjectRef.of(body), body, identity)


def _pod(namespace: str, account: str) -> dict[str, Any]:
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
    container = {
        "name": "c",
        "image": "example.com/x:1",
        "securityContext": {**context, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    return obj("v1", "Pod", "thief", namespace, spec={"serviceAccountName": account, "containers": [container]})


def _token(namespace: str, name: str) -> Attempt:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    of = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return Attempt("post", ObjectRef("", "v1", "ServiceAccount", namespace, name), {"path": path, "of": of})


def _review(kind: str, group: str, spec: dict[str, Any]) -> Attempt:
    body = {
        "path": f"/apis/{group}/v1/{kind.lower()}s",
        "of": {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec},
    }
    return Attempt("post", ObjectRef(group, "v1", kind, "", "x"), body)


WISH = obj(
    f"{CORE}/v1alpha2",
    "BundleDeployment",
    "thief",
    spec={
        "installNamespace": SHOP,
        "serviceAccountName": INSTALLER,
        "sources": [{"kind": "configMap", "configMap": {"name": "x"}}],
    },
)
STATUS = obj(f"{CORE}/v1alpha2", "BundleDeployment", "target", status={"activeRevision": 7, "conditions": []})
BIND = obj(
    f"{RBAC_GROUP}/v1",
    "ClusterRoleBinding",
    "thief",
    roleRef={"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": "cluster-admin"},
    subjects=[{"kind": "ServiceAccount", "name": "web", "namespace": NAMESPACE}],
)
READS_ROLES = obj(
    f"{RBAC_GROUP}/v1",
    "ClusterRole",
    "reads-roles",
    rules=[{"apiGroups": [RBAC_GROUP], "resources": ["clusterroles", "clusterrolebindings"], "verbs": ["list"]}],
)
SECRET, OTHER = (ObjectRef("", "v1", "Secret", SHOP, name) for name in ("pull", "other"))
CONFIG = ObjectRef("", "v1", "ConfigMap", SHOP, "kube-root-ca.crt")


def _attempts() -> dict[str, Attempt]:
    return {
        "reads a Secret": Attempt("get", SECRET),
        "lists Secrets of our namespace": Attempt("list", ObjectRef("", "v1", "Secret", NAMESPACE, "")),
        "creates a pod beside an installer": creates(_pod(SHOP, INSTALLER)),
        "creates a pod of ours": creates(_pod(NAMESPACE, "worker")),
        "binds cluster-admin": creates(BIND),
        "makes a token of the worker": _token(NAMESPACE, "worker"),
        "makes a token of an installer": _token(SHOP, INSTALLER),
        "reads as system:masters": Attempt("get", SECRET, identity=MASTERS),
        "reads as another installer": Attempt("get", SECRET, identity=THEIRS),
        "reads as a stranger": Attempt("get", CONFIG, identity=Identity("mallory")),
        "asks whose a token is": _review("TokenReview", "authentication.k8s.io", {"token": "x"}),
        "asks what others may": _review(
            "SubjectAccessReview",
            "authorization.k8s.io",
            {"user": "x", "nonResourceAttributes": {"path": "/", "verb": "get"}},
        ),
        "lists the wishes": Attempt("list", ObjectRef(CORE, "v1alpha2", "BundleDeployment", "", "")),
        "writes a wish itself": Attempt("apply", ObjectRef.of(WISH), WISH),
        "writes the status of a wish": Attempt("apply", ObjectRef.of(WISH), STATUS, subresource="status"),
        "writes a wish as a person": creates(WISH, RITA),
        "reads a source's Secret as a person": Attempt("get", SECRET, identity=ALICE),
        "reads any Secret as a person": Attempt("get", OTHER, identity=ALICE),
        "lists roles as a person": Attempt("list", ObjectRef(RBAC_GROUP, "v1", "ClusterRole", "", ""), identity=ALICE),
        "lists bindings as a person": Attempt(
            "list", ObjectRef(RBAC_GROUP, "v1", "ClusterRoleBinding", "", ""), identity=ALICE
        ),
        "lists roles as an account that asked": Attempt(
            "list", ObjectRef(RBAC_GROUP, "v1", "ClusterRole", "", ""), identity=ROBOT
        ),
        "creates a pod as a person": creates(_pod(SHOP, "default"), ALICE),
        "applies as its installer": Attempt("apply", CONFIG, obj("v1", "ConfigMap", "thief", SHOP), identity=OURS),
        "deletes as its installer": Attempt("delete", CONFIG, identity=OURS),
        "lists what bundles brought as its installer": Attempt("list", CONFIG, identity=OURS),
        "lists Secrets as its installer": Attempt("list", SECRET, identity=OURS),
        # The halves of constrained impersonation are not bound to each other: each of these joins what two need.
        "reads the Secret of an account's source itself": Attempt("get", ROBOTS),
        "reads a Secret as an account that asked": Attempt("get", OTHER, identity=ROBOT),
        "deletes as an account that asked": Attempt("delete", CONFIG, identity=ROBOT),
        "creates a pod as an account that asked": creates(_pod(SHOP, "default"), ROBOT),
        "lists what bundles brought as an account that asked": Attempt("list", CONFIG, identity=ROBOT),
        "writes a wish as an account that asked": creates(WISH, ROBOT),
        "writes a wish as a stranger in a known group": creates(WISH, Identity("mallory", ("requesters",))),
        "writes a wish as its installer": creates(WISH, OURS),
        "reads a source's Secret as a person with another's groups": Attempt("get", SECRET, identity=MIXED),
        "reads a source's Secret as its installer": Attempt("get", SECRET, identity=OURS),
        "reads any Secret as a person with another's groups": Attempt("get", OTHER, identity=MIXED),
    }


# Who gets through, by form: everybody else is refused. In the legacy form a process may do all that those whom it acts as may.
BOTH: dict[str, set[str]] = {
    "asks whose a token is": {"web"},
    "asks what others may": {"web", "worker"},
    "lists the wishes": {"watch"},
    "writes the status of a wish": {"worker"},
    "reads a source's Secret as a person": {"worker"},
    "applies as its installer": {"worker"},
    "deletes as its installer": {"worker"},
    "lists what bundles brought as its installer": {"worker", "watch"},
    "lists Secrets as its installer": {"worker"},
    "writes a wish as a person": {"web"},
    "lists roles as a person": {"web"},
    "lists bindings as a person": {"web"},
    "reads the Secret of an account's source itself": {"worker"},
    "writes a wish as an account that asked": {"web"},
    "reads a source's Secret as a person with another's groups": {"worker"},
    "reads a source's Secret as its installer": {"worker"},
}
CONSTRAINED_ONLY: dict[str, set[str]] = {"writes a wish as a stranger in a known group": {"web"}}
LEGACY_ONLY: dict[str, set[str]] = {
    "reads a source's Secret as a person": {"web"},
    "reads any Secret as a person": {"web", "worker"},
    "lists roles as a person": {"worker"},
    "lists bindings as a person": {"worker"},
    "lists roles as an account that asked": {"web"},
    "creates a pod as a person": {"web", "worker"},
    "writes a wish as a person": {"worker"},
    "applies as its installer": {"watch"},
    "deletes as its installer": {"watch"},
    "lists Secrets as its installer": {"watch"},
    "reads a Secret as an account that asked": {"web"},
    "deletes as an account that asked": {"web"},
    "creates a pod as an account that asked": {"web"},
    "lists what bundles brought as an account that asked": {"web"},
    "writes a wish as its installer": {"worker", "watch"},
    "reads a source's Secret as a person with another's groups": {"web"},
    "reads a source's Secret as its installer": {"watch"},
    "reads any Secret as a person with another's groups": {"web", "worker"},
}


@pytest.mark.parametrize("words", [*_attempts()])
def test_S31_a_stolen_token_gets_so_far(thief: Thief, words: str) -> None:
    expected = set(BOTH.get(words, ()))
    expected |= (LEGACY_ONLY if thief.form is ImpersonationForm.LEGACY else CONSTRAINED_ONLY).get(words, set())
    got = {account for account in ACCOUNTS if may(thief, account, _attempts()[words])}
    assert got == expected


@pytest.mark.parametrize("words", [words for words in _attempts() if words.endswith("as an account that asked")])
def test_S31_with_one_account_for_all_the_halves_of_all_join(thief: Thief, words: str) -> None:
    """Web may be the account that asked, the worker may make every request that installers need: `rights` warns."""
    is_creation = words.startswith("creates a pod")
    assert may(thief, ONE, _attempts()[words]) is (thief.form is ImpersonationForm.LEGACY or not is_creation)


NEVER = [
    AccessRequest("get", resource="secrets", namespace="kube-system"),
    AccessRequest("list", resource="secrets"),
    AccessRequest("create", resource="pods", namespace=SHOP),
    AccessRequest("create", resource="pods", subresource="exec", namespace=NAMESPACE),
    AccessRequest("bind", RBAC_GROUP, "clusterroles", name="cluster-admin"),
    AccessRequest("escalate", RBAC_GROUP, "clusterroles"),
    AccessRequest("create", RBAC_GROUP, "clusterrolebindings"),
    AccessRequest("patch", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
    AccessRequest("create", resource="serviceaccounts", subresource="token", namespace=NAMESPACE),
    AccessRequest("get", resource="nodes", subresource="proxy"),
    AccessRequest("impersonate", resource="users", name="mallory"),
    AccessRequest("impersonate", resource="groups", name="system:masters"),
    AccessRequest("impersonate", resource="serviceaccounts", namespace=YARD, name=INSTALLER),
    AccessRequest("impersonate", resource="serviceaccounts", namespace=NAMESPACE, name="worker"),
    AccessRequest("impersonate:serviceaccount", AUTHENTICATION, "serviceaccounts", "", YARD, INSTALLER),
    AccessRequest("impersonate-on:serviceaccount:create", resource="pods", namespace=SHOP),
    AccessRequest("impersonate-on:serviceaccount:create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    AccessRequest("impersonate-on:serviceaccount:approve", CORE, "bundledeployments"),
    AccessRequest("impersonate:serviceaccount", AUTHENTICATION, "serviceaccounts", "", NAMESPACE, "worker"),
    AccessRequest("impersonate:arbitrary-node", AUTHENTICATION, "nodes"),
    AccessRequest("impersonate:user-info", AUTHENTICATION, "uids"),
    AccessRequest("impersonate:user-info", AUTHENTICATION, "userextras", "scopes"),
    AccessRequest("impersonate-on:user-info:get", resource="secrets", namespace="kube-system"),
    AccessRequest("impersonate-on:user-info:create", resource="pods", namespace=SHOP),
    AccessRequest("impersonate-on:user-info:approve", CORE, "bundledeployments"),
    AccessRequest("approve", CORE, "bundledeployments"),
    AccessRequest("override", CORE, "bundledeployments"),
    AccessRequest("*", "*", "*"),
]


@pytest.mark.parametrize("question", NEVER, ids=str)
def test_S31_no_account_of_ours_holds_it(thief: Thief, question: AccessRequest) -> None:
    assert [account for account in ACCOUNTS if ask_self(thief.held[account], question)] == []


def test_S31_the_worker_alone_says_what_became_of_a_review(thief: Thief) -> None:
    """With `decide` the policies let it write what the cluster shows of reviews: no review counts by what is shown."""
    question = AccessRequest("decide", CORE, "bundledeploymentrequests")
    assert [account for account in ACCOUNTS if ask_self(thief.held[account], question)] == ["worker"]


def test_S31_an_account_that_meets_no_cluster_holds_nothing_at_all(thief: Thief) -> None:
    """Of what it may, nothing names Pratique, people or objects: everybody who is signed in may it."""
    for account in ("beat", "migrate"):
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": NAMESPACE},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        rules = thief.held[account].post(path, body, subject=account)["status"]["resourceRules"]
        assert {group for rule in rules for group in rule["apiGroups"]} <= {"authorization.k8s.io", AUTHENTICATION}
        assert {verb for rule in rules for verb in rule["verbs"]} == {"create"}
