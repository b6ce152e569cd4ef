"""The many cases of the corpus: `make test` tries a few of them, `make thorough` all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

EVERY = 7
Case = TypeVar("Case")


def sampled(
    cases: Iterable[Case],
    name_of: Callable[[Case], str],
    values_of: Callable[[Case], Iterable[Any]] = lambda case: [case],
) -> list[Any]:
    """The parameters of a test, of which each seventh is of the first ring; each has a name."""
    return [
        pytest.param(*values_of(case), id=name_of(case), marks=pytest.mark.thorough if at % EVERY else ())
        for at, case in enumerate(cases)
    ]
