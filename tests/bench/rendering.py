"""Unpacks and renders one archive in a process of its own, and says how long it took and what it held: for benchmarks.

python -m tests.bench.rendering ARCHIVE FORMAT ROUNDS
"""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

from provisioner.errors import BadConfig
from provisioner.render import BUILT_IN, Rendering, Target, keep_engine, render_content
from provisioner.render.helm.engine import ChartJob, render
from provisioner.unpack import unpack
from provisioner.values import Archive
from tests.support.provisioner.large_crds import peak_kib

KUBERNETES = "v1.36.3"


def pack(folder: Path, file: Path, *, below: str = "") -> int:
    """The files of a folder as an archive; how many bytes they have. A chart lies in a folder of its archive."""
    files = {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}
    if "Chart.template.yaml" in files:  # as some of the collection keep it
        files["Chart.yaml"] = files.pop("Chart.template.yaml")
    write(files, file, below=below)
    return sum(map(len, files.values()))


def write(files: Mapping[str, bytes], file: Path, *, below: str = "") -> None:
    with tarfile.open(file, mode="w:gz", compresslevel=6) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{below}/{path}" if below else path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def main(file: str, format_name: str, rounds: str) -> None:
    data, seconds, objects, why = Path(file).read_bytes(), [], 0, ""
    config: dict[str, str] = {}
    # As the service renders a chart: told of a cluster.
    target = Target(KUBERNETES, served_apis(), is_upgrade=False) if format_name == "helm" else None
    began = time.perf_counter()
    # The first one waits for the start of what renders charts, the others do not.
    with keep_engine():
        while len(seconds) <= int(rounds):
            try:
                tree = unpack([Archive(Path(file).name, data)])
                wanted = Rendering(format_name, "home", "installer", BUILT_IN.get, config, target=target)
                objects = len(render_content(tree, wanted, pins=[]).everything)
            except BadConfig as exc:
                if not config:  # an operator that watches one namespace: from now on its own
                    config = {"watchNamespace": "home"}
                    continue
                why = f"BadConfig: {exc}"
            except Exception as exc:  # noqa: BLE001 -- a bundle that is refused is a figure as well
                why = f"{type(exc).__name__}: {exc}"
            seconds.append(time.perf_counter() - began)
            began = time.perf_counter()
        peak = peak_kib() + sum(map(peak_kib, children()))
    cold, *warm = seconds
    said = {"cold": cold, "seconds": warm, "peak_kib": peak, "objects": objects, "why": why[:200]}
    sys.stdout.write(f"{json.dumps(said)}\n")


def children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def served_apis() -> tuple[str, ...]:
    """What Helm takes for served where no cluster is known: a cluster's own list is as long."""
    template = b"{text: '{{ join \",\" .Capabilities.APIVersions }}'}"
    files = {"Chart.yaml": b"apiVersion: v2\nname: all\nversion: 1.0.0\n", "templates/all.yaml": template}
    job = ChartJob(files, {}, "all", "home", "", (), is_upgrade=False)
    return tuple(render(job).templates["templates/all.yaml"].split("'")[1].split(","))


if __name__ == "__main__":
    main(*sys.argv[1:])
