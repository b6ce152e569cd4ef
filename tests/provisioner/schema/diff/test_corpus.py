from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner.schema import compare, validate_crd
from provisioner.values import Severity
from tests.support.folders import CORPUS
from tests.support.sampling import sampled

PAIRS = sorted(path.parent.name for path in CORPUS.glob("crd-pairs/*/new.yaml"))
# What nobody can decide by two CRDs alone, forth or back, with the reason; every other finding is decided.
UNKNOWN = {
    ("cert-manager__orders__v1.5.0__v1.6.0", "back", "SRV-06"): (
        "more versions would be served again, and what the code of the webhook keeps between them is not in a CRD"
    )
}


class Loader(yaml.CSafeLoader):
    """YAML as these files mean it: an unquoted `=` and a timestamp are texts."""


for tag in ("value", "timestamp"):
    Loader.add_constructor(f"tag:yaml.org,2002:{tag}", lambda loader, node: loader.construct_scalar(node))


@cache
def read(path: Path) -> Any:
    documents = yaml.load_all(path.read_text(), Loader=Loader)
    return next(it for it in documents if it)


@pytest.mark.corpus
def test_every_pair_of_the_corpus_is_compared() -> None:
    assert len(PAIRS) == len(json.loads((CORPUS / "crd-pairs" / "PAIRS.json").read_text()))
    assert {pair for pair, _, _ in UNKNOWN} <= set(PAIRS)


@pytest.mark.corpus
@pytest.mark.parametrize("pair", sampled(PAIRS, str))
def test_no_finding_about_a_real_pair_stays_open(pair: str) -> None:
    old, new = (read(CORPUS / "crd-pairs" / pair / file) for file in ("old.yaml", "new.yaml"))
    for way, before, after in (("forth", old, new), ("back", new, old)):
        found = sorted({one.rule for one in compare(before, after) if one.severity is Severity.UNKNOWN})
        assert found == sorted(rule for name, its, rule in UNKNOWN if (name, its) == (pair, way))


@pytest.mark.corpus
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.thorough
def test_a_real_pair_is_compared_both_ways_without_a_crash_or_a_change(pair: str) -> None:
    old, new = (read(CORPUS / "crd-pairs" / pair / file) for file in ("old.yaml", "new.yaml"))
    kept = copy.deepcopy((old, new))
    for before, after in ((old, new), (new, old)):
        found = compare(before, after)
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
