"""How Kubernetes writes names, labels, quantities, addresses and percentages.

Source: k8s.io/apimachinery, util/validation and api/resource.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

LONGEST_QUANTITY = 128  # longer ones are nobody's, and take long to read
LABEL_LENGTH, SUBDOMAIN_LENGTH, PORT_NAME_LENGTH = 63, 253, 15
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PORT_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,3})?")
_PERCENT = re.compile(r"\d{1,9}%")
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def is_label(text: str) -> bool:
    return len(text) <= LABEL_LENGTH and _LABEL.fullmatch(text) is not None


def is_label_1035(text: str) -> bool:
    return len(text) <= LABEL_LENGTH and _LABEL_1035.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    return len(text) <= SUBDOMAIN_LENGTH and _SUBDOMAIN.fullmatch(text) is not None


def is_wildcard_subdomain(text: str) -> bool:
    return text.startswith("*.") and is_subdomain(text[2:])


def is_path_segment(text: str) -> bool:
    """Names of roles and bindings."""
    return text not in ("", ".", "..") and "/" not in text and "%" not in text


def is_qualified_name(text: str) -> bool:
    """Keys of labels, annotations, taints and resources: an optional domain, a slash, a name."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= LABEL_LENGTH and _NAME_PART.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    return not text or (len(text) <= LABEL_LENGTH and _NAME_PART.fullmatch(text) is not None)


def is_port_name(text: str) -> bool:
    return (
        len(text) <= PORT_NAME_LENGTH and _PORT_NAME.fullmatch(text) is not None and any(one.isalpha() for one in text)
    )


def is_config_key(text: str) -> bool:
    is_path = text == "." or text.startswith("..")
    return len(text) <= SUBDOMAIN_LENGTH and not is_path and _CONFIG_KEY.fullmatch(text) is not None


def is_environment_name(text: str) -> bool:
    return bool(text) and all(" " <= one <= "~" and one != "=" for one in text)


def is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return bool(slash) and is_ip(address) and bits.isdigit()


def is_special_ip(text: str) -> bool:
    """Whether an address is the machine's own, nobody's or the link's: no endpoint may have it."""
    if not is_ip(text):
        return False
    found = ipaddress.ip_address(text)
    to_many_on_link = found.is_multicast and str(found).startswith(("224.0.0.", "ff02:"))
    return found.is_unspecified or found.is_loopback or found.is_link_local or to_many_on_link


def is_network(text: str) -> bool:
    """Whether a range of addresses has nothing set beyond its prefix."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def is_domain_path(text: str) -> bool:
    """A domain, a slash and a path."""
    domain, slash, path = text.partition("/")
    return bool(slash and path) and is_subdomain(domain)


def is_percent(text: str) -> bool:
    return _PERCENT.fullmatch(text) is not None


def alike(one: object, other: object) -> bool:
    """Whether two values are stored as the same: 1Gi is 1024Mi."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(alike(*pair) for pair in zip(one, other, strict=True))
    if one == other:
        return True
    first, second = quantity(one), quantity(other)
    return first is not None and first == second


def is_quantity(value: object) -> bool:
    return quantity(value) is not None


def quantity(value: object) -> Decimal | None:
    """The amount that a quantity stands for, None for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip() if not isinstance(value, str) or len(value) <= LONGEST_QUANTITY else ""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    sign, digits, suffix = match[1], match[2], match[3] or ""
    try:
        amount = Decimal(f"{sign}{digits}")
    except InvalidOperation:
        return None
    if suffix in _BINARY:
        return amount * Decimal(1024) ** _BINARY[suffix]
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return amount.scaleb(power)


FORMS: dict[str, tuple[Callable[[str], bool], str]] = {
    "label": (is_label, "lower case letters, digits and hyphens, at most 63"),
    "label-1035": (is_label_1035, "lower case letters, digits and hyphens beginning with a letter, at most 63"),
    "subdomain": (is_subdomain, "lower case letters, digits, hyphens and dots, at most 253"),
    "qualified": (
        is_qualified_name,
        "letters, digits, hyphens, underscores and dots, after a domain and a slash or without",
    ),
    "label-value": (is_label_value, "letters, digits, hyphens, underscores and dots, at most 63"),
    "port-name": (is_port_name, "lower case letters, digits and single hyphens with at least one letter, at most 15"),
    "config-key": (is_config_key, "letters, digits, hyphens, underscores and dots"),
    "ip": (is_ip, "an IP address"),
    "cidr": (is_cidr, "a range of addresses such as 10.0.0.0/8"),
    "absolute": (lambda text: text.startswith("/"), "a path that begins with /"),
    "path-segment": (is_path_segment, "a name without / and %"),
    "environment": (is_environment_name, "printable ASCII characters other than ="),
}
