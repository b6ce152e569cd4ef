"""A report as one page of HTML that needs nothing else: no script, no request, everything escaped (S24)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape

from provisioner.review.as_text import SHAPES, path_text
from provisioner.review.difference import diff_lines
from provisioner.review.preflight_findings import yaml_of
from provisioner.review.record import plain
from provisioner.review.text import visible
from provisioner.values import Action, Finding, PlannedAction, Report, Section, Severity

_STYLE = """
:root { color-scheme: light dark; --rule: #8885; --critical: #a30000; --breaking: #c9190b; --unknown: #6753ac;
  --dangerous: #b35c00; --notable: #00629b; --safe: #6a6e73; --come: #3e863522; --gone: #c9190b22 }
@media (prefers-color-scheme: dark) { :root { --critical: #ff8a80; --breaking: #ff7b6b; --unknown: #b6a6e9;
  --dangerous: #f4b678; --notable: #73bcf7; --safe: #a3a3a3 } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere } h2 { font-size: 1.1rem; border-bottom: 1px solid var(--rule) }
.findings { list-style: none; padding: 0 } .findings > li { margin: .6rem 0 } p { margin: .2rem 0 }
.severity { font-weight: 600; white-space: nowrap } .known { opacity: .75 }
.critical { color: var(--critical) } .breaking { color: var(--breaking) } .unknown { color: var(--unknown) }
.dangerous { color: var(--dangerous) } .notable { color: var(--notable) } .safe { color: var(--safe) }
code, pre { font: 13px/1.45 ui-monospace, monospace } p, code { overflow-wrap: anywhere }
pre { overflow-x: auto; border: 1px solid var(--rule); padding: .5rem }
pre span { display: block; white-space: pre } .come { background: var(--come) } .gone { background: var(--gone) }
""".strip()
_CLASSES = {"+": "come", "-": "gone", " ": "same", "@": "fold"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_SHOWN = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.DELETE)


def as_html(report: Report, *, title: str) -> str:
    """The whole report with its differences, to print or to send."""
    return "\n".join(_page(report, title)) + "\n"


def _page(report: Report, title: str) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield f"<title>{_shown(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{_shown(title)}</h1>\n<ul>"
    for sentence in report.headline:
        yield f"<li>{_shown(sentence)}</li>"
    yield "</ul>"
    for section in Section:
        findings = report.in_section(section)
        if findings:
            yield f"<h2>{section.capitalize()}: {_totals(findings)}</h2>"
            yield '<ul class="findings">'
            for finding in findings:
                yield from _finding(finding)
            yield "</ul>"
    yield f"<h2>What happens to each object</h2>\n<p>Plan <code>{_shown(report.plan.digest)}</code></p>"
    for planned in report.plan.actions:
        if planned.action in _SHOWN:
            yield from _difference(planned)
    yield "</body>\n</html>"


def _shown(text: str) -> str:
    return escape(visible(text))


def _totals(findings: Iterable[Finding]) -> str:
    counted = Counter(one.severity for one in findings)
    return ", ".join(f"{counted[severity]} {severity}" for severity in Severity if counted[severity])


def _finding(finding: Finding) -> Iterator[str]:
    severity = finding.severity
    known = "" if finding.is_new else " <span>(as before)</span>"
    yield f'<li class="{"new" if finding.is_new else "known"}">'
    yield f'<p><span class="severity {severity}">{SHAPES[severity]} {severity}</span> '
    yield f"<code>{_shown(finding.rule)}</code>{known}</p>\n<p>{_shown(finding.message)}</p>"
    if finding.path:
        yield f"<p>at <code>{_shown(path_text(finding.path))}</code></p>"
    evidence = dict(finding.evidence)
    if yaml_of(finding):
        yield f"<pre>{escape(visible(evidence.pop('yaml'), keep_newlines=True))}</pre>"
    if evidence:
        text = json.dumps(plain(evidence), indent=2, sort_keys=True, ensure_ascii=False)
        yield f"<details><summary>Evidence</summary><pre>{escape(visible(text, keep_newlines=True))}</pre></details>"
    yield "</li>"


def _difference(planned: PlannedAction) -> Iterator[str]:
    yield f"<details><summary>{_shown(f'{planned.action} {planned.ref}')}</summary><pre>"
    for line in diff_lines(planned.before, planned.after):
        yield f'<span class="{_CLASSES[line.kind]}">{escape(f"{line.kind} {line.text}")}</span>'
    yield "</pre></details>"
