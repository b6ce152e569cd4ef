"""Which rules the library's code can find, read from its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import provisioner
from tests.support.syntax_trees import trees_with

ROOT = Path(provisioner.__file__).parent
FAMILIES = (
    "AS|API|AVL|CAT|CRD|DEL|HELM|HIS|HOOK|IMG|IMM|ING|LIV|LKP|MADE|NP|OBJ|OWN|OWN-PRATIQUE|PATCH|POD|PRE|QUO|RB|REQ|SCH"
    "|SEC|SRC|SRV|SV|SYS|TXT|VAL|WH"
)
RULE = re.compile(rf"(?:{FAMILIES})-(?:\d+[a-z]*|RULES|DIFF|LESS|SAME)|GAP|CRASHED|HARMLESS|UNCLAIMED|UNJUDGED")


def rules_in_code() -> Iterator[str]:
    """Every text in the library's code that is the id of a rule."""
    for _, tree in trees_with(RULE.pattern, ROOT):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and RULE.fullmatch(node.value):
                yield node.value
