"""What annotations make controllers of ingresses, gateways and load balancers do, as data.

Only those that are run as configuration, that guard access, or that send traffic elsewhere. A name ending with `*`
stands for all that begin so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    *_each(
        f"{_NGINX} {_HAPROXY}",
        "auth-url auth-signin",
        Effect.GUARDS,
        "service",
        matters_when_new=True,
    ),
    *_each(
        _NGINX,
        "auth-type auth-secret auth-secret-type auth-method auth-request-redirect auth-cache-key",
        Effect.GUARDS,
        "sign-in",
    ),
    *_each(_HAPROXY, "auth-type auth-secret", Effect.GUARDS, "sign-in"),
    *_each(
        _NGINX,
        "auth-tls-secret auth-tls-verify-depth auth-tls-match-cn",
        Effect.GUARDS,
        "client-certificates",
    ),
    *_each(_HAPROXY, "auth-tls-secret auth-tls-strict", Effect.GUARDS, "client-certificates"),
    *_each(
        f"{_NGINX} {_HAPROXY}",
        "auth-tls-verify-client",
        Effect.GUARDS,
        "certificate-needed",
        off=frozenset({"off", "optional_no_ca"}),
        default="on",
    ),
    *_each(
        _NGINX,
        "enable-global-auth",
        Effect.GUARDS,
        "sign-in-of-all",
        off=_FALSE,
        default="true",
    ),
    *_each(
        _NGINX,
        "satisfy",
        Effect.GUARDS,
        "one-check",
        off=frozenset({"any"}),
        default="all",
    ),
    *_each(
        _NGINX,
        "enable-modsecurity enable-owasp-core-rules",
        Effect.GUARDS,
        "firewall-of-requests",
        off=_FALSE,
    ),
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
    *_each(
        "traefik.ingress.kubernetes.io/",
        "router.middlewares router.tls.options",
        Effect.GUARDS,
        "middlewares",
    ),
    *_each("konghq.com/", "plugins", Effect.GUARDS, "plugins"),
    *_each(
        _ALB,
        "auth-type",
        Effect.GUARDS,
        "load-balancer-asks",
        off=frozenset({"", "none"}),
    ),
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
    *_each(
        "cloud.google.com/ beta.cloud.google.com/",
        "backend-config",
        Effect.GUARDS,
        "backend-config",
    ),
    *_each(
        "appgw.ingress.kubernetes.io/",
        "waf-policy-for-path",
        Effect.GUARDS,
        "firewall-of-requests",
    ),
    # Whose addresses are let in.
    *_each(
        f"{_NGINX} {_HAPROXY}",
        "whitelist-source-range allowlist-source-range",
        Effect.LETS_IN,
        "let-in",
        off=_OPEN,
    ),
    *_each(f"{_NGINX} {_HAPROXY}", "denylist-source-range", Effect.KEEPS_OUT, "kept-out"),
    *_each("haproxy.org/", "allow-list whitelist", Effect.LETS_IN, "let-in", off=_OPEN),
    *_each("haproxy.org/", "deny-list blacklist", Effect.KEEPS_OUT, "kept-out"),
    *_each(
        "traefik.ingress.kubernetes.io/",
        "whitelist-source-range",
        Effect.LETS_IN,
        "let-in",
        off=_OPEN,
    ),
    *_each(_ROUTER, "ip_whitelist ip_allowlist", Effect.LETS_IN, "let-in", off=_OPEN),
    *_each(_ALB, "inbound-cidrs", Effect.LETS_IN, "reached-from", off=_OPEN),
    *_each(
        _ON_SERVICE,
        "load-balancer-source-ranges",
        Effect.LETS_IN,
        "reached-from",
        off=_OPEN,
    ),
    *_each(
        "service.beta.kubernetes.io/",
        "azure-allowed-ip-ranges",
        Effect.LETS_IN,
        "reached-from",
        off=_OPEN,
    ),
    *_each(
        "service.beta.kubernetes.io/",
        "azure-allowed-service-tags",
        Effect.GUARDS,
        "reached-from-azure",
    ),
    *_each(
        "service.beta.kubernetes.io/",
        "azure-deny-all-except-load-balancer-source-ranges",
        Effect.GUARDS,
        "only-named-ranges",
        off=_FALSE,
    ),
    *_each(
        _ALB,
        "security-groups security-group-prefix-lists frontend-nlb-security-groups",
        Effect.GUARDS,
        "firewall",
    ),
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
        "kubernetes.io/",
        "ingress.allow-http",
        Effect.GUARDS,
        "plain-text",
        off=frozenset({"true"}),
        default="true",
    ),
    *_each(
        _NGINX,
        "proxy-ssl-verify",
        Effect.GUARDS,
        "certificate-of-pods",
        off=frozenset({"", "off"}),
    ),
    # Where traffic goes.
    *_each(
        _NGINX,
        "mirror-target mirror-host",
        Effect.LEADS,
        "copies",
        matters_when_new=True,
    ),
    *_each(
        _NGINX,
        "permanent-redirect temporal-redirect",
        Effect.LEADS,
        "redirects",
        matters_when_new=True,
    ),
    *_each(_HAPROXY, "redirect-to", Effect.LEADS, "redirects", matters_when_new=True),
    *_each(
        "haproxy.org/",
        "request-redirect",
        Effect.LEADS,
        "redirects",
        matters_when_new=True,
    ),
    *_each(
        _NGINX,
        "upstream-vhost rewrite-target app-root server-alias",
        Effect.LEADS,
        "host-and-path",
    ),
    *_each(
        _HAPROXY,
        "rewrite-target app-root server-alias server-alias-regex",
        Effect.LEADS,
        "host-and-path",
    ),
    *_each(_NGINX, "default-backend", Effect.LEADS, "default-service"),
    *_each(
        _ALB,
        "actions.* conditions.* transforms.*",
        Effect.LEADS,
        "load-balancer-rule",
        matters_when_new=True,
    ),
    *_each(_ALB, "group.name", Effect.LEADS, "shared", matters_when_new=True),
    *_each(
        "external-dns.alpha.kubernetes.io/",
        "hostname internal-hostname target",
        Effect.LEADS,
        "dns",
        matters_when_new=True,
    ),
    *_each(
        "kubernetes.io/",
        "ingress.class",
        Effect.LEADS,
        "controller",
    ),
)


def annotation(name: str) -> Annotation | None:
    """What the table says of an annotation, None where it is not in it."""
    return _EXACT.get(name) or next((one for start, one in _STARTS.items() if name.startswith(start)), None)


_EXACT = {one.name: one for one in ANNOTATIONS if not one.name.endswith("*")}
_STARTS = {one.name.removesuffix("*"): one for one in ANNOTATIONS if one.name.endswith("*")}
