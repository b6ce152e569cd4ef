"""Measures the size and the shape of the code: `python docs/contributing/house.py [FOLDER...]`.

Without a folder it measures the product (`approvals`, `provisioner`) and the tests. The same counts for every Python
project, so another one can be measured beside it: give its folders.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
MOST_DEFINITIONS = 8
# Module names that say what was done to something instead of naming what they hold. Nouns that look alike are spared.
PARTICIPLES = ("ing", "ed")
NOUNS = frozenset(["embedded", "feed", "listing", "paging", "rendering", "string", "thing", "timing", "encoding"])
IRREGULAR = re.compile("aside|apart|beside|held|told|seen|given|shown|said|kept|made|found|known|lost|left|sent")


@dataclass(slots=True)
class House:
    """Counts over many files."""

    files: int = 0
    lines: int = 0
    code_lines: int = 0
    comment_lines: int = 0
    functions: int = 0
    used_once: list[str] = field(default_factory=list)
    definitions: Counter[str] = field(default_factory=Counter)
    loops: int = 0
    vague_loops: int = 0
    participles: list[str] = field(default_factory=list)

    @property
    def shared_names(self) -> dict[str, int]:
        return {name: count for name, count in self.definitions.most_common() if count > MOST_DEFINITIONS}

    def add(self, path: Path) -> None:
        text = path.read_text()
        tree = ast.parse(text)
        self.files += 1
        self.lines += text.count("\n")
        self._count_tokens(text)
        words = path.stem.split("_")
        if IRREGULAR.fullmatch(words[-1]) or (
            len(words) == 1 and path.stem.endswith(PARTICIPLES) and path.stem not in NOUNS
        ):
            self.participles.append(str(path))
        functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
        self.functions += len(functions)
        self.definitions.update(each.name for each in functions if not each.name.startswith("__"))
        uses = Counter(names_used(tree))
        self.used_once += [
            f"{path}:{each.lineno} {each.name}"
            for each in functions
            if each.name.startswith("_") and not each.name.startswith("__") and uses[each.name] == 1
        ]
        for target in loop_targets(tree):
            self.loops += 1
            self.vague_loops += target in ("one", "it")

    def _count_tokens(self, text: str) -> None:
        code, comments = set[int](), set[int]()
        spared = (
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENCODING,
            tokenize.ENDMARKER,
        )
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                comments.add(token.start[0])
            elif token.type not in spared:
                code.update(range(token.start[0], token.end[0] + 1))
        self.code_lines += len(code)
        self.comment_lines += len(comments)


def names_used(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def loop_targets(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            yield node.target.id if isinstance(node.target, ast.Name) else ""


def measure(folders: Iterable[Path]) -> House:
    house = House()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if "migrations" not in path.parts and ".venv" not in path.parts:
                house.add(path)
    return house


def describe(house: House) -> str:
    thousands, functions = house.lines / 1000, max(house.functions, 1)
    return "\n".join(
        [
            f"  lines                          {house.lines}",
            f"  files                          {house.files}",
            f"  functions per 1,000 lines      {house.functions / max(thousands, 0.001):.0f}",
            f"  private functions used once    {len(house.used_once)} ({len(house.used_once) / functions:.0%} of all)",
            f"  names defined more than {MOST_DEFINITIONS}x     {len(house.shared_names)}",
            f"  modules named by a participle  {len(house.participles)}",
            f"  loop items called one or it    {house.vague_loops} ({house.vague_loops / max(house.loops, 1):.0%})",
            f"  lines of code for one comment  {house.code_lines / max(house.comment_lines, 1):.0f}",
        ]
    )


def main(folders: list[str]) -> None:
    if folders:
        house = measure(map(Path, folders))
        sys.stdout.write(f"{' '.join(folders)}\n{describe(house)}\n")
        sys.stdout.write("".join(f"  used once: {each}\n" for each in house.used_once))
        sys.stdout.write("".join(f"  participle: {each}\n" for each in house.participles))
        sys.stdout.write("".join(f"  defined {count} times: {name}\n" for name, count in house.shared_names.items()))
        return
    for title, names in (("product", ("approvals", "provisioner")), ("tests", ("tests",))):
        sys.stdout.write(f"{title}\n{describe(measure(map(Path, names)))}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
