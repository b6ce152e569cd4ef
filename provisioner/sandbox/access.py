"""Who somebody is, and what they may do: tokens, impersonation, RBAC, and the review objects that ask about both.

Legacy impersonation asks for the verb `impersonate` on each part of the wanted identity. Constrained impersonation
(Kubernetes 1.36, KEP-5284) is tried first: each mode asks for `impersonate:<mode>` on each part, and for `impersonate-
on:<mode>:<verb>` on what the request is about. The mode `associated-node` needs a token that is bound to a node, and
there are none here.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import PratiqueError
from provisioner.rbac import EffectiveRules, RbacObjects, allows_in, effective_rules
from provisioner.sandbox.calls import StatusRefusal, bad_request, invalid
from provisioner.sandbox.store import ObjectStore
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


RBAC_PLURALS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
AUTHENTICATED = "system:authenticated"
ISSUER = "https://kubernetes.default.svc"
# What a token may be for and still count here; `pratique` is what the service asks for at sign-in.
API_AUDIENCES = (ISSUER, "pratique")
DEFAULT_SECONDS = 3600
MIN_SECONDS = 600
ANONYMOUS = Identity("system:anonymous", ("system:unauthenticated",))


class Access:
    """Answers from the roles and bindings in the store; what an identity may is kept until one of those changes."""

    def __init__(self, store: ObjectStore, users: Mapping[str, Identity], key: bytes):
        self._store = store
        self._users = users
        self._key = key
        self._known: dict[Identity, EffectiveRules] = {}
        self._objects: RbacObjects | None = None
        self._last_mode: dict[str, str] = {}

    def forget(self) -> None:
        """A role or binding changed."""
        self._known, self._objects = {}, None

    # Who

    def authenticate(self, header: str) -> Identity:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        found = self.of_token(token.strip(), "")
        if found is None:
            raise StatusRefusal(401, "Unauthorized", "Unauthorized")
        return found[0]

    def of_token(self, token: str, audience: str) -> tuple[Identity, list[str]] | None:
        """(identity, audiences) of a token that counts for `audience` ("" is this API); None for any other."""
        for known, identity in self._users.items():
            if hmac.compare_digest(known.encode(), token.encode()):
                audiences = [known for known in API_AUDIENCES if known == audience or not audience]
                return (_with(identity, AUTHENTICATED), audiences) if audiences else None
        head, _, mark = token.rpartition(".")
        if not hmac.compare_digest(self._sign(head).encode(), mark.encode()):
            return None
        body = head.partition(".")[2]
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        if claims["exp"] < time.time():
            return None
        audiences = [
            claimed for claimed in claims["aud"] if claimed == audience or (not audience and claimed in API_AUDIENCES)
        ]
        if not audiences:
            return None
        account = claims["kubernetes.io"]
        live = self._store.get(("", "serviceaccounts", account["namespace"], account["serviceaccount"]["name"]))
        if live is None or live["metadata"]["uid"] != account["serviceaccount"]["uid"]:
            return None
        found = Identity.of_service_account(account["namespace"], account["serviceaccount"]["name"])
        return Identity(found.username, found.groups, live["metadata"]["uid"]), audiences

    def token_for(self, account: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
        """The TokenRequest with its status, for a ServiceAccount."""
        spec = dict(request.get("spec") or {})
        seconds = int(spec.get("expirationSeconds") or DEFAULT_SECONDS)
        if seconds < MIN_SECONDS:
            words = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
            raise invalid("TokenRequest.authentication.k8s.io", "", [("spec.expirationSeconds", words)])
        audiences = list(spec.get("audiences") or [ISSUER])
        expires = int(time.time()) + seconds
        meta = account["metadata"]
        claims = {
            "iss": ISSUER,
            "aud": audiences,
            "exp": expires,
            "sub": f"system:serviceaccount:{meta['namespace']}:{meta['name']}",
            "kubernetes.io": {
                "namespace": meta["namespace"],
                "serviceaccount": {"name": meta["name"], "uid": meta["uid"]},
            },
        }
        head = _encoded(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
        body = _encoded(json.dumps(claims).encode())
        about = {"name": meta["name"], "namespace": meta["namespace"], "creationTimestamp": _instant(time.time())}
        token = f"{head}.{body}.{self._sign(f'{head}.{body}')}"
        return {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": about,
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {"token": token, "expirationTimestamp": _instant(expires)},
        }

    def impersonate(
        self, identity: Identity, headers: Mapping[str, list[str]], about: Callable[[], AccessRequest]
    ) -> Identity:
        """The identity that the Impersonate-* headers ask for, if `identity` may be it; raises StatusRefusal 403.

        `about` is what the request does: constrained impersonation is granted for some requests only.
        """
        wanted = wanted_by(headers)
        if wanted is None:
            return identity
        refusal: StatusRefusal | None = None
        # The mode that worked last for this user first, as the API server tries them: its refusal is the one
        # said.
        last = self._last_mode.get(identity.username)
        for mode in sorted((mode for mode in MODES if mode.fits(wanted)), key=lambda mode: mode.name != last):
            try:
                for request in mode.rights(wanted, about):
                    self.check(identity, request)
            except StatusRefusal as exc:
                refusal = refusal or exc
                continue
            self._last_mode[identity.username] = mode.name
            return _with(mode.become(wanted), AUTHENTICATED)
        assert refusal is not None  # the legacy mode fits everybody
        raise refusal

    # What

    def allows(self, identity: Identity, request: AccessRequest) -> bool:
        return MASTERS in identity.groups or allows_in(self.rules_of(identity), request)

    def check(self, identity: Identity, request: AccessRequest) -> None:
        """Raise StatusRefusal 403 in the API server's words unless this is allowed."""
        if self.allows(identity, request):
            return
        if request.path:
            words = f'User "{identity.username}" cannot {request.verb} path "{request.path}"'
            raise StatusRefusal(403, "Forbidden", f"forbidden: {words}", {})
        resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
        shown = f"{request.resource}.{request.group}" if request.group else request.resource
        named = f' "{request.name}"' if request.name else ""
        place = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
        words = (
            f'{shown}{named} is forbidden: User "{identity.username}" cannot {request.verb} resource "{resource}"'
            f' in API group "{request.group}" {place}'
        )
        details = {"name": request.name, "group": request.group, "kind": request.resource}
        raise StatusRefusal(403, "Forbidden", words, {key: value for key, value in details.items() if value})

    def rules_of(self, identity: Identity) -> EffectiveRules:
        known = self._known.get(identity)
        if known is None:
            known = self._known[identity] = effective_rules(identity, self.rbac_objects())
        return known

    def rbac_objects(self) -> RbacObjects:
        if self._objects is None:
            found = [obj for plural in RBAC_PLURALS for obj in self._store.all(RBAC_GROUP, plural)]
            self._objects = RbacObjects.of(found)
        return self._objects

    # Asking about others

    def review(self, kind: str, identity: Identity, obj: dict[str, Any]) -> dict[str, Any]:
        """The review object with its status."""
        spec = obj.get("spec") or {}
        match kind:
            case "SubjectAccessReview" | "LocalSubjectAccessReview":
                groups, uid = tuple(spec.get("groups") or ()), str(spec.get("uid") or "")
                status = self._access_review(Identity(str(spec.get("user") or ""), groups, uid), spec)
            case "SelfSubjectAccessReview":
                status = self._access_review(identity, spec)
            case "SelfSubjectRulesReview":
                status = self._rules_review(identity, spec)
            case "TokenReview":
                status = self._token_review(spec)
            case _:
                status = {"userInfo": user_info(identity)}
        return {"metadata": {}, **obj, "spec": spec, "status": status}

    def _access_review(self, identity: Identity, spec: dict[str, Any]) -> dict[str, Any]:
        resource, url = spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes")
        names = ("verb", "group", "resource", "subresource", "namespace", "name")
        try:
            if url:
                request = AccessRequest(str(url.get("verb") or ""), path=str(url.get("path") or ""))
            else:
                request = AccessRequest(**{name: str(resource.get(name) or "") for name in names})
        except PratiqueError as exc:
            raise bad_request(str(exc)) from exc
        if not self.allows(identity, request):
            return {"allowed": False}
        return {"allowed": True, "reason": f"RBAC: allowed for {identity.username}"}

    def _rules_review(self, identity: Identity, spec: dict[str, Any]) -> dict[str, Any]:
        grants = self.rules_of(identity).grants_in(str(spec.get("namespace") or ""))
        resources = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}] if MASTERS in identity.groups else []
        paths = []
        for rule in (grant.rule for grant in grants):
            if rule.resources:
                named = {"resourceNames": list(rule.resource_names)} if rule.resource_names else {}
                asked = {"apiGroups": list(rule.api_groups), "resources": list(rule.resources)}
                resources.append({"verbs": list(rule.verbs), **asked, **named})
            if rule.non_resource_urls:
                paths.append({"verbs": list(rule.verbs), "nonResourceURLs": list(rule.non_resource_urls)})
        return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}

    def _token_review(self, spec: dict[str, Any]) -> dict[str, Any]:
        token = str(spec.get("token") or "")
        found = [it for audience in spec.get("audiences") or [""] if (it := self.of_token(token, audience))]
        if not found:
            return {"user": {}, "error": "invalid bearer token"}
        return {
            "authenticated": True,
            "user": user_info(found[0][0]),
            "audiences": [audience for _, audiences in found for audience in audiences],
        }

    def _sign(self, words: str) -> str:
        return _encoded(hmac.new(self._key, words.encode(), hashlib.sha256).digest())


def _with(identity: Identity, group: str) -> Identity:
    """As the API server lists them: the group that everybody is in comes last."""
    return dataclasses.replace(identity, groups=(*(other for other in identity.groups if other != group), group))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _instant(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
