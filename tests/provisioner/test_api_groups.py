"""The names of API groups that several rooms use are written once."""

from __future__ import annotations

import ast
from pathlib import Path

import approvals
import provisioner
from provisioner import api_groups

# Tables of many groups, which are read, and compared with the API server, as they stand.
TABLES = {
    "provisioner/rbac/resources.py",
    "provisioner/render/scopes.py",
    "provisioner/review/frame.py",
    "provisioner/sandbox/types/kinds.py",
}


def test_a_group_is_written_in_one_module_and_in_tables() -> None:
    names = {value for name, value in vars(api_groups).items() if name.endswith("_GROUP")}
    found = set()
    for root in (Path(str(package.__file__)).parent for package in (provisioner, approvals)):
        for path in root.rglob("*.py"):
            nodes = ast.walk(ast.parse(path.read_text()))
            if any(isinstance(node, ast.Constant) and node.value in names for node in nodes):
                found.add(str(path.relative_to(root.parent)))
    assert found == {"provisioner/api_groups.py", *TABLES}
