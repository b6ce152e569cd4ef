"""How Sphinx builds the pages (`make docs`). They stay plain Markdown: what only a site needs is added here.

The source folder is the whole repository, so that links to README.md, CONTRIBUTING.md and the files of the rules are
checked as well.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent

project = "Pratique"
author = "the Pratique authors"
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
include_patterns = ["*.md", "docs/**.md", "provisioner/review/rules/**.md"]
exclude_patterns = [".*", "static", "templates", "tests", "approvals", "deploy"]
root_doc = "docs/README"

html_theme = "furo"
html_title = "Pratique"
html_copy_source = False
html_show_copyright = False

# As a forge does it: each heading is an anchor, and a block of mermaid is a picture.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
# The title of a rule stands at the head of its file.
myst_title_to_header = True

# In the order of the navigation. Pages that are not named follow, by their names.
FIRST = (
    "reviewing",
    "operating",
    "architecture",
    "gate",
    "security",
    "contributing",
    "reference",
    "rules",
    "decisions",
)
TOP = ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")
RULES = "provisioner/review/rules/"


def setup(app: Sphinx) -> None:
    app.connect("source-read", _add_navigation)


def _add_navigation(_: Sphinx, page: str, source: list[str]) -> None:
    """Each README of a folder lists the pages and folders beside it, for the navigation of the site.

    The page of the rules lists them itself: 280 more entries in the navigation of each page would take minutes.
    Their titles get their numbers.
    """
    if page.startswith(RULES):
        number = page.rpartition("/")[2]
        source[0] = source[0].replace("---\n", "---\norphan: true\n", 1).replace("\ntitle: ", f"\ntitle: {number} ", 1)
    elif page.startswith("docs/") and page.endswith("/README"):
        entries = "\n".join(f"/{entry}" for entry in _beside(page))
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{entries}\n```\n"


def _beside(page: str) -> list[str]:
    folder = (ROOT / page).parent
    pages = {
        file.stem: f"{folder.relative_to(ROOT)}/{file.stem}" for file in folder.glob("*.md") if file.stem != "README"
    }
    rooms = {file.parent.name: f"{file.parent.relative_to(ROOT)}/README" for file in folder.glob("*/README.md")}
    found = {**pages, **rooms}
    named = [name for name in FIRST if name in found]
    entries = [found[name] for name in [*named, *sorted(set(found) - set(named))]]
    return entries + (list(TOP) if page == root_doc else [])
