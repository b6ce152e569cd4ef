"""How a catalog stands, in words: what is wrong with it, and what comes next. PURE."""

from __future__ import annotations

from dataclasses import dataclass

from approvals.models import Catalog
from provisioner.sentences import number

# By the code of a problem, whose own words say what happened; codes that are not here say what to do themselves.
NEXT_STEPS = {
    "bad-source": "Correct the source of the Catalog.",
    "bundle-too-large": "Have an operator raise PRATIQUE_MAX_CATALOG_MIB, or name a smaller catalog.",
    "digest-mismatch": "Have its publisher say which content is meant, and pin that.",
    "forbidden-address": "Have an operator allow this address, or name another source.",
    "invalid-archive": "Have its publisher correct the archive.",
    "invalid-manifest": "Have its publisher correct the content.",
    "source-unavailable": "Check that the source exists, and that Pratique can reach it and may read it.",
    "unreachable": "Check that the source exists, and that Pratique can reach it.",
}


@dataclass(frozen=True, slots=True)
class CatalogCondition:
    """A label with its tone, why, and the next step; "" where there is nothing to say.

    `is_passing`: it becomes another one by itself, soon.
    """

    tone: str
    label: str
    cause: str = ""
    next_step: str = ""
    is_passing: bool = False


def condition_of(catalog: Catalog) -> CatalogCondition:
    edition, next_step = catalog.edition, NEXT_STEPS.get(catalog.problem_code, "")
    if catalog.problem and edition is None:
        return CatalogCondition("bad", "not read", catalog.problem, next_step)
    if catalog.problem:
        still = "What was read before is still offered."
        return CatalogCondition("warn", "source unavailable", catalog.problem, f"{next_step} {still}".strip())
    if edition is None and catalog.reading_since is None:
        cause = "Catalogs are read in turn, a few at once; its packages appear when it was read."
        return CatalogCondition("info", "waiting to be read", cause, is_passing=True)
    if edition is None:
        cause = "It is read for the first time; its packages appear when that is done."
        return CatalogCondition("info", "being read", cause, is_passing=True)
    if edition.problem_count:
        found = number(edition.problem_count, "problem")
        cause = "What is wrong in its content is left out or doubtful; the other packages are not affected."
        return CatalogCondition("warn", f"{found} in it", cause, "Its publisher can correct it.")
    return CatalogCondition("good", "read")
