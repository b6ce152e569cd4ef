"""Acting as somebody else: what the Impersonate-* headers ask for, and which rights the API server wants for it.

Legacy impersonation asks for the verb `impersonate` on each part of the wanted identity. Constrained impersonation
(Kubernetes 1.36, KEP-5284) is tried first: each mode asks for `impersonate:<mode>` on each part, and for
`impersonate-on:<mode>:<verb>` on what the request is about. The mode `associated-node` needs a token that is bound to
a node, and there are none here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from provisioner.sandbox.status import StatusRefusal, bad_request
from provisioner.values import AccessRequest, Identity

AUTHENTICATION = "authentication.k8s.io"
ACCOUNT, NODE = "system:serviceaccount:", "system:node:"
MASTERS = "system:masters"
ACCOUNT_PARTS = 4
_EXTRA = "impersonate-extra-"
_EXTRA_KEY = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[a-z0-9._~%!$&'()*+,;=:@/-]+")
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Impersonated(Identity):
    """Somebody whom somebody else wants to be; `extra` as the headers give it, by name."""

    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def is_name_only(self) -> bool:
        return not (self.groups or self.uid or self.extra)


@dataclass(frozen=True, slots=True)
class Mode:
    """A mode of constrained impersonation, and for whom it is: `resource` is what the wanted name is asked as."""

    name: str
    resource: str

    def fits(self, wanted: Impersonated) -> bool:
        if self.resource != _resource_of(wanted.username):
            return False
        return self.resource == "users" or wanted.is_name_only

    def rights(self, wanted: Impersonated, about: Callable[[], AccessRequest]) -> list[AccessRequest]:
        """What it takes to send a request `about` this as `wanted`; raises StatusRefusal 403 for who may never."""
        request = about()
        _refuse_what_nobody_may(wanted, f"impersonate:{self.name}")
        on = replace(request, verb=f"impersonate-on:{self.name}:{request.verb}")
        return [on, *_parts(wanted, f"impersonate:{self.name}", AUTHENTICATION, self.resource)]

    def become(self, wanted: Impersonated) -> Impersonated:
        return replace(wanted, groups=_fixed_groups(wanted) or wanted.groups)


class Legacy(Mode):
    """It fits everybody, asks nothing about the request, and knows no nodes, which are users like others."""

    def fits(self, wanted: Impersonated) -> bool:
        return True

    def rights(self, wanted: Impersonated, about: Callable[[], AccessRequest]) -> list[AccessRequest]:
        resource = _resource_of(wanted.username)
        return _parts(wanted, "impersonate", "", "users" if resource == "nodes" else resource)

    def become(self, wanted: Impersonated) -> Impersonated:
        is_account = _resource_of(wanted.username) == "serviceaccounts"
        return replace(wanted, groups=_fixed_groups(wanted)) if is_account and not wanted.groups else wanted


MODES = (
    Mode("arbitrary-node", "nodes"),
    Mode("serviceaccount", "serviceaccounts"),
    Mode("user-info", "users"),
    Legacy("legacy", ""),
)


def wanted_by(headers: Mapping[str, list[str]]) -> Impersonated | None:
    """Whom the headers ask for, None where they ask for nobody; raises StatusRefusal 400 for a part of somebody."""
    username = (headers.get("impersonate-user") or [""])[0]
    groups = headers.get("impersonate-group") or []
    uid = (headers.get("impersonate-uid") or [""])[0]
    extra = tuple(
        (unquote(name.removeprefix(_EXTRA)), tuple(values))
        for name, values in sorted(headers.items())
        if name.startswith(_EXTRA)
    )
    wanted = Impersonated(username, tuple(groups), uid, extra)
    if username:
        return wanted
    if not wanted.is_name_only:
        raise bad_request(f"requested {user_info(wanted)} without impersonating a user name")
    return None


def _fixed_groups(wanted: Impersonated) -> tuple[str, ...]:
    """The groups that belong to the name of an account or a node."""
    resource = _resource_of(wanted.username)
    if resource == "serviceaccounts":
        _, _, namespace, name = wanted.username.split(":", 3)
        return Identity.of_service_account(namespace, name).groups
    return ("system:nodes",) if resource == "nodes" else ()


def user_info(identity: Identity) -> dict[str, Any]:
    """An identity as review objects show it."""
    user: dict[str, Any] = {"username": identity.username, "groups": list(identity.groups)}
    if identity.uid:
        user["uid"] = identity.uid
    if isinstance(identity, Impersonated) and identity.extra:
        user["extra"] = {name: list(values) for name, values in identity.extra}
    return user


def _refuse_what_nobody_may(wanted: Impersonated, verb: str) -> None:
    """What constrained impersonation refuses whatever is granted: masters, nameless groups, keys without a domain."""
    if MASTERS in wanted.groups:
        raise _never("groups", f"impersonating the {MASTERS} group is not allowed")
    if "" in wanted.groups:
        raise _never("groups", "impersonating the empty string group is not allowed")
    for key, values in wanted.extra:
        if not _EXTRA_KEY.fullmatch(key) or "" in values:
            raise _never("userextras", f"impersonating an invalid key in extra is not allowed: {verb} {key}")


def _never(resource: str, words: str) -> StatusRefusal:
    return StatusRefusal(403, "Forbidden", f"{resource}.{AUTHENTICATION} is forbidden: {words}")


def _resource_of(username: str) -> str:
    if username.startswith(ACCOUNT) and len(username.split(":")) == ACCOUNT_PARTS:
        return "serviceaccounts"
    is_node = username.startswith(NODE) and _NODE_NAME.fullmatch(username.removeprefix(NODE))
    return "nodes" if is_node else "users"


def _parts(wanted: Impersonated, verb: str, group: str, resource: str) -> list[AccessRequest]:
    """A right for each part of an identity. `group` is that of users, groups and accounts."""
    name, namespace = wanted.username, ""
    if resource == "serviceaccounts":
        _, _, namespace, name = wanted.username.split(":", 3)
    elif resource == "nodes":
        name = wanted.username.removeprefix(NODE)
    asked = [AccessRequest(verb, group, resource, namespace=namespace, name=name)]
    if wanted.uid:
        asked.append(AccessRequest(verb, AUTHENTICATION, "uids", name=wanted.uid))
    asked += [AccessRequest(verb, group, "groups", name=one) for one in wanted.groups]
    return asked + [
        AccessRequest(verb, AUTHENTICATION, "userextras", subresource=key, name=value)
        for key, values in wanted.extra
        for value in values
    ]
