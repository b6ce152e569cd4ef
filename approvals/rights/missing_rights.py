"""Which rights a process lacks, asked of the API server, and who gets them in which form; in words."""

from __future__ import annotations

import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from pathlib import Path

import yaml
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from approvals.access.port import connect, connect_as_registered
from approvals.health_endpoints import startup_checks
from approvals.models import Cluster
from approvals.rights.known_names import registered
from approvals.rights.needs import Account, ImpersonationForm, NeededRule, Process, Registered, Role, account_of, roles
from provisioner.cluster.client.access import ask, ask_self, review_self
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Forbidden, PratiqueError, Unauthenticated
from provisioner.sentences import some_phrases
from provisioner.values import AccessRequest, Identity

# KEP-5284: beta, and so on by default, from here on. An operator may switch the gate ConstrainedImpersonation off.
BETA = (1, 36)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_CONSTRAINED = re.compile(r"\bimpersonate(-on)?:[a-z]")


@dataclass(frozen=True, slots=True)
class Chosen:
    """`why` is for people, and begins after "because"."""

    form: ImpersonationForm
    why: str


def choose_form(api: Api) -> Chosen:
    """The constrained form where the API server says that it knows it, else the legacy one.

    The API server refuses an impersonation in the words of the rights that it looked for: nobody's name is used to ask
    who one is, which changes nothing. Legacy roles work on every server. Raises PratiqueError where it does not answer.
    """
    nobody = Identity(f"pratique:nobody:{secrets.token_hex(8)}")
    version = shown_version(api.version())
    try:
        review_self(api.acting_as(nobody))
    except Forbidden as exc:
        if _CONSTRAINED.search(exc.in_full):
            return Chosen(
                ImpersonationForm.CONSTRAINED,
                f"the API server ({version}) checks the verbs of constrained impersonation",
            )
        words = f"the API server ({version}) checked only the legacy verb"
        if has_beta(version):
            words += (
                "; its version supports the constrained form: either that is disabled, or this account last "
                "impersonated someone by legacy rights, which the API server tries first. Use --form "
                "constrained to choose it"
            )
        return Chosen(ImpersonationForm.LEGACY, words)
    if has_beta(version):
        return Chosen(
            ImpersonationForm.CONSTRAINED, f"the API server is {version}, which serves it unless it was switched off"
        )
    return Chosen(ImpersonationForm.LEGACY, f"the API server is {version}; the constrained form needs 1.36")


def shown_version(version: str) -> str:
    """A version in our words: this stands in a comment of what an operator applies."""
    found = _VERSION.match(version)
    return f"v{int(found[1])}.{int(found[2])}" if found else "of an unknown version"


def has_beta(version: str) -> bool:
    found = _VERSION.match(version)
    return found is not None and (int(found[1]), int(found[2])) >= BETA


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


logger = logging.getLogger(__name__)

EVERY_SECONDS = 600.0
# While a right is missing: the note goes soon after somebody has given it.
AGAIN_SECONDS = 20.0


def tell_what_is_missing(process: Process) -> threading.Thread:
    """Begin to ask, in a thread that ends with the process; nothing waits for the answers.

    What is missing is logged, once as long as it stays the same, and stands in the notes of `/readyz`. A process that
    lacks a right on one cluster still works for the others, so it is ready all the same.
    """
    thread = threading.Thread(target=_tell, args=(process, threading.Event()), daemon=True, name="rights")
    thread.start()
    return thread


def _tell(process: Process, stop: threading.Event) -> None:
    told: dict[str, str] = {}
    while True:
        try:
            found = look(process)
        except DatabaseError as exc:
            logger.warning("the database is not responding", extra={"error": type(exc).__name__})
        else:
            for cluster in sorted(found.keys() - {name for name, words in told.items() if words == found.get(name)}):
                logger.warning("rights are missing", extra={"cluster": cluster, "words": found[cluster]})
            told = found
        finally:
            close_old_connections()
        if stop.wait(AGAIN_SECONDS if told else EVERY_SECONDS):
            return


def look(process: Process) -> dict[str, str]:
    """The words about each cluster where a right is missing; clusters that do not answer have trouble of their own."""
    found = {}
    for cluster in Cluster.objects.order_by("name"):
        try:
            words = words_of(cluster.name, process, missing_of_self(cluster, connect(cluster), process))
        except PratiqueError as exc:
            logger.info("could not ask about our rights", extra={"cluster": cluster.name, "code": exc.code})
            continue
        if words:
            found[cluster.name] = words
    startup_checks.put_notes("rights", found)
    return found


# An account, or the name of a user of the cluster.
Holder = Account | str
_SYSTEM = "system:"


def accounts_of(namespace: str) -> dict[Process, Account]:
    """The ServiceAccounts of deploy/kubernetes/accounts.yaml."""
    return {process: (namespace, str(process)) for process in Process}


def shared_by_all(cluster: Cluster, api: Api, namespace: str) -> Holder | None:
    """Who the kubeconfig of the register is, by which all processes come; None where each has its own account.

    Asked of the register and of the cluster, so that it is the same wherever the command runs: what this process alone
    was given (PRATIQUE_KUBECONFIGS_DIR) says nothing of the others. Each has its own where Pratique runs in the
    cluster, where the accounts of `namespace` hold their shipped roles there, and where what is registered is nobody's
    credential.
    """
    if not cluster.kubeconfig:
        return None
    try:
        # One of them may have an older role.
        are_installed = any(
            holds_own_role(api, process, account) for process, account in accounts_of(namespace).items()
        )
    except Forbidden:  # nobody may be asked about
        are_installed = False
    if are_installed:
        return None
    try:
        name = review_self(connect_as_registered(cluster)).username
    except (Forbidden, Unauthenticated):
        return None
    return account_of(name) or (None if name.startswith(_SYSTEM) else name)


def holder_words(holder: Holder) -> str:
    return f"user {holder}" if isinstance(holder, str) else f"ServiceAccount {'/'.join(holder)}"
