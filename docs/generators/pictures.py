"""docs/architecture/states.md and layers.md: pictures (Mermaid) of the tables that the code obeys."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from approvals import lifecycle
from approvals.lifecycle import OPEN, TRANSITIONS, Event, State
from docs.generators import markdown

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "pyproject.toml"

STATES = {
    State.PREPARING: "Sources are fetched and pinned, content is rendered and stored, the report is made.",
    State.IN_REVIEW: "Reviewers and policies decide.",
    State.APPROVED: "A verdict was given. The gate is asked before the first write.",
    State.APPLYING: "Objects are written, phase by phase. The gate is asked before each phase.",
    State.APPLIED: "The revision runs. Its health and its drift are watched.",
    State.RESTORING: "What ran before is restored (`spec.onFailure: RestorePrevious`).",
    State.STALE: "The plan is no longer the reviewed one. A new round is being reported.",
    State.DENIED: "A reviewer denied it.",
    State.FAILED: "It could not be prepared or applied. The code says why.",
    State.SUPERSEDED: "A newer change took its place.",
    State.EXPIRED: "Nobody settled it within `PRATIQUE_REQUEST_HOURS`.",
    State.WITHDRAWN: "A person withdrew it, or its revision was revoked.",
}
EVENTS = {
    Event.PREPARED: "report is ready",
    Event.COULD_NOT_PREPARE: "could not be prepared",
    Event.APPROVE: "approved",
    Event.DENY: "denied",
    Event.EXPIRE: "expired",
    Event.WITHDRAW: "withdrawn",
    Event.SUPERSEDE: "newer change",
    Event.START: "gate says yes",
    Event.FINISH: "done",
    Event.FAIL: "failed",
    Event.RESTORE: "restore",
    Event.FIND_STALE: "plan changed",
    Event.REPORT_AGAIN: "new round",
    Event.GIVE_UP: "cannot go on",
}
# Every open state has these; drawn, they would hide the rest.
NOT_DRAWN = {Event.EXPIRE, Event.WITHDRAW, Event.SUPERSEDE}
# The contracts that are drawn, by what they contain; the others are listed.
DRAWN = ("approvals", "provisioner")


def states() -> str:
    lines = markdown.heading_of_page(
        "States of a request",
        "approvals/lifecycle.py",
        "A request moves only as this picture shows. One table in `approvals/lifecycle.py` holds the moves, and every "
        "move writes an audit row in the same transaction.",
    )
    lines += ["```mermaid", "stateDiagram-v2", "    [*] --> preparing", *_moves(), "```", ""]
    lines += [
        f"From every open state but {_listed(lifecycle.AT_WORK)}, a request can also be withdrawn, expire, or be "
    ]
    lines[-1] += "superseded by a newer change. What is being written finishes first."
    lines += [""]
    lines += markdown.table(
        ("state", "open", "what happens"),
        ((f"`{state}`", "yes" if state in OPEN else "no", words) for state, words in STATES.items()),
    )
    lines += [
        "A BundleDeployment has at most one open request. The database guarantees it. [The gate](../gate.md) lists "
    ]
    lines[-1] += "why a request waits in a state."
    return markdown.page(lines)


def layers() -> str:
    lines = markdown.heading_of_page(
        "Layers",
        "the import contracts in pyproject.toml",
        "A module imports only from layers below its own. `make lint` checks it, and a new module beside these fails "
        "until it is named in a layer. Modules in one box do not import each other, unless they are separated by a "
        "colon in pyproject.toml. In other folders modules import each other as they need, but never in a circle.",
    )
    layered = {it["containers"][0]: it["layers"] for it in _contracts() if it["type"] == "layers"}
    for package in DRAWN:
        lines += [f"## {package}", "", *_layers(package, layered[package])]
    lines += ["## Inside the larger rooms", "", "Each list is from the top down.", ""]
    for package in sorted(set(layered) - set(DRAWN)):
        lines.append(f"- `{package}`: {', then '.join(_boxes(layered[package]))}.")
    lines += ["", "## Other rules of imports", ""]
    lines += [f"- {it['name'][0].upper()}{it['name'][1:]}." for it in _contracts() if it["type"] != "layers"]
    return markdown.page(lines)


def _moves() -> Iterator[str]:
    drawn: dict[tuple[State, State], list[str]] = {}
    for (state, event), after in TRANSITIONS.items():
        if event not in NOT_DRAWN:
            drawn.setdefault((state, after), []).append(EVENTS[event])
    for (state, after), words in drawn.items():
        yield f"    {state} --> {after}: {' / '.join(dict.fromkeys(words))}"
    for state in dict.fromkeys(after for _, after in drawn):
        if state not in OPEN:
            yield f"    {state} --> [*]"


def _layers(package: str, layers: Iterable[str]) -> Iterator[str]:
    found = [_names(layer) for layer in layers]
    yield from ["```mermaid", "flowchart TD"]
    for number, names in enumerate(found):
        yield f'    L{number}["{" · ".join(names)}"]'
    yield "    " + " --> ".join(f"L{number}" for number in range(len(found)))
    yield from ["```", ""]
    rows = (
        (str(number), f"`{name}`", _words(package, name)) for number, names in enumerate(found, 1) for name in names
    )
    yield from markdown.table(("layer", "module", "what it is for"), rows)


def _words(package: str, name: str) -> str:
    """The first sentence of the module's docstring."""
    file = ROOT / package / f"{name}.py"
    text = (file if file.is_file() else ROOT / package / name / "__init__.py").read_text("utf-8")
    words = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
    return re.split(r"(?<=[.?])\s", " ".join(words.split()))[0]


def _boxes(layers: Iterable[str]) -> list[str]:
    return [" and ".join(f"`{it}`" for it in _names(layer)) for layer in layers]


def _names(layer: str) -> list[str]:
    return re.split(r"\s*[|:]\s*", layer)


def _contracts() -> list[dict[str, Any]]:
    contracts: list[dict[str, Any]] = tomllib.loads(PROJECT.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    return contracts


def _listed(found: Iterable[State]) -> str:
    return " and ".join(f"`{it}`" for it in sorted(found))
