"""Names of packages as parts of addresses."""

from __future__ import annotations

import pytest

from provisioner.catalogs import package_of_address, package_to_address

WRITTEN = {
    "harbour": "harbour",
    "port/harbour": "port~1harbour",
    "/": "~1",
    "//": "~1~1",
    "../harbour": "..~1harbour",
    ".": "~2",
    "..": "~2~2",
    "...": "...",
    "a~b": "a~0b",
    "~1": "~01",
    "~2": "~02",
    "~01": "~001",
    "100 %? #1; \\ ü": "100 %? #1; \\ ü",
}


@pytest.mark.parametrize(("name", "part"), WRITTEN.items(), ids=WRITTEN)
def test_a_name_is_one_part_of_an_address_and_comes_back(name: str, part: str) -> None:
    assert package_to_address(name) == part
    assert package_of_address(part) == name


def test_a_tilde_that_nobody_escaped_is_itself() -> None:
    assert package_of_address("a~b~") == "a~b~"
