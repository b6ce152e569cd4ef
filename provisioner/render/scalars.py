"""What a YAML scalar means to kubectl: the rules of its reader (YAML 1.1 without base 60 and dates), then of JSON.

They differ from every YAML library for Python: `y` is true, `0o17` and `017` are 15, `09` is 9, `1e3` is 1000,
`12:30:45` and `2026-01-02` stay text. The tests hold each of them against the real kubectl.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from decimal import Decimal

from provisioner.errors import InvalidManifest

Scalar = str | int | float | bool | None

PREFIX = "tag:yaml.org,2002:"
STR, BOOL, INT, FLOAT, NULL, TIMESTAMP, BINARY, MERGE = (
    PREFIX + name for name in ("str", "bool", "int", "float", "null", "timestamp", "binary", "merge")
)
# Any other tag is ignored: its scalar is text, its collection a plain one. No tag ever makes code run.
RESOLVABLE = frozenset({"", STR, BOOL, INT, FLOAT, NULL, TIMESTAMP})

MAX_NUMBER_CHARACTERS = 400  # of digits; a longer number only costs time
INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)

_WORDS: dict[str, tuple[str, Scalar]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), (BOOL, True)),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), (BOOL, False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (FLOAT, math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), (FLOAT, math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (FLOAT, -math.inf)),
}
_INTEGERS = (
    (re.compile(r"([-+]?)0[xX]0*([0-9a-fA-F]+)"), 16),
    (re.compile(r"([-+]?)0[bB]0*([01]+)"), 2),
    (re.compile(r"0b([-+])0*([01]+)"), 2),  # nobody writes it; kubectl reads it
    (re.compile(r"([-+]?)0[oO]?0*([0-7]+)"), 8),
    (re.compile(r"([-+]?)(0|[1-9][0-9]*)"), 10),
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_FLOAT_FROM_POINT = re.compile(r"\.[0-9]+([eE][-+]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9:.]+(Z|[-+][0-9:]+)?)?")


def resolve(tag: str, text: str, *, is_plain: bool) -> Scalar:
    """The value of a scalar written as `text` with `tag` ("" for none); `is_plain` if it was not quoted.

    Numbers come as written: as a value of an object they still go through `number`, as a key through `key`.
    Raises InvalidManifest, without the text, where the tag promises what the text is not.
    """
    if tag == BINARY:
        try:
            return base64.b64decode("".join(text.split("\n")), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as exc:
            raise InvalidManifest("a value tagged !!binary is not base64 of UTF-8 text") from exc
    if tag not in RESOLVABLE or tag == STR or (not tag and not is_plain):
        return text
    found, value = _guess(text)
    if tag == TIMESTAMP and found == STR and _DATE.fullmatch(text):
        return text
    if tag in {"", found}:
        return value
    if tag == FLOAT and found == INT and value in INT64:
        return float(value)  # type: ignore[arg-type]  # `in INT64` says that it is an int
    raise InvalidManifest(f"a value tagged !!{tag.removeprefix(PREFIX)} is none")


def _guess(text: str) -> tuple[str, Scalar]:
    word = _WORDS.get(text)
    if word:
        return word
    if text[0] in "+-0123456789":
        digits = text.replace("_", "")
        for pattern, base in _INTEGERS:
            match = pattern.fullmatch(digits)
            if match:
                integer = _integer(match[1], match[2], base)
                if integer is not None:
                    return INT, integer
        if _FLOAT.fullmatch(digits):
            return _finite(digits, text)
        return STR, text
    if text[0] == "." and _FLOAT_FROM_POINT.fullmatch(text):
        return _finite(text, text)
    return STR, text


def _integer(sign: str, digits: str, base: int) -> int | None:
    """None for what does not fit 64 bits: kubectl then reads a float (decimal) or text (other bases)."""
    if len(digits) > 64:
        return None
    value = int(sign + digits, base)
    return value if value in INT64 or (not sign and value in UINT64) else None


def _finite(digits: str, text: str) -> tuple[str, Scalar]:
    if len(digits) > MAX_NUMBER_CHARACTERS:
        raise InvalidManifest(f"a number of more than {MAX_NUMBER_CHARACTERS} characters")
    value = float(digits)
    return (STR, text) if math.isinf(value) else (FLOAT, value)


def number(value: float) -> int | float:
    """The number that reaches the API server: kubectl writes 1.0 as 1, and an integer past 64 bits is a float.

    Raises InvalidManifest for infinities and NaN, which JSON has not.
    """
    if isinstance(value, int):
        return value if INT64.start <= value < INT64.stop else _float_of(value)
    if not math.isfinite(value):
        raise InvalidManifest("infinity and NaN are no JSON numbers")
    # Go writes the shortest digits that give the same float, so 1234567890123456789.0 becomes ...6800.
    exact = Decimal(repr(value))
    if abs(value) < 2.0**64 and exact == exact.to_integral_value() and int(exact) in INT64:
        return int(exact)
    return value


def _float_of(value: int) -> float:
    try:
        return float(value)
    except OverflowError as exc:
        raise InvalidManifest("an integer past the range of floats") from exc


def key(value: Scalar) -> str:
    """A mapping's key as text, as kubectl writes it: `on` is "true", `0x10` is "16", `1.50` is "1.5".

    Raises InvalidManifest for null and for integers past 2**63, as kubectl does.
    """
    if isinstance(value, str):
        return value
    if value is None:
        raise InvalidManifest("null as a key")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if value not in INT64:
            raise InvalidManifest("an integer past 64 bits as a key")
        return str(value)
    # Go's shortest digits in 32 bits: kubectl's reader rounds float keys so.
    if math.isnan(value):
        return ".nan"
    try:
        packed = struct.pack("f", value)
    except OverflowError:
        packed = struct.pack("f", math.copysign(math.inf, value))
    rounded: float = struct.unpack("f", packed)[0]
    if math.isinf(rounded):
        return ".inf" if rounded > 0 else "-.inf"
    candidates = (f"{rounded:.{digits}e}" for digits in range(9))
    shortest = next(text for text in candidates if struct.pack("f", float(text)) == packed)
    exponent = int(shortest.partition("e")[2])
    return shortest if exponent < -4 or exponent >= 6 else format(Decimal(shortest), "f")
