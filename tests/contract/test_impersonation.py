"""Constrained impersonation: which rights the API server really asks for, and what they are worth alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.cluster.client.access import ask
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden
from provisioner.rbac import Ours, PolicyRule, PowerJudge, RbacObjects
from provisioner.values import AccessRequest, Identity, ObjectRef
from tests.contract.conftest import RBAC, Reply, Request, Server, admin
from tests.contract.objects import binding, role
from tests.support.kubernetes.live import wait_until

IDENTITY = "authentication.k8s.io"
ZOE = "zoe"
# No other test gives this group a right: one that may list would answer instead of being refused.
GUESTS = "guests-of-zoe"
CANNOT_LIST = '-zoe" cannot list'
ANY = {"apiGroups": ["*"], "resources": ["*"]}
CAROL = Identity("carol", ("developers",))
Rule = dict[str, list[str]]


def rule(group: str, resource: str, *verbs: str, name: str = "") -> Rule:
    return {
        "apiGroups": [group],
        "resources": [resource],
        "verbs": [*verbs],
        **({"resourceNames": [name]} if name else {}),
    }


def on(mode: str, *verbs: str) -> Rule:
    """The half about the request: these verbs on ConfigMaps."""
    return rule("", "configmaps", *(f"impersonate-on:{mode}:{verb}" for verb in verbs))


def its(server: Server, name: str) -> str:
    """Zoe is another one in each test: for some seconds the API server remembers whom carol was allowed to be."""
    return f"{server.namespace}-zoe" if name == ZOE else name


class Granted:
    """Rights of carol's for the whole cluster, as long as a test runs."""

    def __init__(self, server: Server):
        self.server, self.name = server, f"{server.namespace}-as"

    def give(self, *rules: Rule) -> None:
        rules = tuple(
            {**one, "resourceNames": [its(self.server, it) for it in one["resourceNames"]]}
            if "resourceNames" in one
            else one
            for one in rules
        )
        role_, binding_ = role(self.name, *rules), binding(self.name, "carol")
        self.server.ask("POST", f"{RBAC}/clusterroles", {**role_, "kind": "ClusterRole"})
        self.server.ask("POST", f"{RBAC}/clusterrolebindings", {**binding_, "kind": "ClusterRoleBinding"})
        for given in rules:
            self._until(given)

    def _until(self, given: Rule) -> None:
        resource, _, subresource = given["resources"][0].partition("/")
        name = (given.get("resourceNames") or [""])[0]
        for verb in given["verbs"]:
            question = AccessRequest(verb, given["apiGroups"][0], resource, subresource, "", name)
            wait_until(lambda it=question: self.may(it), f"the right to {question}")

    def may(self, question: AccessRequest) -> bool:
        return ask(admin(self.server.endpoint), CAROL, question).allowed

    def take(self) -> None:
        self.server.ask("DELETE", f"{RBAC}/clusterrolebindings/{self.name}-carol")
        self.server.ask("DELETE", f"{RBAC}/clusterroles/{self.name}")


@pytest.fixture
def carol(server: Server) -> Iterator[Granted]:
    granted = Granted(server)
    yield granted
    granted.take()


def send(server: Server, method: str, user: str, *, body: Any = None, **headers: str) -> Reply:
    named = {"Impersonate-User": its(server, user), **{f"Impersonate-{key}": value for key, value in headers.items()}}
    return server.send(Request(method, server.place(), body, user="carol", headers=named))


def is_impersonation_refused(reply: Reply) -> bool:
    """Whether carol was refused, and not the one whom she would be."""
    return reply.code == 403 and 'User "carol"' in reply.message


def test_S28_both_halves_make_one_somebody_else_for_that_request_only(server: Server, carol: Granted) -> None:
    carol.give(rule(IDENTITY, "users", "impersonate:user-info", name=ZOE), on("user-info", "list"))
    refused = send(server, "GET", ZOE)
    assert (refused.code, CANNOT_LIST in refused.message) == (403, True)
    other = send(server, "POST", ZOE, body={"metadata": {"name": "x"}})
    assert is_impersonation_refused(other), other.message
    assert "impersonate-on:user-info:create" in other.message
    assert is_impersonation_refused(send(server, "GET", "alice"))


@pytest.mark.parametrize("half", ["who", "what"])
def test_S28_a_half_alone_makes_nobody_somebody_else(server: Server, carol: Granted, half: str) -> None:
    who = rule(IDENTITY, "users", "impersonate:user-info", name=ZOE)
    carol.give(who if half == "who" else on("user-info", "list"))
    assert is_impersonation_refused(send(server, "GET", ZOE))


@pytest.mark.parametrize(
    ("headers", "right"),
    [
        ({"Group": GUESTS}, rule(IDENTITY, "groups", "impersonate:user-info", name=GUESTS)),
        ({"Uid": "u-1"}, rule(IDENTITY, "uids", "impersonate:user-info", name="u-1")),
        (
            {"Extra-Acme.io%2fscopes": "x"},
            rule(IDENTITY, "userextras/acme.io/scopes", "impersonate:user-info", name="x"),
        ),
    ],
    ids=["group", "uid", "extra"],
)
def test_S28_each_part_is_asked_in_the_group_of_identities(
    server: Server, carol: Granted, headers: dict[str, str], right: Rule
) -> None:
    carol.give(rule(IDENTITY, "users", "impersonate:user-info", name=ZOE), on("user-info", "list"))
    assert not is_impersonation_refused(send(server, "GET", ZOE))
    assert is_impersonation_refused(send(server, "GET", ZOE, **headers))
    carol.take()
    carol.give(rule(IDENTITY, "users", "impersonate:user-info", name=ZOE), on("user-info", "list"), right)
    reply = send(server, "GET", ZOE, **headers)
    assert (reply.code, CANNOT_LIST in reply.message) == (403, True), reply.message


def test_S28_legacy_rights_in_the_group_of_identities_are_none(server: Server, carol: Granted) -> None:
    carol.give(rule(IDENTITY, "users", "impersonate"), on("user-info", "list"))
    assert is_impersonation_refused(send(server, "GET", ZOE))


def test_S28_masters_are_nobody_by_constrained_impersonation(server: Server, carol: Granted) -> None:
    every = rule(IDENTITY, "users", "impersonate:user-info")
    carol.give(every, rule(IDENTITY, "groups", "impersonate:user-info"), on("user-info", "list"))
    # The refusal that is said is that of the mode which worked last.
    assert not is_impersonation_refused(send(server, "GET", ZOE))
    refused = send(server, "GET", ZOE, Group="system:masters")
    assert refused.code == 403
    assert "system:masters group is not allowed" in refused.message


def test_S28_an_extra_without_a_domain_is_refused_whatever_is_granted(server: Server, carol: Granted) -> None:
    every = (rule(IDENTITY, "users", "impersonate:user-info"), rule(IDENTITY, "userextras/*", "impersonate:user-info"))
    carol.give(*every, rule(IDENTITY, "userextras/scopes", "impersonate:user-info"), on("user-info", "list"))
    assert not is_impersonation_refused(send(server, "GET", ZOE))
    refused = send(server, "GET", ZOE, **{"Extra-Scopes": "x"})
    assert refused.code == 403
    assert "impersonating an invalid key in extra is not allowed" in refused.message


def test_S28_an_account_is_a_mode_of_its_own(server: Server, carol: Granted) -> None:
    username = f"system:serviceaccount:{server.namespace}:robot"
    carol.give(rule(IDENTITY, "users", "impersonate:user-info"), on("user-info", "list"))
    assert is_impersonation_refused(send(server, "GET", username))
    carol.take()
    being = rule(IDENTITY, "serviceaccounts", "impersonate:serviceaccount", name="robot")
    carol.give(being, on("serviceaccount", "list"))
    reply = send(server, "GET", username)
    assert (reply.code, f'User "{username}" cannot list' in reply.message) == (403, True)
    assert is_impersonation_refused(send(server, "GET", username, Group=GUESTS))


def test_S28_a_node_is_a_mode_of_its_own(server: Server, carol: Granted) -> None:
    carol.give(rule(IDENTITY, "nodes", "impersonate:arbitrary-node", name="n-1"), on("arbitrary-node", "list"))
    assert not is_impersonation_refused(send(server, "GET", "system:node:n-1"))
    assert is_impersonation_refused(send(server, "GET", "system:node:n-2"))


@pytest.mark.parametrize("half", ["who", "what"])
def test_which_half_is_missing_is_said_also_where_the_object_is_a_secret(
    server: Server, carol: Granted, half: str
) -> None:
    """Of a Secret no word of the server is kept but who lacks which right."""
    given = {"who": on("user-info", "get"), "what": rule(IDENTITY, "users", "impersonate:user-info", name=ZOE)}[half]
    carol.give({**given, "resources": ["secrets"]} if half == "who" else given)
    api = ClusterClient.connect(server.endpoint.kubeconfig("carol")).acting_as(Identity(its(server, ZOE)))
    with pytest.raises(Forbidden) as refusal:
        api.get(ObjectRef("", "v1", "Secret", server.namespace, "s"))
    verb = "impersonate:user-info" if half == "who" else "impersonate-on:user-info:get"
    assert f'User "carol" cannot {verb} resource' in str(refusal.value)


def test_S07_every_request_is_asked_by_stars(server: Server, carol: Granted) -> None:
    """What access.may_use_account asks: only a rule over everything answers it, whatever is listed."""
    verb = "impersonate-on:serviceaccount:get"
    carol.give(on("serviceaccount", "get"))
    assert not carol.may(AccessRequest(verb, "*", "*"))
    carol.take()
    carol.give({**ANY, "verbs": [verb]})
    assert carol.may(AccessRequest(verb, "*", "*"))
    assert not carol.may(AccessRequest("impersonate-on:serviceaccount:list", "*", "*"))


@pytest.mark.parametrize(
    "right",
    [
        rule("", "users", "impersonate", name=ZOE),
        rule(IDENTITY, "userextras/scopes", "impersonate"),
        rule(IDENTITY, "users", "impersonate:user-info", name=ZOE),
        rule("", "serviceaccounts/token", "create"),
        rule("*", "*/status", "patch"),
        rule("rbac.authorization.k8s.io", "clusterroles", "bind", name="cluster-admin"),
    ],
    ids=lambda it: f"{it['verbs'][0]} {it['resources'][0]}",
)
def test_S28_what_is_counted_as_power_is_what_the_api_server_grants(
    server: Server, carol: Granted, right: Rule
) -> None:
    assert PowerJudge(Ours("pratique"), RbacObjects()).powers([(PolicyRule.from_object(right), "")])
    carol.give(right)
