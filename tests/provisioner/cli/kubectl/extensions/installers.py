"""An account with exactly the rights that `kubectl pratique rbac` prints for it, and what it can install with them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from provisioner.cli.inputs import read_contents
from provisioner.cli.kubectl import main
from provisioner.cli.kubectl.commands import parser
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.order import hooks_at, phases
from provisioner.errors import Forbidden
from provisioner.rbac import PolicyRule
from provisioner.values import APPLYING, AccessRequest, HookMoment, Identity, Manifest, ObjectRef
from tests.support.kubernetes.live import until_may, until_served, wait_until

CRD = "CustomResourceDefinition"


def printed(capture: Any, kubeconfig: Path, *words: str) -> tuple[int, list[dict[str, Any]], str]:
    """The exit status, the objects that `rbac` prints, and what it says."""
    capture.readouterr()
    status = main(["rbac", *words, "--kubeconfig", str(kubeconfig)])
    said = capture.readouterr()
    return status, list(yaml.safe_load_all(said.out)), said.err


def rules_in(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """Where each rule stands: the number of its role among the objects, and its own."""
    for at, obj in enumerate(objects):
        yield from ((at, number) for number in range(len(obj.get("rules") or ())))


def without(objects: Sequence[dict[str, Any]], place: tuple[int, int]) -> list[dict[str, Any]]:
    left = copy.deepcopy(list(objects))
    del left[place[0]]["rules"][place[1]]
    return left


class LeastInstaller:
    """The account, given its rights by an administrator, installs a bundle as server-side apply does."""

    def __init__(self, api: ClusterClient, account: Identity, words: Sequence[str]) -> None:
        """`words` are those of `rbac`, which name a bundle and how it is read."""
        self.api, self.account = api, account
        self.acting = api.acting_as(account)
        options = parser().parse_args(["rbac", *words])
        content = read_contents(options, api)[0].with_hooks(APPLYING)
        staying = [one for phase in phases(content.manifests) for one in phase.manifests]
        before, after = (hooks_at(moment, content.manifests) for moment in (HookMoment.BEFORE, HookMoment.AFTER))
        self.parts: tuple[list[Manifest], ...] = (before, staying, after)
        self.written: list[ObjectRef] = []

    def give(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Until the API server goes by it."""
        for obj in objects:
            self.api.apply(obj, field_manager="administrator", force=True)
        for obj in objects:
            namespace = str(obj["metadata"].get("namespace") or "")
            for rule in obj.get("rules") or ():
                until_may(self.api, self.account, one_request(rule, namespace))

    def lose(self, objects: Sequence[Mapping[str, Any]], place: tuple[int, int]) -> None:
        """Only that rule, until the API server goes by it."""
        role = objects[place[0]]
        rule = role["rules"][place[1]]
        self.api.apply(
            without([dict(one) for one in objects], place)[place[0]], field_manager="administrator", force=True
        )
        request = one_request(rule, str(role["metadata"].get("namespace") or ""))
        until_may(self.api, self.account, request, is_allowed=False)

    def refusals(self) -> list[str]:
        """Install as far as it goes; what the API server refuses for want of rights, in its words."""
        try:
            for part in self.parts:
                self._install(part)
        except Forbidden as exc:
            return [f"{exc}: {exc.server_words}"]
        return []

    def _install(self, manifests: Sequence[Manifest]) -> None:
        """As Pratique does it: read and apply each, and delete the hooks that are cleared once all of them have run."""
        for manifest in manifests:
            ref = manifest.ref
            self.acting.get(ref)
            if self.acting.apply(manifest.body, field_manager="pratique").is_created:
                self.written.append(ref)
            if ref.kind == CRD:
                spec = manifest.body["spec"]
                version = next(one["name"] for one in spec["versions"] if one["served"])
                until_served(self.api, spec["group"], version, spec["names"]["kind"])
        for manifest in manifests:
            if manifest.hook is not None and manifest.hook.is_cleared:
                self.acting.delete(manifest.ref)

    def clear(self) -> None:
        """Everything that was written goes, as an administrator; but namespaces, which empty slowly, and definitions: an
        API server may keep one for minutes that is deleted soon after it was made (seen on 1.36.3)."""
        going = [ref for ref in reversed(self.written) if ref.kind not in (CRD, "Namespace")]
        for ref in going:
            self.api.delete(ref)
        for ref in going:
            wait_until(partial(self._is_gone, ref), f"{ref} is gone")
        self.written = [ref for ref in self.written if ref not in going]

    def _is_gone(self, ref: ObjectRef) -> bool:
        return self.api.get(ref) is None


def one_request(rule: Mapping[str, Any], namespace: str) -> AccessRequest:
    """One of the rights of a rule."""
    known = PolicyRule.from_object(rule)
    if known.non_resource_urls:
        return AccessRequest(known.verbs[0], path=known.non_resource_urls[0].replace("*", "x"))
    resource, _, subresource = known.resources[0].partition("/")
    name = known.resource_names[0] if known.resource_names else ""
    return AccessRequest(known.verbs[0], known.api_groups[0], resource, subresource, namespace, name)
