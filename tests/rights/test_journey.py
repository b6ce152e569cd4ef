"""From a wish to its removal, each process with its own account, and every call that they made (docs/operating/rights.md)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from approvals.deciding.table import KINDS
from approvals.rights.missing_rights import own_rules
from approvals.rights.needs import (
    REQUESTS_OF_INSTALLERS,
    SEEN_AS_INSTALLERS,
    WRITES_OF_PEOPLE,
    ImpersonationForm,
    Process,
)
from provisioner.values import ObjectRef
from tests.rights.conftest import Noted
from tests.rights.household import INSTALLER, LATER, NAME, SHOP, Call, Household, Person, basic_auth, calls

INSTALLING = f"system:serviceaccount:{SHOP}:{INSTALLER}"
# Everybody may ask what they may do and who they are.
EVERYBODY = {"create selfsubjectaccessreviews", "create selfsubjectreviews"}
WATCHED = {
    f"{verb} {plural}"
    for verb in SEEN_AS_INSTALLERS
    # ServiceAccounts are watched by a right of its own.
    for plural in ("configmaps", "deployments", "services")
}
LIGHTHOUSE = ObjectRef("apps", "v1", "Deployment", SHOP, "lighthouse")
SETTINGS = ObjectRef("", "v1", "ConfigMap", SHOP, "lighthouse")
# By what they are called in addresses.
RULES = {kind.slug: kind.plural for kind in KINDS}
WISH = ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", "lighthouse")


@pytest.mark.thorough
def test_S31_the_whole_journey_with_an_account_for_each_process(household: Household, noted: Noted) -> None:
    rita, alice = household.person("rita"), household.person("alice")
    _check_web_is_missing_its_right(rita)
    _check_told(household, noted.form)
    household.grant()
    printed = household.grant("--installer", f"{SHOP}/installer")
    assert (f"the {noted.form} form" in printed, "rita" in printed) == (True, noted.form is ImpersonationForm.LEGACY)

    household.api.create(basic_auth("pull"))
    spec = {
        "installNamespace": SHOP,
        "serviceAccountName": "installer",
        "format": "plain",
        "sources": [
            {"kind": "http", "http": {**household.archive("lighthouse", "1.0.0"), "auth": {"secret": {"name": "pull"}}}}
        ],
    }
    # The account comes later: the watch sees it.
    account = ObjectRef("", "v1", "ServiceAccount", SHOP, "installer")
    household.api.delete(account)
    assert rita.submit_spec("lighthouse", spec).status_code == 201
    rita.until("lighthouse", 1, ["preparing"], "missing-account")
    household.until(
        lambda: "watch serviceaccounts" in _as({one for one in calls(noted.folder) if one.code < 300}, "watch", ""),
        "what the request waits for is watched",
    )
    household.api.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer", "namespace": SHOP}}
    )
    # Nobody has given the worker the right to read that Secret as rita yet: it says so, and goes on once it has it.
    waiting = rita.until("lighthouse", 1, ["preparing"], "missing-right")
    assert "cannot be read as rita, who may get it: an operator must grant" in waiting["problem"], waiting["problem"]
    assert f"pratique-manage rights --cluster {NAME} | kubectl apply -f -" in waiting["problem"]
    household.grant()
    reviewed = rita.until("lighthouse", 1, ["in_review", "failed"])
    assert reviewed["state"] == "in_review", reviewed["problem"]
    assert rita.ask("POST", f"requests/{reviewed['uid']}/reviews", _approval(reviewed)).status_code == 403
    alice.approve(reviewed)
    assert alice.until("lighthouse", 1, ["applied", "failed"])["state"] == "applied", household.machine.log()
    # What it brought has kinds that are watched now.
    printed = household.grant()
    household.until(
        lambda: _as({one for one in calls(noted.folder) if one.code < 300}, "watch", INSTALLING) >= WATCHED,
        "the kinds of the bundle are watched",
    )

    _check_written_with_kubectl(household, rita)
    _check_put_back(household, rita, alice, spec)
    _write_rules(household, rita)
    uid = rita.deployment("lighthouse")["uid"]
    live = household.api.get(LIGHTHOUSE)
    assert live is not None
    approved = live["spec"]["replicas"]
    household.api.replace({**live, "spec": {**live["spec"], "replicas": 7}}, field_manager="kubectl-edit")
    household.until(lambda: _spec(household)["replicas"] == approved, "the drift is put back")
    household.until(lambda: (household.api.get(WISH) or {}).get("status", {}).get("activeRevision") == 1, "the status")

    assert rita.ask("POST", f"deployments/{uid}/pause", {"is_paused": False, "reason": ""}).status_code == 200
    assert rita.ask("DELETE", f"deployments/{uid}").status_code == 202
    alice.approve(alice.until("lighthouse", 3, ["in_review"]))
    household.until(lambda: household.api.get(LIGHTHOUSE) is None, "the objects are gone")
    household.until(lambda: household.api.get(WISH) is None, "the wish is gone")

    # As the manual removes roles that are no longer printed.
    kinds = "role,rolebinding,clusterrole,clusterrolebinding"
    gone = household.kubectl("delete", kinds, "-A", "-l", "app.kubernetes.io/managed-by=pratique-rights")
    assert gone.count(" deleted") == 2 * printed_roles(printed)
    _check_calls(calls(noted.folder))


def _check_web_is_missing_its_right(rita: Person) -> None:
    """Nothing was printed yet: web may act as nobody, and says which command gives it that."""
    answer = rita.submit_spec(
        "lighthouse", {"installNamespace": SHOP, "serviceAccountName": "installer", "sources": []}
    )
    assert (answer.status_code, answer.json()["code"]) == (503, "missing-right"), answer.text
    assert f"Pratique is not allowed to impersonate rita on cluster {NAME}" in answer.json()["detail"]
    assert f"pratique-manage rights --cluster {NAME} | kubectl apply -f -" in answer.json()["detail"]


def _check_written_with_kubectl(household: Household, rita: Person) -> None:
    """The watch reads, by its own rights, that the policies behind the author's stamp were still in force."""
    sure = "select 1 from approvals_authoradmission where sure_from is not null"
    household.until(lambda: household.machine.rows(sure), "the policies are known to be in force")
    spec = {
        "installNamespace": SHOP,
        "serviceAccountName": "installer",
        "format": "plain",
        "sources": [{"kind": "http", "http": household.archive("tugboat", "1.0.0")}],
    }
    wish = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "tugboat"}}
    by_rita = ("--as", "rita", "--as-group", "requesters", "--as-group", "system:authenticated")
    household.kubectl("create", "-f", "-", *by_rita, given=yaml.safe_dump({**wish, "spec": spec}))
    request = rita.until("tugboat", 1, ["in_review"])
    assert [one["username"] for one in request["requesters"]] == ["rita"]
    assert request["is_requester_known"]


def _check_put_back(household: Household, rita: Person, alice: Person, spec: dict[str, Any]) -> None:
    """The next version is applied, is never healthy, and what ran before it is put back, with the same accounts."""
    source = {"kind": "http", "http": {**household.archive("lighthouse", LATER), "auth": {"secret": {"name": "pull"}}}}
    never = {"path": "metadata.labels.shape", "value": "ship"}
    failing = {
        **spec,
        "sources": [source],
        "onFailure": "RestorePrevious",
        "progressDeadlineMinutes": 1,
        "healthChecks": [{"apiVersion": "apps/v1", "kind": "Deployment", "fieldValue": never}],
    }
    assert _rhythm(household) == "3 s on, 7 s off"
    answer = rita.change("lighthouse", failing)
    assert answer.status_code == 200, answer.text
    household.grant()
    alice.approve(alice.until("lighthouse", 2, ["in_review"]))
    household.until(lambda: _rhythm(household) == "1 s on, 1 s off", "the later version is written")
    assert alice.until("lighthouse", 2, ["restoring", "failed"])["problem_code"] == "progress-deadline-exceeded"
    request = alice.until("lighthouse", 2, ["failed"])
    assert request["problem"].endswith("revision 1 was restored"), request["problem"]
    assert _rhythm(household) == "3 s on, 7 s off"


def _write_rules(household: Household, rita: Person) -> None:
    """What says how requests are decided is read as Pratique and written as the person."""
    resources = ",".join(f"{plural}.core.rukpak.io" for plural in RULES.values())
    household.kubectl("create", "clusterrole", "rules", "--verb=*", f"--resource={resources}")
    household.kubectl("create", "clusterrolebinding", "rules", "--clusterrole=rules", "--user=rita")
    about, until = (
        {"selector": {"names": ["other"]}},
        {"rule": "RB-01", "subject": "x", "expires": "2027-06-30T00:00:00Z"},
    )
    guard = {"effect": "Guard", "validations": [{"expression": "true"}], "validationActions": ["Audit"]}
    specs: dict[str, dict[str, Any]] = {
        "approval-rules": {**about, "require": [{"name": "one"}]},
        "approval-policies": {"matchConstraints": {"names": ["other"]}, **guard},
        "change-windows": {**about, "type": "Deny"},
        "external-checks": {**about, "url": "https://checks.example.com/tickets"},
        "finding-exceptions": {**about, "reason": "as agreed", **until},
    }
    for slug in RULES:
        spec = specs[slug]
        made = rita.ask("POST", f"clusters/{NAME}/{slug}", {"name": "rule", "spec": spec})
        assert made.status_code == 201, made.text
        words = "reason" if slug == "finding-exceptions" else "description"
        place, changed = f"clusters/{NAME}/{slug}/rule", {"spec": {**spec, words: "changed"}}
        kept = rita.ask("PUT", place, changed, if_match=made.headers["ETag"])
        assert kept.status_code == 200, kept.text
        assert rita.ask("DELETE", place, if_match=kept.headers["ETag"]).status_code == 204


def _rhythm(household: Household) -> str:
    return str((household.api.get(SETTINGS) or {"data": {"rhythm": ""}})["data"]["rhythm"])


def printed_roles(text: str) -> int:
    return sum(1 for one in yaml.safe_load_all(text) if one and one["kind"] in ("Role", "ClusterRole"))


def _check_told(household: Household, form: ImpersonationForm) -> None:
    """In the constrained form web is to act as whoever signs in, registered or not; it says that it may not."""
    if form is ImpersonationForm.LEGACY:
        return
    notes = household.until(lambda: household.readiness().get("notes"), "what is missing is told")
    words = notes["rights"][NAME]
    assert words.startswith(
        "the account of web lacks permissions: impersonate:user-info groups.authentication.k8s.io; "
    )
    assert "the account of web lacks permissions" in household.machine.whole_log()
    household.grant()
    household.until(lambda: "notes" not in household.readiness(), "nothing is missing any more")


def _check_calls(made: set[Call]) -> None:
    """Nothing was asked but what docs/operating/rights.md says, and of web and watch nothing of it in vain."""
    done = {one for one in made if one.code < 300}
    assert {one.process for one in made} == set(Process)
    written = ("bundledeployments", *RULES.values())
    assert _as(done, "web", "rita") == {f"{verb} {plural}" for verb in WRITES_OF_PEOPLE for plural in written}
    assert _as(done, "worker", "rita") == {"get secrets"}
    assert _as(done, "watch", INSTALLING) == WATCHED
    assert {words.split()[0] for words in _as(done, "worker", INSTALLING)} <= set(REQUESTS_OF_INSTALLERS)
    for process in Process:
        held = {f"{verb} {plural}" for rule in own_rules(process) for verb in rule.verbs for plural in rule.resources}
        used = _as(done, process, "") - EVERYBODY
        assert used <= held
        if process is not Process.WORKER:
            assert used == held
    assert {one.user for one in done} == {"", "rita", INSTALLING}


def _as(done: set[Call], process: str, user: str) -> set[str]:
    return {f"{one.verb} {one.resource}" for one in done if (one.process, one.user) == (process, user)}


def _spec(household: Household) -> Any:
    return (household.api.get(LIGHTHOUSE) or {})["spec"]


def _approval(request: dict[str, object]) -> dict[str, object]:
    return {"decision": "Approve", "subject_digest": request["subject_digest"], "reason": "x", "acknowledges": []}
