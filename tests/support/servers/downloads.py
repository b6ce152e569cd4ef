"""A folder that is served over HTTP, and archives in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import yaml

from approvals.management.demo.seeds import bundle_checksums, pack_bundles
from tests.support.servers.serving import Handler, serving

# Below the limit of one file.
PER_FILE = 100


class _Files(Handler, SimpleHTTPRequestHandler):
    """Those of a folder."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address under which the files of `folder` are to be had."""
    folder.mkdir(parents=True, exist_ok=True)
    with serving(partial(_Files, directory=str(folder))) as url:
        yield url


def archive(objects: Sequence[Mapping[str, Any]], name: str, scratch: Path, into: Path) -> str:
    """The name of the file in `into` that is a plain bundle of these objects; a name is used once."""
    manifests = scratch / name / "bundle" / name / "manifests"
    manifests.mkdir(parents=True)
    for first in range(0, len(objects), PER_FILE):
        part = yaml.dump_all(objects[first : first + PER_FILE], Dumper=yaml.CSafeDumper)
        (manifests / f"{first:05}.yaml").write_text(part)
    pack_bundles(scratch / name, into)
    (made,) = bundle_checksums(scratch / name)
    return made
