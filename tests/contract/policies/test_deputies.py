"""The policies for deputies on a real API server: which bindings their makers create, and whose deputies they name."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from approvals.deciding.deputies import Deputy
from tests.contract.conftest import RBAC, Reply, Request, Server
from tests.contract.policies.conftest import CREATED, FORBIDDEN, INVALID, Prepare, cluster_rights, rule
from tests.support.folders import ROOT
from tests.support.kubernetes import live

pytestmark = pytest.mark.controlplane

DEPUTIES, BINDINGS = "/apis/core.rukpak.io/v1alpha2/deputies", f"{RBAC}/clusterrolebindings"
API = "rbac.authorization.k8s.io"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Makers:
    """Carol holds a role and may name deputies for it; rita may create bindings, and knows of no deputies."""

    server: Server
    mark: str

    def deputy(self, by: str = "carol", **spec: Any) -> Reply:
        about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "Deputy"}
        said = {"user": "dora", "deputyFor": "carol", "clusterRole": self.mark, "until": "2030-12-24T18:00:00Z", **spec}
        body = {**about, "metadata": {"name": f"{self.mark}-{next(_numbers)}"}, "spec": said}
        return self.server.send(Request("POST", DEPUTIES, body, user=by))

    def bind(self, user: str = "carol", *, name: str = "", subjects: Any = None, **owner: str) -> Reply:
        """The binding of a Deputy that this maker has just written, unless something is said otherwise."""
        made = self.deputy("admin").body["metadata"]
        about: dict[str, Any] = {"name": name or f"pratique:deputy:{made['uid']}"}
        kept = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "Deputy", "name": made["name"], "uid": made["uid"]}
        about["ownerReferences"] = [{**kept, **owner}] if owner != {"kind": ""} else []
        people = [{"apiGroup": API, "kind": "User", "name": "dora"}] if subjects is None else subjects
        role = {"apiGroup": API, "kind": "ClusterRole", "name": self.mark}
        body = {"apiVersion": f"{API}/v1", "kind": "ClusterRoleBinding", "metadata": about, "roleRef": role}
        return self.server.send(Request("POST", f"{BINDINGS}?dryRun=All", {**body, "subjects": people}, user=user))


@pytest.fixture(scope="module")
def makers(prepare: Prepare) -> Iterator[Makers]:
    mark = f"deputy-{uuid.uuid4().hex[:8]}"
    binds = {"apiGroups": [API], "resources": ["clusterrolebindings"], "verbs": ["create"]}
    holds = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    rights = [
        *cluster_rights(mark, [holds], "carol", "rita"),
        *cluster_rights(f"{mark}-binds", [binds], "carol", "rita"),
        *cluster_rights(f"{mark}-makes", [rule("deputies", verbs=("create",))], "carol"),
    ]
    server = prepare(mark, ["crds/deputies.yaml", "admission/deputies.yaml"], rights)
    server.until_may("carol", "create", "deputies", "core.rukpak.io")
    server.until_may("rita", "create", "clusterrolebindings", API)
    here = Makers(server, mark)
    # A policy takes effect some seconds after it is there.
    live.wait_until(lambda: here.deputy(deputyFor="alice").code == FORBIDDEN and here.bind(name=mark).code == FORBIDDEN)
    yield here
    server.ctl("delete", "-f", str(ROOT / "deploy/admission/deputies.yaml"))


def person(name: str, kind: str = "User") -> dict[str, str]:
    return {"apiGroup": API, "kind": kind, "name": name}


NO_BINDING: dict[str, tuple[dict[str, Any], str]] = {
    "to everybody": ({"subjects": [person("system:authenticated", "Group")]}, "has one subject"),
    "to an account": ({"subjects": [person("system:serviceaccount:a:b")]}, "has one subject"),
    "to two": ({"subjects": [person("dora"), person("eve")]}, "has one subject"),
    "to nobody": ({"subjects": []}, "has one subject"),
    "without an end": ({"kind": ""}, "has the Deputy of this uid as its only owner"),
    "of another Deputy": ({"uid": str(uuid.uuid4())}, "has the Deputy of this uid as its only owner"),
    "of a version that is not served": ({"apiVersion": "core.rukpak.io/v9"}, "has the Deputy of this uid"),
    "of something else": ({"apiVersion": "v1", "kind": "ConfigMap"}, "has the Deputy of this uid"),
}


@pytest.mark.parametrize("user", ["carol", "admin"])
@pytest.mark.parametrize(("change", "words"), NO_BINDING.values(), ids=NO_BINDING)
def test_S52_a_binding_of_a_deputy_has_its_form_whoever_writes_it(
    makers: Makers, change: dict[str, Any], words: str, user: str
) -> None:
    for given, expected in ((change, words), ({"subjects": [person(user)]}, "which is a person and not you")):
        answer = makers.bind(user, **given)
        assert (answer.code, expected in answer.message) == (FORBIDDEN, True), answer.message


def test_S52_who_makes_deputies_makes_no_other_binding_and_others_are_left_alone(makers: Makers) -> None:
    answer = makers.bind(name="mine", subjects=[person("dora")])
    assert (answer.code, "create no other binding" in answer.message) == (FORBIDDEN, True), answer.message
    for user in ("rita", "admin"):
        answer = makers.bind(user, name="mine", subjects=[person("team", "Group")], kind="")
        assert answer.code == CREATED, answer.message
    assert makers.bind().code == CREATED


UNREADABLE = {
    "another form of time": {"until": "2030-12-24T18:00Z0"},
    "no zone": {"until": "2030-12-24T18:00:00"},
    "a zone of a day": {"until": "2030-12-24T18:00:00+24:00"},
    "no such day": {"until": "2030-02-31T18:00:00Z"},
    "a name with a control character": {"user": "do\x1bra"},
    "another name with one": {"deputyFor": "a\0b"},
    "a reason with one": {"reason": "holi\0day"},
}


@pytest.mark.parametrize("spec", UNREADABLE.values(), ids=UNREADABLE)
def test_S52_the_api_server_takes_no_deputy_that_pratique_cannot_read(makers: Makers, spec: dict[str, Any]) -> None:
    answer = makers.deputy("admin", **spec)
    assert answer.code == INVALID, answer.message
    for until in ("2030-12-24T18:00:00z", "2030-12-24t18:00:00.5+05:30"):
        if makers.deputy("admin", until=until).code == CREATED:
            assert Deputy.read({"user": "a", "deputyFor": "b", "clusterRole": "c", "until": until})[1] == ""


def test_S52_nobody_names_deputies_of_others_but_who_may_change_bindings(makers: Makers) -> None:
    answer = makers.deputy(deputyFor="alice")
    assert (answer.code, "spec.deputyFor must be you, carol" in answer.message) == (FORBIDDEN, True), answer.message
    assert makers.deputy().code == makers.deputy("admin", deputyFor="alice").code == CREATED
