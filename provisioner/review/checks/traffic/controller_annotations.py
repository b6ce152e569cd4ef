"""Annotations that controllers of ingresses, gateways and load balancers run as configuration, or that guard access or
send traffic elsewhere (ING), as a table. A name in it that ends with `*` stands for all that begin so."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from provisioner.json_values import mapping, value_at
from provisioner.masking import masked
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.review.rules import Phrase
from provisioner.values import Action, Finding, GroupKind, JsonObject, PlannedAction, Section, Severity


class Effect(StrEnum):
    """RUNS: the controller takes the value into its own configuration as it is. GUARDS: the value keeps somebody out.
    LETS_IN and KEEPS_OUT: so does this list of networks. LEADS: the value decides where traffic goes."""

    RUNS = "runs"
    GUARDS = "guards"
    LETS_IN = "lets in"
    KEEPS_OUT = "keeps out"
    LEADS = "leads"


@dataclass(frozen=True, slots=True)
class Annotation:
    """`why` names the text in the file of its rule that says what it does. `off` are values that guard nothing;
    `default` is what counts without it.

    One that `matters_when_new` is told of new objects too, which nobody reached before: it concerns others as well.
    """

    name: str
    effect: Effect
    why: str
    off: frozenset[str] = frozenset()
    default: str = ""
    matters_when_new: bool = False

    @property
    def rule(self) -> str:
        """The rule that judges it."""
        return {Effect.RUNS: "ING-01", Effect.LEADS: "ING-03"}.get(self.effect, "ING-02")


_FALSE = frozenset({"", "false"})
_OPEN = frozenset({"", "0.0.0.0/0", "0.0.0.0/0,::/0", "::/0", "::/0,0.0.0.0/0"})


def _each(
    prefixes: str,
    names: str,
    effect: Effect,
    why: str,
    *,
    off: frozenset[str] = frozenset({""}),
    default: str = "",
    matters_when_new: bool = False,
) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(f"{prefix}{name}", effect, why, off, default, matters_when_new)
        for prefix in prefixes.split()
        for name in names.split()
    )


_NGINX = "nginx.ingress.kubernetes.io/"
_HAPROXY = "haproxy-ingress.github.io/ ingress.kubernetes.io/"
_ALB = "alb.ingress.kubernetes.io/"
_ON_SERVICE = "service.beta.kubernetes.io/ service.kubernetes.io/"
_ROUTER = "haproxy.router.openshift.io/"

ANNOTATIONS: tuple[Annotation, ...] = (
    # Lines of configuration.
    *_each(
        _NGINX,
        "configuration-snippet server-snippet stream-snippet auth-snippet modsecurity-snippet",
        Effect.RUNS,
        "copied",
    ),
    *_each("nginx.org/", "location-snippets server-snippets", Effect.RUNS, "copied"),
    *_each("angie.software/", "location-snippets server-snippets", Effect.RUNS, "copied"),
    *_each(_HAPROXY, "config-backend config-tcp-service", Effect.RUNS, "copied"),
    *_each("haproxy.org/", "backend-config-snippet", Effect.RUNS, "copied"),
    *_each("getambassador.io/", "config", Effect.RUNS, "objects"),
    # Who has to sign in, and how that is checked.
    *_each(f"{_NGINX} {_HAPROXY}", "auth-url auth-signin", Effect.GUARDS, "service", matters_when_new=True),
    *_each(
        _NGINX,
        "auth-type auth-secret auth-secret-type auth-method auth-request-redirect auth-cache-key",
        Effect.GUARDS,
        "sign-in",
    ),
    *_each(_HAPROXY, "auth-type auth-secret", Effect.GUARDS, "sign-in"),
    *_each(_NGINX, "auth-tls-secret auth-tls-verify-depth auth-tls-match-cn", Effect.GUARDS, "client-certificates"),
    *_each(_HAPROXY, "auth-tls-secret auth-tls-strict", Effect.GUARDS, "client-certificates"),
    *_each(
        f"{_NGINX} {_HAPROXY}",
        "auth-tls-verify-client",
        Effect.GUARDS,
        "certificate-needed",
        off=frozenset({"off", "optional_no_ca"}),
        default="on",
    ),
    *_each(_NGINX, "enable-global-auth", Effect.GUARDS, "sign-in-of-all", off=_FALSE, default="true"),
    *_each(_NGINX, "satisfy", Effect.GUARDS, "one-check", off=frozenset({"any"}), default="all"),
    *_each(_NGINX, "enable-modsecurity enable-owasp-core-rules", Effect.GUARDS, "firewall-of-requests", off=_FALSE),
    *_each(_HAPROXY, "waf waf-mode", Effect.GUARDS, "firewall-of-requests"),
    *_each(_HAPROXY, "oauth oauth-uri-prefix oauth-headers", Effect.GUARDS, "oauth"),
    *_each("nginx.org/", "basic-auth-secret policies", Effect.GUARDS, "credentials"),
    *_each("nginx.com/", "jwt-key jwt-token jwt-login-url", Effect.GUARDS, "tokens"),
    *_each(
        "appprotect.f5.com/",
        "app-protect-enable app-protect-policy",
        Effect.GUARDS,
        "firewall-of-requests",
        off=frozenset({"", "False", "false"}),
    ),
    *_each("haproxy.org/", "auth-type auth-secret", Effect.GUARDS, "sign-in"),
    *_each("traefik.ingress.kubernetes.io/", "router.middlewares router.tls.options", Effect.GUARDS, "middlewares"),
    *_each("konghq.com/", "plugins", Effect.GUARDS, "plugins"),
    *_each(_ALB, "auth-type", Effect.GUARDS, "load-balancer-asks", off=frozenset({"", "none"})),
    *_each(
        _ALB,
        "auth-on-unauthenticated-request",
        Effect.GUARDS,
        "not-signed-in",
        off=frozenset({"allow"}),
        default="authenticate",
    ),
    *_each(
        _ALB,
        "auth-idp-cognito auth-idp-oidc auth-scope mutual-authentication jwt-validation",
        Effect.GUARDS,
        "load-balancer-sign-in",
    ),
    *_each(
        _ALB,
        "wafv2-acl-arn wafv2-acl-name waf-acl-id web-acl-id shield-advanced-protection",
        Effect.GUARDS,
        "firewall-before",
        off=_FALSE,
    ),
    *_each("cloud.google.com/ beta.cloud.google.com/", "backend-config", Effect.GUARDS, "backend-config"),
    *_each("appgw.ingress.kubernetes.io/", "waf-policy-for-path", Effect.GUARDS, "firewall-of-requests"),
    # Whose addresses are let in.
    *_each(
        f"{_NGINX} {_HAPROXY}", "whitelist-source-range allowlist-source-range", Effect.LETS_IN, "let-in", off=_OPEN
    ),
    *_each(f"{_NGINX} {_HAPROXY}", "denylist-source-range", Effect.KEEPS_OUT, "kept-out"),
    *_each("haproxy.org/", "allow-list whitelist", Effect.LETS_IN, "let-in", off=_OPEN),
    *_each("haproxy.org/", "deny-list blacklist", Effect.KEEPS_OUT, "kept-out"),
    *_each("traefik.ingress.kubernetes.io/", "whitelist-source-range", Effect.LETS_IN, "let-in", off=_OPEN),
    *_each(_ROUTER, "ip_whitelist ip_allowlist", Effect.LETS_IN, "let-in", off=_OPEN),
    *_each(_ALB, "inbound-cidrs", Effect.LETS_IN, "reached-from", off=_OPEN),
    *_each(_ON_SERVICE, "load-balancer-source-ranges", Effect.LETS_IN, "reached-from", off=_OPEN),
    *_each("service.beta.kubernetes.io/", "azure-allowed-ip-ranges", Effect.LETS_IN, "reached-from", off=_OPEN),
    *_each("service.beta.kubernetes.io/", "azure-allowed-service-tags", Effect.GUARDS, "reached-from-azure"),
    *_each(
        "service.beta.kubernetes.io/",
        "azure-deny-all-except-load-balancer-source-ranges",
        Effect.GUARDS,
        "only-named-ranges",
        off=_FALSE,
    ),
    *_each(_ALB, "security-groups security-group-prefix-lists frontend-nlb-security-groups", Effect.GUARDS, "firewall"),
    *_each(
        _ON_SERVICE,
        "aws-load-balancer-security-groups aws-load-balancer-extra-security-groups "
        "aws-load-balancer-security-group-prefix-lists",
        Effect.GUARDS,
        "firewall",
    ),
    *_each(
        _ON_SERVICE,
        "aws-load-balancer-disable-nlb-sg",
        Effect.GUARDS,
        "keeps-firewall",
        off=frozenset({"true"}),
        default="false",
    ),
    *_each(
        f"{_ALB}",
        "scheme frontend-nlb-scheme",
        Effect.GUARDS,
        "inside",
        off=frozenset({"internet-facing"}),
        default="internal",
    ),
    # Encryption on the way.
    *_each(_NGINX, "ssl-redirect", Effect.GUARDS, "redirect-to-tls", off=_FALSE, default="true"),
    *_each(_NGINX, "force-ssl-redirect", Effect.GUARDS, "redirect-to-tls", off=_FALSE),
    *_each("nginx.org/", "redirect-to-https", Effect.GUARDS, "redirect-to-tls", off=_FALSE),
    *_each(
        "haproxy.org/ haproxy-ingress.github.io/ appgw.ingress.kubernetes.io/",
        "ssl-redirect",
        Effect.GUARDS,
        "redirect-to-tls",
        off=_FALSE,
    ),
    *_each(_ALB, "ssl-redirect", Effect.GUARDS, "redirect-to-tls"),
    *_each(
        "kubernetes.io/", "ingress.allow-http", Effect.GUARDS, "plain-text", off=frozenset({"true"}), default="true"
    ),
    *_each(_NGINX, "proxy-ssl-verify", Effect.GUARDS, "certificate-of-pods", off=frozenset({"", "off"})),
    # Where traffic goes.
    *_each(_NGINX, "mirror-target mirror-host", Effect.LEADS, "copies", matters_when_new=True),
    *_each(_NGINX, "permanent-redirect temporal-redirect", Effect.LEADS, "redirects", matters_when_new=True),
    *_each(_HAPROXY, "redirect-to", Effect.LEADS, "redirects", matters_when_new=True),
    *_each("haproxy.org/", "request-redirect", Effect.LEADS, "redirects", matters_when_new=True),
    *_each(_NGINX, "upstream-vhost rewrite-target app-root server-alias", Effect.LEADS, "host-and-path"),
    *_each(_HAPROXY, "rewrite-target app-root server-alias server-alias-regex", Effect.LEADS, "host-and-path"),
    *_each(_NGINX, "default-backend", Effect.LEADS, "default-service"),
    *_each(_ALB, "actions.* conditions.* transforms.*", Effect.LEADS, "load-balancer-rule", matters_when_new=True),
    *_each(_ALB, "group.name", Effect.LEADS, "shared", matters_when_new=True),
    *_each(
        "external-dns.alpha.kubernetes.io/",
        "hostname internal-hostname target",
        Effect.LEADS,
        "dns",
        matters_when_new=True,
    ),
    *_each("kubernetes.io/", "ingress.class", Effect.LEADS, "controller"),
)

_EXACT = {entry.name: entry for entry in ANNOTATIONS if not entry.name.endswith("*")}
_STARTS = {entry.name.removesuffix("*"): entry for entry in ANNOTATIONS if entry.name.endswith("*")}

_RUN = ReviewRule("ING-01", Section.OBJECTS, Severity.DANGEROUS)
_RUN_NO_MORE = ReviewRule("ING-01", Section.OBJECTS, Severity.NOTABLE)
_OPENED = ReviewRule("ING-02", Section.OBJECTS, Severity.DANGEROUS)
_GUARDED = ReviewRule("ING-02", Section.OBJECTS, Severity.NOTABLE)
_LED_ELSEWHERE = ReviewRule("ING-03", Section.OBJECTS, Severity.DANGEROUS)
_LED = ReviewRule("ING-03", Section.OBJECTS, Severity.NOTABLE)

_GATEWAY = "gateway.networking.k8s.io"
KINDS = frozenset(
    {
        GroupKind("", "Service"),
        GroupKind("networking.k8s.io", "Ingress"),
        GroupKind("extensions", "Ingress"),
        GroupKind("route.openshift.io", "Route"),
        *(GroupKind(_GATEWAY, f"{which}Route") for which in ("HTTP", "GRPC", "TLS", "TCP", "UDP")),
        GroupKind(_GATEWAY, "Gateway"),
    }
)
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})
MAX_VALUE = 300
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class _Change:
    """One annotation of the table that changes, None where it is not there; `is_new` where its object is."""

    entry: Annotation
    name: str
    old: str | None
    new: str | None
    is_new: bool


def find_annotation(name: str) -> Annotation | None:
    """Return what the table says of an annotation, None where it is not in it."""
    return _EXACT.get(name) or next((entry for start, entry in _STARTS.items() if name.startswith(start)), None)


def compare_annotations(facts: Facts) -> Iterator[Finding]:
    """Yield one finding for all annotations of an object of which the same is to be said."""
    for planned in facts.plan.actions:
        if planned.action not in _WRITES or planned.after is None or planned.ref.group_kind not in KINDS:
            continue
        judged = [(*verdict, change) for change in _find_changes(planned) if (verdict := _judge(change)) is not None]
        judged.sort(key=lambda item: (item[0].id, item[0].severity.rank, item[1], item[2].name))
        for (rule, variant), group in groupby(judged, key=lambda item: item[:2]):
            changes = [change for _, _, change in group]
            names, shown = dict[str, list[str]](), []
            for change in changes:
                names.setdefault(change.entry.why, []).append(change.name)
                before, after = (
                    None if side is None else masked(side)[:MAX_VALUE] for side in (change.old, change.new)
                )
                why = Phrase.of(change.entry.rule, f"why.{change.entry.why}")
                shown.append({"name": change.name, "before": before, "after": after, "why": why})
            yield rule.finding(
                variant,
                planned.ref,
                where=("metadata", "annotations", *([changes[0].name] if len(changes) == 1 else [])),
                key=[variant, *([change.name, change.old, change.new] for change in changes)],
                annotations=shown,
                reasons=[Phrase.of(rule.id, "reasons.why", names=several, why=why) for why, several in names.items()],
            )


def _find_changes(planned: PlannedAction) -> Iterator[_Change]:
    sides: list[JsonObject | None] = [planned.before, planned.after]
    old, new = (mapping(value_at(side, "metadata", "annotations")) for side in sides)
    for name in sorted({*old, *new}, key=str):
        entry = find_annotation(str(name))
        if entry is not None and old.get(name) != new.get(name):
            before, after = (None if side.get(name) is None else str(side[name]) for side in (old, new))
            yield _Change(entry, str(name), before, after, is_new=planned.before is None)


def _judge(change: _Change) -> tuple[ReviewRule, str] | None:
    """Return the rule and the variant that speak of a change, None where nothing is to be said."""
    entry = change.entry
    if entry.effect is Effect.RUNS:
        return (_RUN_NO_MORE, "loses-lines") if change.new is None else (_RUN, "gives-lines")
    if entry.effect is not Effect.LEADS:
        return _judge_guard(change)
    if change.is_new:
        return (_LED, "has") if entry.matters_when_new else None
    if change.new is None:
        return _LED, "no-longer-has"
    return _LED_ELSEWHERE, "sets" if change.old is None else "changes"


def _judge_guard(change: _Change) -> tuple[ReviewRule, str] | None:
    entry, sides = change.entry, []
    for value in (change.old, change.new):
        counted = (entry.default if value is None else value).strip()
        # None where it keeps nobody out.
        sides.append(None if counted.replace(" ", "") in entry.off else counted)
    old, new = sides
    if change.is_new and new is None:
        return (_GUARDED, "leaves-open") if change.new else None
    if change.is_new:
        return (_GUARDED, "has") if entry.matters_when_new else None
    if old == new:
        return None
    if old is None:
        return _GUARDED, "newly-guards"
    if new is None:
        return _OPENED, "no-longer-guards"
    return (_GUARDED, "lets-in-fewer") if _is_stricter(entry.effect, old, new) else (_OPENED, "guards-otherwise")


def _is_stricter(effect: Effect, old: str, new: str) -> bool:
    """Whether a list of networks that are let in is part of the one before, or one of those kept out has all of it."""
    if effect not in (Effect.LETS_IN, Effect.KEEPS_OUT):
        return False
    before, after = _read_networks(old), _read_networks(new)
    inner, outer = (after, before) if effect is Effect.LETS_IN else (before, after)
    return bool(inner and outer) and all(any(_is_part(network, wide) for wide in outer) for network in inner)


def _read_networks(value: str) -> list[_Network]:
    """Return the networks of a list; none where one of them is no network: it may be the name of a list."""
    try:
        return [ipaddress.ip_network(network, strict=False) for network in value.replace(",", " ").split()]
    except ValueError:
        return []


def _is_part(network: _Network, wide: _Network) -> bool:
    if isinstance(wide, ipaddress.IPv4Network) and isinstance(network, ipaddress.IPv4Network):
        return network.subnet_of(wide)
    if isinstance(wide, ipaddress.IPv6Network) and isinstance(network, ipaddress.IPv6Network):
        return network.subnet_of(wide)
    return False


# A guard that a new object has from the start keeps nobody out who was let in before.
CLAIMS = tuple(
    Claim(rule, KINDS, tuple(f"metadata.annotations.[{entry.name}]" for entry in ANNOTATIONS if entry.rule == rule))
    for rule in sorted({entry.rule for entry in ANNOTATIONS})
)
CHECK = Check("annotations that controllers read", changes=compare_annotations, claims=CLAIMS)
