"""The functions that Kubernetes adds to CEL, as far as custom resource rules use them.

The CEL runtime takes no values of types of our own, so a quantity, URL, address or version travels as a marked string
in canonical form: equal values are equal strings, and a method looks at the mark. What is missing here does not
compile, and a rule that does not compile is reported as not evaluated.
"""

from __future__ import annotations

import ipaddress
import itertools
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cel_expr_python import cel

from provisioner.expressions.quantities import QUANTITY_FORM
from provisioner.regexes import compiled

QUANTITY, URL, ADDRESS, NETWORK, VERSION = ("\ue000q", "\ue000u", "\ue000a", "\ue000n", "\ue000v")
SUFFIXES = {
    suffix: Fraction(1000) ** power
    for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}
SUFFIXES |= {suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
QUANTITY_WORDS = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
QUANTITY_LIKE = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*")
NO_DIGITS = re.compile(r"[+-]?\.?(?:[numkMGTPE]|[KMGTPE]i)?")  # which the API server takes for nothing
SEMVER_FORM = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def declarations() -> list[Any]:
    """The declarations for one CEL environment."""
    return [
        cel.FunctionDecl(name, [_overload(name, number, overload) for number, overload in enumerate(overloads)])
        for name, overloads in FUNCTIONS.items()
    ]


def _overload(name: str, number: int, overload: tuple[Any, ...]) -> Any:
    result, parameters, is_member, implementation = overload
    return cel.Overload(f"{name}_{number}", result, list(parameters), is_member, implementation)


def _quantity_value(text: str) -> Fraction:
    found = QUANTITY_FORM.fullmatch(text)
    if not text or QUANTITY_LIKE.fullmatch(text) is None:
        raise ValueError(f"quantities must match the regular expression '{QUANTITY_WORDS}'")
    if NO_DIGITS.fullmatch(text):
        return Fraction(0)
    if found is None:
        raise ValueError("unable to parse quantity's suffix")
    number, suffix = Fraction(found[1]), found[2] or ""
    if suffix[:1] in ("e", "E") and suffix not in SUFFIXES:
        return number * Fraction(10) ** int(suffix[1:])
    return number * SUFFIXES[suffix]


def _quantity(text: str) -> str:
    return f"{QUANTITY}{_quantity_value(text)}"


def _fraction(value: str) -> Fraction:
    if not value.startswith(QUANTITY):
        raise ValueError("no such overload")
    return Fraction(value.removeprefix(QUANTITY))


def _as_integer(value: str) -> int:
    number = _fraction(value)
    if number.denominator != 1 or not -(2**63) <= number < 2**63:
        raise ValueError("cannot convert value to integer")
    return int(number)


def _is_integer(value: str) -> bool:
    number = _fraction(value)
    return number.denominator == 1 and -(2**63) <= number < 2**63


def _sum_of(sign: int) -> Callable[[str, str | int], str]:
    def combine(left: str, right: str | int) -> str:
        other = Fraction(right) if isinstance(right, int) else _fraction(right)
        return f"{QUANTITY}{_fraction(left) + sign * other}"

    return combine


def _comparable(value: str) -> Any:
    """A quantity or version as something Python can order."""
    if value.startswith(VERSION):
        return _version_key(value.removeprefix(VERSION))
    return _fraction(value)


def _compare(left: str, right: str) -> int:
    first, second = _comparable(left), _comparable(right)
    return int(first > second) - int(first < second)


def _version(text: str) -> str:
    if SEMVER_FORM.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no semantic version")
    return VERSION + text


def _version_key(text: str) -> tuple[Any, ...]:
    found = SEMVER_FORM.fullmatch(text)
    if found is None:
        raise ValueError("no such overload")
    parts = (found[4] or "").split(".") if found[4] else []
    ranked = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
    return (int(found[1]), int(found[2]), int(found[3]), not parts, ranked)


def _version_part(place: int) -> Callable[[str], int]:
    return lambda value: int(_version_key(value.removeprefix(VERSION))[place])


def _url(text: str) -> str:
    parts = urlsplit(text)
    _ = parts.port
    if not (text.startswith("/") or parts.scheme) or re.search(r"[\x00-\x20\x7f]", text):
        raise ValueError(f"{text!r} is no absolute URL")
    return URL + text


def _url_part(read: Callable[[Any], Any]) -> Callable[[str], Any]:
    def part(value: str) -> Any:
        if not value.startswith(URL):
            raise ValueError("no such overload")
        return read(urlsplit(value.removeprefix(URL)))

    return part


def _host(parts: Any) -> str:
    return str(parts.netloc.rpartition("@")[2])


def _host_name(parts: Any) -> str:
    """The host without port and brackets, its case kept."""
    host = _host(parts)
    return host[1 : host.index("]")] if host.startswith("[") else host.partition(":")[0]


def _address(text: str) -> str:
    return f"{ADDRESS}{_parsed_address(text)}"


def _parsed_address(text: str) -> Address:
    found = ipaddress.ip_address(text.removeprefix(ADDRESS))
    if "%" in text or (found.version == 6 and found.ipv4_mapped is not None):
        raise ValueError(f"{text!r}: neither zones nor IPv4 addresses inside IPv6 ones are addresses here")
    return found


def _network(text: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F.:]+/(0|[1-9][0-9]*)", text):
        raise ValueError(f"{text!r} is no CIDR")
    ipaddress.ip_interface(text)
    return NETWORK + text


def _parsed_network(value: str) -> Network:
    return ipaddress.ip_network(value.removeprefix(NETWORK), strict=False)


def _contains_address(value: str, address: str) -> bool:
    return _parsed_address(address) in _parsed_network(value)


def _contains_network(value: str, other: str) -> bool:
    outer, inner = _parsed_network(value), _parsed_network(_network(other.removeprefix(NETWORK)))
    if isinstance(outer, ipaddress.IPv4Network) and isinstance(inner, ipaddress.IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(outer, ipaddress.IPv6Network) and isinstance(inner, ipaddress.IPv6Network):
        return inner.subnet_of(outer)
    return False


def _is_link_local_multicast(value: str) -> bool:
    network = "224.0.0.0/24" if _parsed_address(value).version == 4 else "ff02::/16"
    return _parsed_address(value) in ipaddress.ip_network(network)


def _is_global_unicast(value: str) -> bool:
    address = _parsed_address(value)
    is_broadcast = str(address) == "255.255.255.255"
    special = (address.is_unspecified, address.is_loopback, address.is_multicast, address.is_link_local, is_broadcast)
    return not any(special)


def _parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _find(text: str, pattern: str) -> str:
    found = compiled(pattern).search(text)
    return found.group(0) if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group(0) for match in compiled(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _is_sorted(values: Sequence[Any]) -> bool:
    items = list(values)
    return all(left <= right for left, right in itertools.pairwise(items))


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    def extreme(values: Sequence[Any]) -> Any:
        items = list(values)
        if not items:
            raise ValueError("min and max need a list that is not empty")
        return choose(items)

    return extreme


def _total(values: Sequence[Any]) -> Any:
    items = list(values)
    return math.fsum(items) if any(isinstance(item, float) for item in items) else sum(items)


def _set_contains(outer: Sequence[Any], inner: Sequence[Any]) -> bool:
    known = list(outer)
    return all(item in known for item in inner)


def _set_equivalent(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return _set_contains(left, right) and _set_contains(right, left)


def _set_intersects(left: Sequence[Any], right: Sequence[Any]) -> bool:
    known = list(left)
    return any(item in known for item in right)


T = cel.Type
TEXT, BOOL, INT, LIST, ANY = T.STRING, T.BOOL, T.INT, T.LIST, T.DYN

# name: overloads of (result, parameters, is a method, implementation)
FUNCTIONS: dict[str, list[tuple[Any, ...]]] = {
    "quantity": [(TEXT, (TEXT,), False, _quantity)],
    "isQuantity": [(BOOL, (TEXT,), False, _parses(_quantity))],
    "sign": [(INT, (TEXT,), True, lambda it: int(_fraction(it) > 0) - int(_fraction(it) < 0))],
    "isGreaterThan": [(BOOL, (TEXT, TEXT), True, lambda left, right: _compare(left, right) > 0)],
    "isLessThan": [(BOOL, (TEXT, TEXT), True, lambda left, right: _compare(left, right) < 0)],
    "compareTo": [(INT, (TEXT, TEXT), True, _compare)],
    "asApproximateFloat": [(T.DOUBLE, (TEXT,), True, lambda it: float(_fraction(it)))],
    "asInteger": [(INT, (TEXT,), True, _as_integer)],
    "isInteger": [(BOOL, (TEXT,), True, _is_integer)],
    "add": [(TEXT, (TEXT, TEXT), True, _sum_of(1)), (TEXT, (TEXT, INT), True, _sum_of(1))],
    "sub": [(TEXT, (TEXT, TEXT), True, _sum_of(-1)), (TEXT, (TEXT, INT), True, _sum_of(-1))],
    "semver": [(TEXT, (TEXT,), False, _version)],
    "isSemver": [(BOOL, (TEXT,), False, _parses(_version))],
    "major": [(INT, (TEXT,), True, _version_part(0))],
    "minor": [(INT, (TEXT,), True, _version_part(1))],
    "patch": [(INT, (TEXT,), True, _version_part(2))],
    "url": [(TEXT, (TEXT,), False, _url)],
    "isURL": [(BOOL, (TEXT,), False, _parses(_url))],
    "getScheme": [(TEXT, (TEXT,), True, _url_part(lambda it: it.scheme))],
    "getHost": [(TEXT, (TEXT,), True, _url_part(_host))],
    "getHostname": [(TEXT, (TEXT,), True, _url_part(_host_name))],
    "getPort": [(TEXT, (TEXT,), True, _url_part(lambda it: str(it.port) if it.port is not None else ""))],
    "getEscapedPath": [(TEXT, (TEXT,), True, _url_part(lambda it: it.path))],
    "getQuery": [(T.MAP, (TEXT,), True, _url_part(lambda it: parse_qs(it.query, keep_blank_values=True)))],
    "ip": [
        (TEXT, (TEXT,), False, _address),
        (TEXT, (TEXT,), True, lambda it: _address(it.removeprefix(NETWORK).partition("/")[0])),
    ],
    "isIP": [(BOOL, (TEXT,), False, _parses(_address))],
    "ip.isCanonical": [(BOOL, (TEXT,), False, lambda it: str(_parsed_address(it)) == it)],
    "family": [(INT, (TEXT,), True, lambda it: _parsed_address(it).version)],
    "isUnspecified": [(BOOL, (TEXT,), True, lambda it: _parsed_address(it).is_unspecified)],
    "isLoopback": [(BOOL, (TEXT,), True, lambda it: _parsed_address(it).is_loopback)],
    "isLinkLocalMulticast": [(BOOL, (TEXT,), True, _is_link_local_multicast)],
    "isLinkLocalUnicast": [(BOOL, (TEXT,), True, lambda it: _parsed_address(it).is_link_local)],
    "isGlobalUnicast": [(BOOL, (TEXT,), True, _is_global_unicast)],
    "cidr": [(TEXT, (TEXT,), False, _network)],
    "isCIDR": [(BOOL, (TEXT,), False, _parses(_network))],
    "containsIP": [(BOOL, (TEXT, TEXT), True, _contains_address)],
    "containsCIDR": [(BOOL, (TEXT, TEXT), True, _contains_network)],
    "masked": [(TEXT, (TEXT,), True, lambda it: f"{NETWORK}{_parsed_network(it)}")],
    "prefixLength": [(INT, (TEXT,), True, lambda it: _parsed_network(it).prefixlen)],
    "find": [(TEXT, (TEXT, TEXT), True, _find)],
    "findAll": [(LIST, (TEXT, TEXT), True, _find_all), (LIST, (TEXT, TEXT, INT), True, _find_all)],
    "isSorted": [(BOOL, (LIST,), True, _is_sorted)],
    "sum": [(ANY, (LIST,), True, _total)],
    "min": [(ANY, (LIST,), True, _extreme(min))],
    "max": [(ANY, (LIST,), True, _extreme(max))],
    "sets.contains": [(BOOL, (LIST, LIST), False, _set_contains)],
    "sets.equivalent": [(BOOL, (LIST, LIST), False, _set_equivalent)],
    "sets.intersects": [(BOOL, (LIST, LIST), False, _set_intersects)],
}
