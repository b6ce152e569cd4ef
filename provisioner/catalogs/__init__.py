"""File-based catalogs of OLM: which versions of a package there are, and which of them may follow which.

A catalog is untrusted: it is read document by document within limits, and what is wrong in it becomes a problem of
the catalog, so that one bad package hides no other.
"""

from provisioner.catalogs.addresses import package_of_address, package_to_address
from provisioner.catalogs.choosing import (
    CatalogOffer,
    Choice,
    Installed,
    NoChoice,
    PackageWish,
    UpgradeEdges,
    beyond,
    choose,
    deprecations_of,
    step_to,
)
from provisioner.catalogs.edges import circle_of, head_of, heads_of, route, successors
from provisioner.catalogs.facts import BundleFacts, BundleLink, Maintainer, packed_facts, unpacked_facts
from provisioner.catalogs.fetching import FetchedCatalog, FetchLimits, fetched_catalog
from provisioner.catalogs.helm_index import read_helm_index
from provisioner.catalogs.icons import PackageIcon
from provisioner.catalogs.packing import packed_package, unpacked_package
from provisioner.catalogs.presentation import PackagePresentation, PresentationShelf
from provisioner.catalogs.reading import CatalogFile, CatalogLimits, read_catalog
from provisioner.catalogs.spec_source import CatalogSource
from provisioner.catalogs.tag_list import fetched_tags
from provisioner.catalogs.values import (
    READING,
    Catalog,
    CatalogBundle,
    CatalogProblem,
    Channel,
    ChannelEntry,
    Deprecation,
    Package,
    is_about,
)

__all__ = [
    "READING",
    "BundleFacts",
    "BundleLink",
    "Catalog",
    "CatalogBundle",
    "CatalogFile",
    "CatalogLimits",
    "CatalogOffer",
    "CatalogProblem",
    "CatalogSource",
    "Channel",
    "ChannelEntry",
    "Choice",
    "Deprecation",
    "FetchLimits",
    "FetchedCatalog",
    "Installed",
    "Maintainer",
    "NoChoice",
    "Package",
    "PackageIcon",
    "PackagePresentation",
    "PackageWish",
    "PresentationShelf",
    "UpgradeEdges",
    "beyond",
    "choose",
    "circle_of",
    "deprecations_of",
    "fetched_catalog",
    "fetched_tags",
    "head_of",
    "heads_of",
    "is_about",
    "package_of_address",
    "package_to_address",
    "packed_facts",
    "packed_package",
    "read_catalog",
    "read_helm_index",
    "route",
    "step_to",
    "successors",
    "unpacked_facts",
    "unpacked_package",
]
