"""The cluster that kubectl would use, and the objects of Pratique in it."""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from provisioner.api_groups import OWN_GROUP
from provisioner.cli.arguments import DEFAULT_NAMESPACE, Usage
from provisioner.cli.inputs import BundleUnreachable
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import BadSource, Forbidden, PratiqueError, Unauthenticated, UnknownKind, Unreachable
from provisioner.values import Identity, ObjectRef

VERSION = "v1alpha2"
DEPLOYMENT, REQUEST, REVIEW = "BundleDeployment", "BundleDeploymentRequest", "BundleDeploymentReview"
MOST = 500
KUBECTL_SECONDS = 60
# States in which a request has not ended. One without a state has just been made.
OPEN = ("preparing", "in_review", "approved", "applying", "restoring", "stale")
NEAR = 3
THEIRS = "v1alpha1"
CLUSTER_OPTIONS = ("--kubeconfig", "--context", "--as", "--as-group", "--color")
NOT_INSTALLED = (
    "the cluster serves no {kind}: Pratique is not installed there, or not in this version. An administrator applies "
    "what `pratique-manage cluster_manifests` prints; or is it another cluster (--context)?"
)
RUKPAKS_OWN = (
    f"the cluster serves BundleDeployments as {THEIRS}, which is RukPak's own definition: Pratique cannot be installed "
    "beside it. An administrator converts them first (`kubectl pratique convert`), as docs/operating/kubectl.md says "
    "under Coming from RukPak"
)
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """What a command is about: a request, and the deployment that it is of."""

    request: Record

    @property
    def name(self) -> str:
        return str(self.request["metadata"]["name"])

    @property
    def deployment(self) -> str:
        return str(self.request["spec"]["bundleDeploymentRef"]["name"])

    @property
    def status(self) -> Record:
        return dict(self.request.get("status") or {})


def cluster_of(options: argparse.Namespace) -> ClusterClient:
    """As kubectl reads kubeconfigs, where there is a kubectl: it merges files and knows the current context."""
    if options.kubeconfig and not Path(options.kubeconfig).exists():
        raise Usage(f"{options.kubeconfig}: there is no such kubeconfig (--kubeconfig)")
    if shutil.which("kubectl") is None:
        found = ClusterClient.connect(_read_kubeconfig(options), context=options.context, trusted=True)
    else:
        # Whether any of the files exists that kubectl would merge; kubectl itself speaks of a context that is missing.
        named = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube/config")
        if not options.kubeconfig and not any(Path(path).exists() for path in named.split(os.pathsep) if path):
            raise Usage(
                f"{_kubeconfig_name(options)}: there is no such kubeconfig: name one with --kubeconfig or KUBECONFIG, "
                "or log in to a cluster first"
            )
        text = _ask_kubectl(options)
        if "clusters: null" in text or "clusters: []" in text:
            raise Usage(
                f"{_kubeconfig_name(options)} names no cluster: is KUBECONFIG set, or log in to a cluster first"
            )
        found = ClusterClient.connect(text, trusted=True)
    if options.acting_as:
        return found.acting_as(Identity(options.acting_as, tuple(options.acting_as_groups)))
    if options.acting_as_groups:
        raise Usage("--as-group goes with --as NAME")
    return found


def _read_kubeconfig(options: argparse.Namespace) -> str:
    """Without kubectl nothing merges files: the first that there is."""
    named = options.kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube/config")
    paths = [Path(path) for path in named.split(os.pathsep) if path and Path(path).exists()]
    if not paths:
        raise Usage(f"{named}: there is no such kubeconfig: name one with --kubeconfig or KUBECONFIG")
    try:
        return paths[0].read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        raise Usage(f"{paths[0]}: no kubeconfig, for it is not UTF-8 text") from exc


def namespace_of(options: argparse.Namespace) -> str:
    """The namespace of the context, as kubectl has it."""
    text = _read_kubeconfig(options) if shutil.which("kubectl") is None else _ask_kubectl(options)
    try:
        config = yaml.safe_load(text)
        wanted = options.context or config.get("current-context")
        here = next(context["context"] for context in config["contexts"] if context["name"] == wanted)
        return str(here.get("namespace") or DEFAULT_NAMESPACE)
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, StopIteration):
        return DEFAULT_NAMESPACE


def _kubeconfig_name(options: argparse.Namespace) -> str:
    return str(options.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")


def add_cluster(sub: argparse.ArgumentParser) -> None:
    """The options by which `cluster_of` and the colours are chosen: CLUSTER_OPTIONS, spelt as kubectl spells them."""
    sub.add_argument(
        "--kubeconfig", metavar="FILE", default="", help="a different kubeconfig; default: the one kubectl uses"
    )
    sub.add_argument("--context", default="", help="context of the kubeconfig")
    sub.add_argument("--as", dest="acting_as", metavar="NAME", default="", help="impersonate this user")
    sub.add_argument(
        "--as-group",
        dest="acting_as_groups",
        metavar="GROUP",
        action="append",
        default=[],
        help="impersonate this group as well; can be repeated",
    )
    sub.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="default: %(default)s")


def bare_name(text: str) -> str:
    """The name in `bdr/web-2`, as `-o name` prints it; names hold no slash."""
    return text.rpartition("/")[2]


def with_options_behind(words: Sequence[str]) -> list[str]:
    """The command first, then options about the cluster that stood before it, as kubectl takes them."""
    given = options_before(words)
    return [*words[given : given + 1], *words[:given], *words[given + 1 :]]


def options_before(words: Sequence[str]) -> int:
    """How many words before the command are options about the cluster and their values."""
    at = 0
    while at < len(words) and words[at].partition("=")[0] in CLUSTER_OPTIONS:
        at += 1 if "=" in words[at] else 2
    return at


def list_contexts() -> list[str]:
    """The contexts that kubectl knows; none where it cannot say."""
    program = shutil.which("kubectl")
    if program is None:
        return []
    words = [program, "config", "get-contexts", "--output=name"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=KUBECTL_SECONDS)  # noqa: S603 - words of ours
    return done.stdout.split()


def advice_for(exc: PratiqueError) -> str:
    """What to do next where the API server, or the way to it, says no; "" where the error says all."""
    if isinstance(exc, Unauthenticated):
        return "your credentials do not count there: log in to the cluster again (`kubectl auth whoami` tests it)"
    if isinstance(exc, Forbidden):
        return (
            "ask an administrator to bind you to the ClusterRole pratique-reader, or pratique-approver to decide"
            " (`kubectl auth can-i --list` shows what you may do)"
        )
    if isinstance(exc, UnknownKind):
        return NOT_INSTALLED.format(kind="such kind")
    if isinstance(exc, BundleUnreachable):
        return "the bundle comes from there: is the host up, and is the way to it open (proxy, firewall, TLS)?"
    if isinstance(exc, Unreachable):
        return "try `kubectl version`: is the cluster up, the network (VPN) there, and --context the right one?"
    if isinstance(exc, BadSource):
        return "try `kubectl config view --minify`, and name another file or context with --kubeconfig and --context"
    return ""


def _ask_kubectl(options: argparse.Namespace) -> str:
    words = [str(shutil.which("kubectl")), "config", "view", "--raw", "--minify", "--flatten"]
    words += [f"--kubeconfig={options.kubeconfig}"] if options.kubeconfig else []
    words += [f"--context={options.context}"] if options.context else []
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=KUBECTL_SECONDS)  # noqa: S603 - words of ours
    if done.returncode:
        said = done.stderr.strip().removeprefix("error: ")
        raise Usage(f"kubectl cannot use {_kubeconfig_name(options)}: {said}. See `kubectl config get-contexts`")
    return done.stdout


def own_ref(kind: str, name: str) -> ObjectRef:
    return ObjectRef(OWN_GROUP, VERSION, kind, "", name)


def list_kind(api: ClusterClient, kind: str, *, field_selector: str = "") -> list[Record]:
    """The first MOST of them, by name."""
    resource = api.resource_of(OWN_GROUP, VERSION, kind)
    if resource is None:
        raise Usage(why_not_installed(api, kind))
    found = api.excerpt(resource, at_most=MOST, field_selector=field_selector).objects
    return sorted(found, key=lambda obj: str(obj["metadata"]["name"]))


def is_open(request: Record) -> bool:
    return str((request.get("status") or {}).get("state") or "preparing") in OPEN


def deployment_of(api: ClusterClient, name: str) -> Record:
    found = _find_object(api, DEPLOYMENT, name)
    if found is None:
        raise Usage(f"there is no BundleDeployment {name}{_did_you_mean(api, name, (DEPLOYMENT,))}")
    return found


def requests_of(api: ClusterClient, deployment: str) -> list[Record]:
    """The requests of a deployment that is there, or of which some are left."""
    found = list_kind(api, REQUEST, field_selector=f"spec.bundleDeploymentRef.name={deployment}")
    if not found:
        deployment_of(api, deployment)
    return found


def subject_of(api: ClusterClient, name: str) -> Subject:
    """The request of this name, or the current request of the deployment of this name."""
    request = _find_object(api, REQUEST, name)
    if request is not None:
        return Subject(request)
    deployment = _find_object(api, DEPLOYMENT, name)
    if deployment is None:
        raise Usage(
            f"there is no request and no BundleDeployment {name}{_did_you_mean(api, name, (REQUEST, DEPLOYMENT))}"
        )
    current = str((deployment.get("status") or {}).get("activeRequest") or "")
    request = _find_object(api, REQUEST, current) if current else None
    if request is None:
        raise Usage(
            f"BundleDeployment {name} has no request yet: wait, or see `kubectl describe bundledeployment {name}`"
        )
    return Subject(request)


def _find_object(api: ClusterClient, kind: str, name: str) -> Record | None:
    try:
        return api.get(own_ref(kind, name))
    except UnknownKind as exc:
        raise Usage(why_not_installed(api, kind)) from exc


def why_not_installed(api: ClusterClient, kind: str = DEPLOYMENT) -> str:
    """Where the cluster does not serve this kind as ours."""
    if api.resource_of(OWN_GROUP, VERSION, DEPLOYMENT) is None and api.resource_of(OWN_GROUP, THEIRS, DEPLOYMENT):
        return RUKPAKS_OWN
    return NOT_INSTALLED.format(kind=kind)


def _did_you_mean(api: ClusterClient, name: str, kinds: tuple[str, ...]) -> str:
    """`: did you mean web-2?`; where nothing is near, how to see what there is."""
    try:
        known = {str(item["metadata"]["name"]) for kind in kinds for item in list_kind(api, kind)}
    except (PratiqueError, Usage):
        known = set()
    near = difflib.get_close_matches(name, sorted(known), n=NEAR)
    if near:
        return f": did you mean {' or '.join(near)}?"
    return f"; {'; '.join(f'`kubectl get {kind.lower()}s` lists what there is' for kind in kinds[-1:])}"


def standing_of(api: ClusterClient, subject: Subject) -> str:
    """Why the deployment is not ready, or that it is; "" where it speaks of another request, or may not be read."""
    try:
        found = api.get(own_ref(DEPLOYMENT, subject.deployment))
    except Forbidden:
        return ""
    return _standings([found] if found else []).get(subject.name, "")


def upgrades_of(api: ClusterClient, deployment: str) -> str:
    """What catalogs offer to the deployment and why it is not taken; "" where it follows none, or may not be read."""
    try:
        found = api.get(own_ref(DEPLOYMENT, deployment)) or {}
    except Forbidden:
        return ""
    conditions = (found.get("status") or {}).get("conditions") or []
    return next((str(condition["message"]) for condition in conditions if condition["type"] == "UpgradeAvailable"), "")


def standings_of(api: ClusterClient) -> dict[str, str]:
    """The same of all deployments, by the name of the request that each of them speaks of."""
    try:
        return _standings(list_kind(api, DEPLOYMENT))
    except Forbidden:
        return {}


def _standings(deployments: Iterable[Record]) -> dict[str, str]:
    found = {}
    for status in (deployment.get("status") or {} for deployment in deployments):
        ready = (condition for condition in status.get("conditions") or [] if condition["type"] == "Ready")
        found[str(status.get("activeRequest") or "")] = next((str(condition["message"]) for condition in ready), "")
    return found


def reviews_of(api: ClusterClient, deployment: str) -> list[Record] | None:
    """Those made with kubectl; None where the caller may not list them, or the cluster serves none."""
    try:
        return list_kind(api, REVIEW, field_selector=f"spec.bundleDeploymentName={deployment}")
    except (PratiqueError, Usage):
        return None


def ask_identity(api: ClusterClient) -> Identity:
    """Who the API server takes the caller for (SelfSubjectReview)."""
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", kind, subject="who you are")
    who = answer["status"]["userInfo"]
    return Identity(str(who["username"]), tuple(who.get("groups") or ()), str(who.get("uid") or ""))
