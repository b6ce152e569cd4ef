"""Unpacking and rendering of each bundle and chart of the collection: time and memory, charts beside `helm template`.

Run by `make bench`. Each is rendered in a process of its own, which says what it took; memory is the highest resident
size of that process and of the one that it starts for a chart, together. What misses its goal fails.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.bench.rendering import KUBERNETES, pack
from tests.support.built import built
from tests.support.folders import CORPUS

ROUNDS = 3
LARGEST = 10
MOST_TIMES, MOST_REVIEW_TIMES = 1.5, 3.0
MAX_MIB = 300.0
BUNDLES = sorted(one for one in CORPUS.glob("bundles/*/*") if one.is_dir()) if CORPUS.is_dir() else []
CHARTS = sorted(one for one in CORPUS.glob("charts/*/*") if one.is_dir()) if CORPUS.is_dir() else []


def ours(archive: Path, format_name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.rendering", archive, format_name, str(ROUNDS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


# A process inherits the highest size of the one that it was forked from, so that a small one starts Helm.
HELD = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def helms(helm: Path, archive: Path, home: Path) -> tuple[float, float]:
    """Seconds of `helm template`, in the middle of some rounds, and the MiB that it held at most."""
    seconds, environment = [], {"HOME": str(home)}
    command = [helm, "template", "one", archive, "--namespace", "home", "--include-crds", "--kube-version", KUBERNETES]
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run(command, capture_output=True, check=False, env=environment)
        seconds.append(time.perf_counter() - began)
    small = [sys.executable, "-I", "-S", "-c", HELD, *command]
    done = subprocess.run(small, check=True, capture_output=True, text=True, env=environment)
    return statistics.median(seconds), int(done.stdout) / 1024


def told(folder: Path, size: int, found: dict[str, Any]) -> str:
    name = f"{folder.parent.name} {folder.name}"
    what = f"{found['objects']} objects" if found["objects"] else found["why"]
    took, peak = statistics.median(found["seconds"]), found["peak_kib"] / 1024
    return f"  {name:52} {size / 1e6:6.2f} MB {took * 1000:8.1f} ms {peak:6.1f} MiB  {what}"


def test_figures_of_operator_bundles(tmp_path: Path) -> None:
    assert BUNDLES, "the collection is not here"
    print()
    peaks = []
    for folder in BUNDLES:
        size = pack(folder, tmp_path / "bundle.tar.gz")
        found = ours(tmp_path / "bundle.tar.gz", "registry-v1")
        print(told(folder, size, found))
        peaks.append(found["peak_kib"] / 1024)
    assert max(peaks) <= MAX_MIB


def test_figures_of_charts_beside_helm_template(tmp_path: Path) -> None:
    assert CHARTS, "the collection is not here"
    helm = built("helm4", "helm.sh/helm/v4/cmd/helm")
    print()
    peaks, ratios = [], []
    for folder in CHARTS:
        size = pack(folder, tmp_path / "chart.tgz", below="chart")
        found = ours(tmp_path / "chart.tgz", "helm")
        words = told(folder, size, found)
        if helm is not None and found["objects"]:
            theirs, held = helms(helm, tmp_path / "chart.tgz", tmp_path)
            warm, cold = statistics.median(found["seconds"]) / theirs, found["cold"] / theirs
            ratios.append((size, warm, cold, found["peak_kib"] / 1024 / held))
            words += f"; {warm:.1f} times as long as helm template, the first {cold:.1f} times"
        print(words)
        peaks.append(found["peak_kib"] / 1024)
    largest = sorted(ratios, reverse=True)[:LARGEST]
    for name, chosen in (("all", ratios), (f"the {len(largest)} largest", largest)):
        if chosen:
            _, warm, cold, memory = (statistics.median(figures) for figures in zip(*chosen, strict=True))
            print(
                f"  {name}, in the middle: {warm:.2f} times as long, the first {cold:.2f}, {memory:.2f} times the memory"
            )
    assert max(peaks) <= MAX_MIB
    assert not largest or statistics.median(warm for _, warm, _, _ in largest) <= MOST_TIMES


def test_figures_of_a_review_of_two_versions_beside_helm_template(tmp_path: Path) -> None:
    helm = built("helm4", "helm.sh/helm/v4/cmd/helm")
    if helm is None:
        pytest.skip("there is no helm here")
    print()
    ratios = []
    for old, new in pairwise(CHARTS):
        if old.parent != new.parent:
            continue
        archives = [tmp_path / "old.tgz", tmp_path / "new.tgz"]
        for folder, archive in zip((old, new), archives, strict=True):
            pack(folder, archive, below="chart")
        if not all(ours(archive, "helm")["objects"] for archive in archives):
            continue
        theirs = sum(helms(helm, archive, tmp_path)[0] for archive in archives)
        seconds = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            command = [sys.executable, "-m", "provisioner.cli", "review", archives[1], "--old", archives[0]]
            subprocess.run([*command, "--format", "helm"], capture_output=True, check=False)
            seconds.append(time.perf_counter() - began)
        ratios.append(statistics.median(seconds) / theirs)
        print(
            f"  {old.parent.name} {old.name} → {new.name}: {statistics.median(seconds):.2f} s, {ratios[-1]:.1f} times"
        )
    print(
        f"  in the middle {statistics.median(ratios):.1f} times as long as two of helm template (goal {MOST_REVIEW_TIMES})"
    )


@pytest.mark.parametrize("size", [3, 10])
def test_figures_of_a_crd_of_megabytes(size: int, tmp_path: Path) -> None:
    text = "x" * 1000
    properties = {f"field{number}": {"type": "string", "description": text} for number in range(size * 1000)}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    (tmp_path / "bundle/manifests").mkdir(parents=True)
    (tmp_path / "bundle/manifests/crd.json").write_text(json.dumps(crd))
    packed = pack(tmp_path / "bundle", tmp_path / "bundle.tar.gz")
    found = ours(tmp_path / "bundle.tar.gz", "plain")
    print(f"\n{told(tmp_path / 'crd' / 'plain', packed, found)}")
    assert found["objects"] == 1
    assert found["peak_kib"] / 1024 <= MAX_MIB
