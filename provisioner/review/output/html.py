"""A report as one page of HTML that needs nothing else: no script, no request, everything escaped (S24)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from provisioner.review.base.difference import diff_lines
from provisioner.review.base.record import plain
from provisioner.review.base.text import visible
from provisioner.review.output.pictures import STYLE, pictures_of, sentence_of
from provisioner.review.output.terminal import path_text
from provisioner.review.preflight.findings import yaml_of
from provisioner.review.rules.shown import as_html as rules_as_html
from provisioner.review.rules.shown import rules_of
from provisioner.values import SHAPES, Action, Finding, ObjectRef, PlannedAction, Report, Section, Severity

_STYLE = """
:root { color-scheme: light dark; background: #fff; color: #151515; --rule: #8885;
  --critical: #a30000; --breaking: #c9190b; --unknown: #6753ac;
  --dangerous: #b35c00; --notable: #00629b; --safe: #3d7317; --come: #3e863522; --gone: #c9190b22 }
@media (prefers-color-scheme: dark) { :root { background: #1f1f1f; color: #f2f2f2;
  --critical: #ff8a80; --breaking: #ff7b6b; --unknown: #b6a6e9;
  --dangerous: #f4b678; --notable: #73bcf7; --safe: #a3a3a3 } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; border-bottom: 1px solid var(--rule) }
.findings { list-style: none; padding: 0 } .findings > li { margin: .6rem 0 } p { margin: .2rem 0 }
.severity { font-weight: 600; white-space: nowrap }
.critical { color: var(--critical) } .breaking { color: var(--breaking) } .unknown { color: var(--unknown) }
.dangerous { color: var(--dangerous) } .notable { color: var(--notable) } .safe { color: var(--safe) }
code, pre { font: 13px/1.45 ui-monospace, monospace }
pre { overflow-x: auto; border: 1px solid var(--rule); padding: .5rem }
table { border-collapse: collapse; margin: .3rem 0 } caption { text-align: left }
.note { border-left: 3px solid var(--rule); padding-left: .5rem }
.scroll { overflow-x: auto } .lines { white-space: pre-line }
th, td { border: 1px solid var(--rule); padding: .1rem .5rem; text-align: left; vertical-align: top;
  overflow-wrap: normal }
@media print { :root { color-scheme: light } body { font-size: 10pt; margin: 0; max-width: none }
  pre, .scroll { overflow: visible } pre span { white-space: pre-wrap } li, tr { break-inside: avoid }
  h2, summary { break-after: avoid } }
pre span { display: block; white-space: pre } .come { background: var(--come) } .gone { background: var(--gone) }
""".strip()
_CLASSES = {"+": "come", "-": "gone", " ": "same", "@": "fold"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_SHOWN = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.DELETE)
_NEVER_FOLDED = (Severity.CRITICAL, Severity.UNKNOWN)
# Drawn as capability by reach, not told as evidence.
_DRAWN = "table"
_FIRST_COLUMNS = ("path", "scope", "verbs", "apiGroups", "resources", "resourceNames", "before", "after")
_MAX_SHORT = 80
Notes = Mapping[str, Collection[str]]
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of evidence for people: a table where `columns` are named, else `text` of one line or of several."""

    name: str
    text: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def as_html(
    report: Report,
    *,
    title: str,
    hidden: Collection[ObjectRef] = (),
    notes: Mapping[str, Collection[str]] | None = None,
) -> str:
    """The whole report with its differences, to print or to send.

    Of the `hidden` objects it says that they exist, and no more: neither what is planned for them nor their lines.
    `notes` are what people said of findings, by fingerprint.
    """
    return "\n".join(_page(report, title, hidden, notes or {})) + "\n"


def facts_of(evidence: Mapping[str, Any]) -> list[Fact]:
    """A finding's evidence as facts, by name, without those that say nothing."""
    told = {name: value for name, value in evidence.items() if name != _DRAWN}
    return [_fact(name, plain(value)) for name, value in sorted(told.items()) if not _is_empty(name, value)]


def _is_empty(name: str, value: object) -> bool:
    """A scope of "" is the whole cluster, and null can be a counterexample: both say something."""
    if name == "left_out" and value == 0:
        return True
    return name not in ("counterexample", "scope") and (value is None or value in ("", [], {}, ()))


def _fact(name: str, value: Any) -> Fact:
    words = _words(name)
    if name == "counterexample":
        return Fact(words, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        columns = _columns(value)
        rows = (tuple(_cell(column, one.get(column, "")) for column in columns) for one in value)
        return Fact(words, columns=tuple(map(_words, columns)), rows=tuple(rows))
    if isinstance(value, dict):
        return Fact(words, "\n".join(f"{key}: {_cell(key, one)}" for key, one in sorted(value.items())))
    return Fact(words, _cell(name, value))


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    used = {name for row in rows for name, value in row.items() if not _is_empty(name, value)}
    return [name for name in _FIRST_COLUMNS if name in used] + sorted(used - set(_FIRST_COLUMNS))


def _cell(name: str, value: Any) -> str:
    if name in ("path", "paths", "places"):
        return _places(value)
    if name == "scope":
        return str(value) or "whole cluster"
    if name == "apiGroups" and isinstance(value, list):
        return ", ".join(str(one) or "core" for one in value)
    if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
        shown = [one if isinstance(one, str) else json.dumps(one) for one in value]
        return ("\n" if sum(map(len, shown)) > _MAX_SHORT else ", ").join(shown)
    if isinstance(value, dict | list):
        parts = value if isinstance(value, list) else [value] if value else []
        return "\n".join(json.dumps(one, sort_keys=True, ensure_ascii=False) for one in parts)
    return value if isinstance(value, str) else json.dumps(value)


def _places(value: Any) -> str:
    """One path, or several in lines; a path is text already, or a list of its keys and indexes."""
    if not isinstance(value, list):
        return str(value)
    if any(isinstance(one, list) for one in value):
        return "\n".join(_places(one) for one in value)
    return path_text(tuple(one if isinstance(one, int) else str(one) for one in value))


def _words(name: str) -> str:
    return _CAMEL.sub(" ", name).replace("_", " ").lower()


def _page(report: Report, title: str, hidden: Collection[ObjectRef], notes: Notes) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield f"<title>{_shown(title)}</title>\n<style>{_STYLE}\n{STYLE}</style>\n</head>\n<body>"
    yield f"<main>\n<h1>{_shown(title)}</h1>\n<ul>"
    for sentence in report.headline:
        yield f"<li>{sentence_of(sentence)}</li>"
    yield f"</ul>\n<p>All findings: {_totals(report.findings) or 'none'}.</p>"
    for section in Section:
        findings = report.in_section(section)
        if findings:
            yield from _section(section, findings, notes)
            yield from pictures_of(section, report, hidden)
    yield f"<h2>What happens to each object</h2>\n<p>Plan <code>{_shown(report.plan.digest)}</code></p>"
    for planned in report.plan.actions:
        if planned.ref in hidden:
            yield f"<p>{_shown(str(planned.ref))}: exists, hidden from you</p>"
        elif planned.action in _SHOWN:
            yield from _difference(planned)
    yield from rules_as_html(rules_of(report.findings))
    yield "</main>\n</body>\n</html>"


def _section(section: Section, findings: Iterable[Finding], notes: Notes) -> Iterator[str]:
    """New findings first; what was there before is folded behind its totals, unless it is critical or unknown."""
    told = list(findings)
    folded = [one for one in told if not one.is_new and one.severity not in _NEVER_FOLDED]
    yield f"<h2>{section.capitalize()}: {_totals(told)}</h2>"
    yield from _list([one for one in told if one not in folded], notes)
    if folded:
        yield f"<details><summary>As before: {_totals(folded)}</summary>"
        yield from _list(folded, notes)
        yield "</details>"


def _list(findings: list[Finding], notes: Notes) -> Iterator[str]:
    if findings:
        yield '<ul class="findings">'
        for finding in findings:
            yield from _finding(finding, notes.get(finding.fingerprint, ()))
        yield "</ul>"


def _shown(text: str) -> str:
    return escape(visible(text))


def _totals(findings: Iterable[Finding]) -> str:
    counted = Counter(one.severity for one in findings)
    return ", ".join(f"{counted[severity]} {severity}" for severity in Severity if counted[severity])


def _finding(finding: Finding, notes: Collection[str]) -> Iterator[str]:
    severity = finding.severity
    known = "" if finding.is_new else " <span>(as before)</span>"
    yield f'<li class="{"new" if finding.is_new else "known"}">'
    yield f'<p><span class="severity {severity}">{SHAPES[severity]} {severity}</span> '
    yield f"<code>{_shown(finding.rule)}</code>{known}</p>\n<p>{sentence_of(finding.message)}</p>"
    if finding.server_words:
        yield f"<p>The cluster says: {_shown(finding.server_words)}</p>"
    for note in notes:
        yield f'<p class="note lines">{escape(visible(note, keep_newlines=True))}</p>'
    if finding.path:
        yield f"<p>at <code>{_shown(path_text(finding.path))}</code></p>"
    if finding.verdicts:
        answers = ", ".join(f"{question} {answer}" for question, answer in sorted(finding.verdicts.items()))
        yield f"<p>Verdicts: {_shown(answers)}</p>"
    evidence = dict(finding.evidence)
    if yaml_of(finding):
        yield f'<pre tabindex="0">{escape(visible(evidence.pop("yaml"), keep_newlines=True))}</pre>'
    facts = facts_of(evidence)
    if facts:
        yield "<details><summary>Evidence</summary>"
        for fact in facts:
            yield from _evidence(fact)
        yield "</details>"
    yield "</li>"


def _evidence(fact: Fact) -> Iterator[str]:
    if not fact.columns:
        text = escape(visible(fact.text, keep_newlines=True))
        yield f'<p class="lines">{_shown(fact.name)}: <code>{text}</code></p>'
        return
    yield f'<div class="scroll" tabindex="0"><table><caption>{_shown(fact.name)}</caption><thead><tr>'
    yield "".join(f'<th scope="col">{_shown(column)}</th>' for column in fact.columns) + "</tr></thead><tbody>"
    for row in fact.rows:
        cells = (escape(visible(cell, keep_newlines=True)) for cell in row)
        yield "<tr>" + "".join(f'<td class="lines"><code>{cell}</code></td>' for cell in cells) + "</tr>"
    yield "</tbody></table></div>"


def _difference(planned: PlannedAction) -> Iterator[str]:
    yield f'<details><summary>{_shown(f"{planned.action} {planned.ref}")}</summary><pre tabindex="0">'
    for line in diff_lines(planned.before, planned.after):
        yield f'<span class="{_CLASSES[line.kind]}">{escape(f"{line.kind} {line.text}")}</span>'
    yield "</pre></details>"
