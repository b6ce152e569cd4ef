from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner.schema import compare, validate_crd
from provisioner.values import Severity
from tests.conftest import CORPUS

PAIRS = sorted(path.parent.name for path in CORPUS.glob("crd-pairs/*/new.yaml"))
PENDING = frozenset({"SCH-60", "SRV-06"})


class Loader(yaml.CSafeLoader):
    """YAML as these files mean it: an unquoted `=` and a timestamp are texts."""


for tag in ("value", "timestamp"):
    Loader.add_constructor(f"tag:yaml.org,2002:{tag}", lambda loader, node: loader.construct_scalar(node))


@cache
def read(path: Path) -> Any:
    documents = yaml.load_all(path.read_text(), Loader=Loader)
    return next(it for it in documents if it)


@pytest.mark.corpus
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.thorough
def test_a_real_pair_is_compared_both_ways_without_a_crash_or_a_change(pair: str) -> None:
    old, new = (read(CORPUS / "crd-pairs" / pair / file) for file in ("old.yaml", "new.yaml"))
    kept = copy.deepcopy((old, new))
    for before, after in ((old, new), (new, old)):
        found = compare(before, after)
        assert {it.rule for it in found if it.severity is Severity.UNKNOWN} <= PENDING
        assert compare(before, after) == found
    assert compare(old, old) == [it for it in compare(old, old) if it.rule == "SRV-05"]
    assert (old, new) == kept


@pytest.mark.corpus
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.thorough
def test_a_crd_that_clusters_run_is_not_refused(pair: str) -> None:
    for file in ("old.yaml", "new.yaml"):
        body = read(CORPUS / "crd-pairs" / pair / file)
        is_template = "{{" in str(body["metadata"])
        if body["apiVersion"].endswith("/v1") and not is_template:
            assert validate_crd(body) == []
