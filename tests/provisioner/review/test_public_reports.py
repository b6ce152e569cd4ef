"""What reports of other projects showed in public, a folder each under vectors/public, is told to whoever reviews.

`old` and `new` are the two contents, `objects`, where they are there, what is stored. The first line of `expect.txt` is
what the text has to say, as a regular expression; the second says what is found, the third who reported it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from provisioner.cli.inputs import read_stored_objects
from provisioner.pipeline import look_offline
from provisioner.render import Rendering, render_content
from provisioner.review.output.terminal import as_text
from provisioner.values import Content, Tree
from tests.support.folders import VECTORS
from tests.support.provisioner.contents import is_namespaced

CASES = sorted((VECTORS / "public").glob("*/expect.txt"))


def content_of(folder: Path) -> Content:
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    form = "helm" if "Chart.yaml" in files else "plain"
    return render_content(Tree(files), Rendering(form, "shop", "installer", is_namespaced), pins=())


@pytest.mark.parametrize("expected", CASES, ids=lambda one: one.parent.name)
def test_what_a_public_report_showed_is_told(expected: Path) -> None:
    case, wanted = expected.parent, expected.read_text().splitlines()[0]
    stored = read_stored_objects(case / "objects") if (case / "objects").exists() else None
    report = look_offline(content_of(case / "new"), content_of(case / "old"), stored=stored)
    text = " ".join(as_text(report, with_all=True).split())  # lines are broken at 80 columns
    assert re.search(wanted, text)
