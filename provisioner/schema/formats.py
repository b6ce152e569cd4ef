"""The string formats that the API server checks in custom resources; every other name it ignores."""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from provisioner.regexes import compiled

COLOR_BYTE = r"(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])"
HOST_CHAR = r"a-zA-Z0-9\p{S}\p{L}"
HOSTNAME = (
    rf"^([{HOST_CHAR}]((-?[{HOST_CHAR}]{{0,62}})?)"
    rf"|([{HOST_CHAR}](([-{HOST_CHAR}]{{0,61}}[{HOST_CHAR}])?)(\.))+([a-zA-Z\p{{L}}]){{2,63}})$"
)
DURATION_UNITS = ("ns", "us", "µs", "ms", "s", "m", "h", "d", "w")
DURATION_WORDS = ("nano", "micro", "milli", "sec", "min", "hr", "hour", "day", "wk", "week")
MAX_NAME, MAX_LABEL, MAX_LONG_NAME, SSN_LENGTH = 255, 63, 253, 11
# RE2 reads it: in Python's the spaces and words that follow each other take cubic time.
NAMED_ADDRESS = r'^\s*(?:"(?s:[^"\\]|\\.)*"|[^<>@",;:()\[\]]*)\s*<([^<>]+)>\s*$'
HALF_PAIRS = re.compile("[\ud800-\udfff]")
INTEGER_FORMATS = frozenset({"int32", "int64"})
NUMBER_FORMATS = frozenset({"float", "double"})


def matches(pattern: str, text: str) -> bool:
    """Whether `pattern` occurs in `text`: the API server searches, it does not anchor.

    Raises BadRegularExpression, also for a pattern that is too large for the text.
    """
    return compiled(pattern).search(as_stored(text)) is not None


def _matches_ours(pattern: str, text: str) -> bool:
    """The same for a pattern of ours, which is small: a text may be as long as it likes."""
    return compiled(pattern).program.search(as_stored(text)) is not None


def as_stored(text: str) -> str:
    """`text` as Go decodes it from JSON: half a pair of surrogates is no character."""
    return text if text.isascii() else HALF_PAIRS.sub("\ufffd", text)


def honoured(schema_type: str, format_name: str) -> str:
    """`format_name` where the API server checks it for that type, else ""; the type "" stands for none or several."""
    if schema_type in ("", "string"):
        return format_name if normalised(format_name) in CHECKS else ""
    if schema_type == "integer":
        return format_name if format_name in INTEGER_FORMATS else ""
    if schema_type == "number":
        return format_name if format_name in NUMBER_FORMATS else ""
    return ""


def normalised(format_name: str) -> str:
    return format_name.replace("-", "")


def fits(format_name: str, text: str) -> bool:
    """Whether `text` is valid in a format that is honoured."""
    return CHECKS[normalised(format_name)](text)


def _like(pattern: str) -> Callable[[str], bool]:
    return lambda text: _matches_ours(pattern, text)


def _is_uuid(version: str, variant: str) -> Callable[[str], bool]:
    head = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?"
    return _like(f"^{head}{version}[0-9a-fA-F]{{3}}-?{variant}[0-9a-fA-F]{{3}}-?[0-9a-fA-F]{{12}}$")


def _is_uri(text: str) -> bool:
    if not text or any(ord(char) < 0x21 or ord(char) == 0x7F for char in text):
        return False
    if re.search(r"%(?![0-9a-fA-F]{2})", text.split("?", 1)[0]):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return text.startswith("/") or (re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text) is not None)


def _is_email(text: str) -> bool:
    """Near to Go's mail.ParseAddress: an address, or a display name and the address in angle brackets."""
    named = compiled(NAMED_ADDRESS).program.search(as_stored(text))
    address = named.group(1) if named else text.strip(" \t")
    local, at, domain = address.rpartition("@")
    atom = r"[^\s\x00-\x1f\x7f()<>\[\]:;@\\,.\"]+"
    is_local = re.fullmatch(rf'{atom}(\.{atom})*|"(?:[^"\\\x00-\x1f]|\\.)*"', local)
    return bool(at and is_local and re.fullmatch(rf"{atom}(\.{atom})*|\[[^\[\]\\\s]*\]", domain))


def _is_hostname(text: str) -> bool:
    if len(as_stored(text).encode()) > MAX_NAME or not _matches_ours(HOSTNAME, text):
        return False
    return all(len(as_stored(label).encode()) <= MAX_LABEL for label in text.split("."))


def _is_ipv4(text: str) -> bool:
    """Also with leading zeros, and also an IPv4 address inside an IPv6 one: only the dot is asked for."""
    return "." in text and _address(text)


def _is_ipv6(text: str) -> bool:
    return ":" in text and "%" not in text and _address(text)


def _address(text: str) -> bool:
    head, colon, tail = text.rpartition(":")
    if "." in tail:
        tail = ".".join(part.lstrip("0") or "0" if re.fullmatch(r"[0-9]+", part) else part for part in tail.split("."))
    try:
        ipaddress.ip_address(head + colon + tail)
    except ValueError:
        return False
    return "%" not in text


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not re.fullmatch(r"[0-9]+", length) or not _address(address):
        return False
    digits = length.lstrip("0") or "0"
    return len(digits) <= 3 and int(digits) <= (128 if ":" in address else 32)


def _is_mac(text: str) -> bool:
    pair, quad = "[0-9a-fA-F]{2}", "[0-9a-fA-F]{4}"
    paired = "|".join(f"{pair}({sep}{pair}){{{count}}}" for sep in ":-" for count in (5, 7, 19))
    quads = "|".join(rf"{quad}(\.{quad}){{{count}}}" for count in (2, 3, 9))
    return _matches_ours(f"^({paired}|{quads})$", text)


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not _matches_ours("^([0-9]{9}X|[0-9]{10})$", digits):
        return False
    total = sum((place + 1) * int(digit) for place, digit in enumerate(digits[:9]))
    return (total + 10 * (10 if digits[9] == "X" else int(digits[9]))) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not _matches_ours("^[0-9]{13}$", digits):
        return False
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits[:12]))
    return (10 - total % 10) % 10 == int(digits[12])


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    issuers = (
        r"4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
        r"|3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35[0-9]{3})[0-9]{11}"
    )
    if not _matches_ours(f"^({issuers})$", digits):
        return False
    doubled = [int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _is_ssn(text: str) -> bool:
    return len(text) == SSN_LENGTH and _matches_ours("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$", text)


def _is_byte(text: str) -> bool:
    """Base64 in groups of four, at least one, with padding."""
    if not text or len(text) % 4:
        return False
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        datetime.date(int(text[:4]) or 4, int(text[5:7]), int(text[8:]))  # the year 0 is one to Go, a leap year
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    if len(parts) < 2 or not _is_date(parts[0]):
        return False
    time = re.match(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})\Z", parts[1])
    return time is not None and time[1] <= "23" and time[2] <= "59" and time[3] <= "59"


def _is_duration(text: str) -> bool:
    """Go's durations, and numbers followed by a word such as `22 minutes`."""
    if _matches_ours(r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$", text):
        return True
    units = [match.group(1).lower() for match in compiled(r"[0-9]\s*([A-Za-zµ]+)").program.finditer(as_stored(text))]
    return any(unit in DURATION_UNITS or unit.startswith(DURATION_WORDS) for unit in units)


def _is_short_name(text: str) -> bool:
    return len(as_stored(text).encode()) <= MAX_LABEL and _matches_ours("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", text)


def _is_long_name(text: str) -> bool:
    label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    return len(as_stored(text).encode()) <= MAX_LONG_NAME and _matches_ours(rf"^{label}(\.{label})*$", text)


CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _like("^[0-9a-fA-F]{24}$"),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _is_uuid("[0-9a-fA-F]", "[0-9a-fA-F]"),
    "uuid3": _is_uuid("3", "[0-9a-fA-F]"),
    "uuid4": _is_uuid("4", "[89abAB]"),
    "uuid5": _is_uuid("5", "[89abAB]"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _is_ssn,
    "hexcolor": _like("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "rgbcolor": _like(rf"^rgb\(\s*{COLOR_BYTE}\s*,\s*{COLOR_BYTE}\s*,\s*{COLOR_BYTE}\s*\)$"),
    "byte": _is_byte,
    "password": lambda _: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_datetime,
    "k8sshortname": _is_short_name,
    "k8slongname": _is_long_name,
}
