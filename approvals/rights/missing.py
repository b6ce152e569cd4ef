"""Which rights a process lacks, asked of the API server, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice, product
from pathlib import Path

import yaml
from django.conf import settings

from approvals.models import Cluster
from approvals.rights.form import choose_form
from approvals.rights.needs import Account, ImpersonationForm, NeededRule, Process, Registered, Role, roles
from approvals.rights.registered import registered
from provisioner.cluster.client.access import ask, ask_self
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.sentences import some_phrases
from provisioner.values import AccessRequest, Identity

# Of a cluster with thousands of people, the first ones tell that somebody has to print the roles again.
MAX_QUESTIONS = 500
PARALLEL = 8
MAX_NAMED = 5

May = Callable[[AccessRequest], bool]


def missing_of_self(cluster: Cluster, api: Api, process: Process) -> list[AccessRequest]:
    """What `process`, met by `api` as itself, lacks; raises PratiqueError where it cannot be asked."""
    return _missing(registered(cluster, api), choose_form(api).form, process, lambda question: ask_self(api, question))


def missing_of_account(cluster: Cluster, api: Api, process: Process, account: Account) -> list[AccessRequest]:
    """The same of `account`, asked by somebody who may ask about others."""
    who = Identity.of_service_account(*account)
    return _missing(
        registered(cluster, api), choose_form(api).form, process, lambda question: ask(api, who, question).allowed
    )


def holds_own_role(api: Api, process: Process, account: Account) -> bool:
    """Whether the account may do what its process does as itself; Forbidden where `api` may not ask about others."""
    who = Identity.of_service_account(*account)
    return not _refused(_questions(own_rules(process)), lambda question: ask(api, who, question).allowed)


def words_of(
    cluster: str, process: Process, missing: Sequence[AccessRequest], one_account: Account | None = None
) -> str:
    """Which rights are missing, and what to do; "" where none is. `one_account` is what all processes use there."""
    if not missing:
        return ""
    named = some_phrases(missing, MAX_NAMED)
    as_itself = not set(missing).isdisjoint(_questions(own_rules(process)))
    by_roles = f"bind the role pratique-{process} (deploy/rbac.yaml), and " if as_itself else ""
    account = f" --account {'/'.join(one_account)}" if one_account else ""
    command = f"pratique-manage rights --cluster {cluster}{account} | kubectl apply -f -"
    return f"the account of {process} lacks permissions: {named}. To grant them, {by_roles}run: {command}"


def _missing(known: Registered, form: ImpersonationForm, process: Process, may: May) -> list[AccessRequest]:
    """Without what the legacy roles, which count on every server, give as well."""
    own = _refused(_questions(own_rules(process)), may)
    wanted = list(_questions_of(roles(known, form, [process])))
    lacking = _refused(wanted, may)
    if lacking and form is ImpersonationForm.CONSTRAINED:
        # Where nobody is registered, legacy roles name nobody: that says nothing of whether they are there.
        by_legacy = list(_questions_of(roles(known, ImpersonationForm.LEGACY, [process])))
        lacking = [] if by_legacy and not _refused(by_legacy, may) else lacking
    return [*own, *lacking]


def _refused(questions: Iterable[AccessRequest], may: May) -> list[AccessRequest]:
    wanted = list(islice(dict.fromkeys(questions), MAX_QUESTIONS))
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return [question for question, allowed in zip(wanted, pool.map(may, wanted), strict=True) if not allowed]


def _questions_of(some: Iterable[Role]) -> Iterator[AccessRequest]:
    for role in some:
        yield from _questions(role.rules, role.namespace)


def _questions(rules: Iterable[NeededRule], namespace: str = "") -> Iterator[AccessRequest]:
    for rule in rules:
        for verb, resource, name in product(rule.verbs, rule.resources, rule.names or ("",)):
            plural, _, subresource = resource.partition("/")
            yield AccessRequest(verb, rule.group, plural, subresource, namespace, name)


@cache
def own_rules(process: Process) -> tuple[NeededRule, ...]:
    """What a process does as itself: its role in deploy/rbac.yaml."""
    text = (Path(settings.BASE_DIR) / "deploy/rbac.yaml").read_text()
    (role,) = [one for one in yaml.safe_load_all(text) if one["metadata"]["name"] == f"pratique-{process}"]
    return tuple(
        NeededRule(group, tuple(rule["resources"]), tuple(rule["verbs"]), tuple(rule.get("resourceNames") or ()))
        for rule in role["rules"]
        for group in rule["apiGroups"]
    )
