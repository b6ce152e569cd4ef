"""The names of API groups that several rooms use are written once."""

from __future__ import annotations

import ast
import re

from provisioner import api_groups
from tests.support.folders import ROOT
from tests.support.syntax_trees import trees_with

# Tables of many groups, which are read, and compared with the API server, as they stand.
TABLES = {
    "provisioner/rbac/rules.py",
    "provisioner/render/targets.py",
    "provisioner/review/judged/unjudged_fields.py",
    "provisioner/sandbox/kinds.py",
}


def test_a_group_is_written_in_one_module_and_in_tables() -> None:
    names = {value for name, value in vars(api_groups).items() if name.endswith("_GROUP")}
    found = set()
    for path, tree in trees_with("|".join(map(re.escape, names)), ROOT / "provisioner", ROOT / "approvals"):
        nodes = ast.walk(tree)
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        # A group, a version of it, or a label or annotation under its name; a sentence that names one is none of them.
        if any(one.partition("/")[0] in names and len(one.split()) == 1 for one in texts):
            found.add(str(path.relative_to(ROOT)))
    assert found == {"provisioner/api_groups.py", *TABLES}
