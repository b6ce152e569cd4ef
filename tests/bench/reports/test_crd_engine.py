"""The comparison of CRDs beside the tool crdify, and a review of a 10 MB bundle; what misses its goal fails.

Run by `make bench`. Both comparisons run in processes of their own, in turn, and are timed inside them, reading and
parsing left out; memory is the highest resident size that the kernel counted, of the whole process and what the
comparison added to it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner import pipeline
from provisioner.render import load_all
from provisioner.review.base.facts import Facts
from provisioner.review.base.record import to_record
from provisioner.review.checks.objects import crds as crd_check
from provisioner.review.rights.permission_report import permission_report
from provisioner.values import Content, Manifest
from tests.support.built import built
from tests.support.provisioner.large_crds import CRDS, SIZES, crd, nodes, reworded, versions

ROUNDS, PEER_ROUNDS = 7, 5
# At least this many times as fast, and at most this part of the memory that comparing adds: a Python interpreter and its
# parser alone hold more than a tenth of what crdify holds in all.
TIMES_AS_FAST, PART_OF_MEMORY = 10.0, 0.1
PARSE_SECONDS, CRDS_SECONDS, PERMISSIONS_SECONDS, REPORT_KB = 2.0, 0.5, 0.2, 300


def measured(*command: str) -> dict[str, Any]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["refuses"], "both must find what this pair breaks"
    return dict(found)


def spoken(name: str, figures: list[dict[str, Any]]) -> str:
    took = statistics.median(it for one in figures for it in one["seconds"])
    peak, before = (max(one[f"peak_kib_{when}"] for one in figures) / 1024 for when in ("after", "before"))
    return (
        f"  {name:9} {took * 1000:8.1f} ms, process {peak:6.1f} MiB at most: {before:6.1f} when both are read, and "
        f"{peak - before:6.1f} more by comparing"
    )


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_figures_of_a_large_crd_beside_crdify(size: tuple[int, int, bool], tmp_path: Path) -> None:
    width, depth, is_described = size
    old = crd("widget", width=width, depth=depth, is_described=is_described)
    new = reworded(old)
    files = [str(tmp_path / name) for name in ("old.yaml", "new.yaml")]
    for file, body in zip(files, (old, new), strict=True):
        Path(file).write_text(yaml.dump(body, Dumper=yaml.CSafeDumper))
    count, stored, peer = sum(1 for _ in nodes(old)), len(json.dumps(new, separators=(",", ":"))) / 1e6, built("crdify")
    print(f"\na CRD of {count:,} nodes ({stored:.2f} MB as JSON), all words changed, 1 node in 40 narrowed or emptied:")
    ours, theirs = [], []
    for _ in range(PEER_ROUNDS):
        ours.append(measured(sys.executable, "-m", "tests.support.provisioner.large_crds", *files, str(ROUNDS)))
        if peer is not None:
            theirs.append(measured(str(peer), *files, "1"))
    print(spoken("pratique", ours))
    if not theirs:
        print("  crdify    not measured")
        return
    print(spoken("crdify", theirs))
    # In pairs, one after the other: on a machine with neighbours both are slow at the same time.
    ratios = [its["seconds"][0] / statistics.median(mine["seconds"]) for mine, its in zip(ours, theirs, strict=True)]
    added = [max(one["peak_kib_after"] - one["peak_kib_before"] for one in side) for side in (ours, theirs)]
    whole = [max(one["peak_kib_after"] for one in side) for side in (ours, theirs)]
    print(
        f"  ratio     {statistics.median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f}); memory: {added[0] / added[1]:.3f} of what comparing adds,"
        f" {whole[0] / whole[1]:.2f} of the whole process (Python and its parser included)"
    )
    assert statistics.median(ratios) >= TIMES_AS_FAST
    assert added[0] <= added[1] * PART_OF_MEMORY


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The median of some rounds, and the last result."""
    seconds, found = [], None
    for _ in range(PEER_ROUNDS):
        began = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), found


def content(text: str) -> Content:
    manifests = tuple(Manifest(body, "bundle.yaml") for body in load_all(text.encode(), name="bundle.yaml"))
    return Content(manifests, "bench", "", (), "sha256:bench")


def test_figures_of_a_bundle_of_ten_megabytes() -> None:
    old_text, new_text = (yaml.dump_all(objects, Dumper=yaml.CSafeDumper) for objects in versions())
    old = content(old_text)
    parsing, new = timed(lambda: content(new_text))
    plan = pipeline.look_offline(new, old).plan
    facts = Facts(new, plan, old, is_offline=True)
    comparing, _ = timed(lambda: list(crd_check.DEFINITIONS_CHECK.changes(facts)))
    rights, _ = timed(lambda: permission_report(facts))
    reviewing, report = timed(lambda: pipeline.look_offline(new, old))
    record = to_record(report)
    plan, shown = record.pop("plan"), len(json.dumps(record, separators=(",", ":")))
    print(
        f"\na bundle of {len(new_text) / 1e6:.1f} MB with {CRDS} CRDs, every fourth of them changed:"
        f"\n  parse {parsing:.2f} s, CRDs {comparing:.2f} s, permissions {rights:.3f} s, whole review {reviewing:.2f} s"
        f"\n  report {shown / 1000:.0f} kB as JSON, {len(record['findings'])} findings; kept beside it:"
        f" the objects to be applied, {len(json.dumps(plan)) / 1e6:.1f} MB"
    )
    assert parsing <= PARSE_SECONDS
    assert comparing <= CRDS_SECONDS
    assert rights <= PERMISSIONS_SECONDS
    assert shown / 1000 <= REPORT_KB
