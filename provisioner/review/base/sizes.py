"""Quantities of Kubernetes, such as what a volume holds, read; bytes added up and said again."""

from __future__ import annotations

from fractions import Fraction

from provisioner.expressions.quantities import QUANTITY_FORM

_POWERS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
}
_POWERS |= {letter: Fraction(1000**power) for power, letter in enumerate("MGTPE", 2)}
_POWERS |= {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)}
_UNITS = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")


def amount_of(quantity: object) -> Fraction | None:
    """What a quantity such as `500m` or `10Gi` stands for, None for what is none."""
    found = QUANTITY_FORM.fullmatch(str(quantity))
    if found is None or isinstance(quantity, bool):
        return None
    suffix = found[2] or ""
    power = _POWERS.get(suffix)
    return Fraction(found[1]) * (power if power is not None else Fraction(10) ** int(suffix[1:]))


def bytes_of(quantity: object) -> int | None:
    """A quantity such as `10Gi` in bytes, None for what is none."""
    amount = amount_of(quantity)
    return int(amount) if amount is not None else None


def in_words(size: int) -> str:
    """Bytes in the largest binary unit that fits, with at most one digit behind the point: `1.5Gi`."""
    for unit in _UNITS:
        value = Fraction(size) / _POWERS[unit]
        if value >= 1:
            return f"{float(round(value, 1)):g}{unit}"
    return f"{size} bytes"
