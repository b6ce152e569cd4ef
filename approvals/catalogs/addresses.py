"""How a package is named in the addresses of pages and of REST, whatever its name is: `<package:...>` in their URLs."""

from __future__ import annotations

from django.urls import register_converter

from provisioner.catalogs.values import package_of_address, package_to_address

CONVERTER = "package"


class PackageConverter:
    """One part of an address, percent-encoded by whoever writes it."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        return package_of_address(value)

    def to_url(self, value: str) -> str:
        return package_to_address(value)


register_converter(PackageConverter, CONVERTER)
