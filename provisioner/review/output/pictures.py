"""The pictures of a report inside its page that needs nothing else: nested lists, folded by the browser alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from html import escape

from provisioner.api_groups import RBAC_GROUP
from provisioner.review.base.marks import Mark
from provisioner.review.base.text import visible, with_names
from provisioner.review.crds.schema_tree import Branch, SchemaPicture, SchemaTree, crds_of, picture_of
from provisioner.review.rights.account_graph import AccountGraph, BindingNode, RuleNode, account_graph, accounts_of
from provisioner.sentences import and_more
from provisioner.values import SHAPES, Action, Finding, ObjectRef, Report, Section, Severity

MAX_ACCOUNTS = 20
MAX_CRDS = 40
_GROUP = f".{RBAC_GROUP}"

STYLE = """
.picture, .picture ul { list-style: none; padding-left: 1.2rem; margin: 0 }
.picture ul { border-left: 1px solid var(--rule) } .mark { font-weight: 600; white-space: nowrap }
del { background: var(--gone) } ins { background: var(--come); text-decoration: none }
""".strip()


def pictures_of(section: Section, report: Report, hidden: Collection[ObjectRef]) -> Iterator[str]:
    """What can be drawn of one section; of `hidden` objects nothing is."""
    if section is Section.PERMISSIONS:
        yield from _accounts(report, hidden)
    elif section is Section.CRDS:
        yield from _schemas(report, hidden)


def _accounts(report: Report, hidden: Collection[ObjectRef]) -> Iterator[str]:
    """The ways of each account whose rights change, the worst first."""
    seen = {ref.identity for ref in hidden}
    graphs = (account_graph(report, subject, hidden=seen) for subject in accounts_of(report))
    changed = [one for one in graphs if one.findings or any(mark is not Mark.SAME for mark in one.counts)]
    for graph in changed[:MAX_ACCOUNTS]:
        yield from _graph(graph)
    yield from _more(len(changed) - MAX_ACCOUNTS, "accounts")


def _schemas(report: Report, hidden: Collection[ObjectRef]) -> Iterator[str]:
    """The changed branches of each CRD that is updated, the worst first."""
    shown = [one for one in crds_of(report) if one.action is Action.UPDATE and one.ref not in hidden]
    for planned in shown[:MAX_CRDS]:
        picture = picture_of(report, planned)
        yield f"<details><summary>Changed fields of <code>{_shown(planned.ref.name)}</code></summary>"
        yield from _picture(picture)
        yield "</details>"
    yield from _more(len(shown) - MAX_CRDS, "custom resource definitions")


def _more(count: int, what: str) -> Iterator[str]:
    if count > 0:
        yield f"<p>{and_more(count, what)}, not drawn</p>"


def _graph(graph: AccountGraph) -> Iterator[str]:
    totals = ", ".join(f"{count} {mark}" for mark, count in graph.totals) or "none of this bundle"
    yield f"<details><summary>Ways of <code>{_shown(graph.account)}</code> to its rights: rules {totals}</summary>"
    if graph.is_only_rearranged:
        yield "<p>The ways differ. What this account may do in the end does not.</p>"
    yield '<ul class="picture">'
    for one in graph.bindings:
        yield from _binding(one)
    yield "</ul>"
    yield from _more(graph.left_out, "bindings")
    yield from _more(graph.hidden, "roles and bindings that are hidden from you")
    yield "</details>"


def _binding(node: BindingNode) -> Iterator[str]:
    scope = f"<code>{_shown(node.scope)}</code>" if node.scope else "the whole cluster"
    role = _mark(node.role_mark) if node.is_role_known else "of the cluster"
    yield f"<li>{_mark(node.mark)} {_named(node.binding)} gives in {scope}<ul><li>{role} {_named(node.role)}<ul>"
    for rule in node.rules:
        yield from _rule(rule)
    if node.same:
        yield f"<li>{len(node.same)} rules as before</li>"
    yield "</ul>"
    yield from _more(node.left_out, "rules")
    yield "</li></ul></li>"


def _rule(rule: RuleNode) -> Iterator[str]:
    words = f"{_shown(rule.verbs)} <code>{_shown(rule.objects)}</code>" if rule.verbs else "of the cluster"
    place = f" in <code>{_shown(rule.file)}</code>" if rule.file else ""
    origin = f" of {_named(rule.origin)}" if rule.origin else ""
    yield f"<li>{_mark(rule.mark)} {words} (rule {rule.index}{origin}{place})"
    yield from _remarks(rule.findings)
    yield "</li>"


def _picture(picture: SchemaPicture) -> Iterator[str]:
    if picture.problem:
        yield f"<p>{_shown(picture.problem)}</p>"
    for tree in picture.trees:
        yield from _tree(tree)


def _tree(tree: SchemaTree) -> Iterator[str]:
    left_out = f", {tree.left_out} changed branches not drawn" if tree.left_out else ""
    yield f"<p>{_mark(tree.mark)} <code>{_shown(tree.version)}</code>: {tree.fields} fields{left_out}</p>"
    if tree.root:
        yield '<ul class="picture">'
        yield from _branch(tree.root)
        yield "</ul>"


def _branch(branch: Branch) -> Iterator[str]:
    yield f"<li>{_mark(branch.mark)} <code>{_shown(branch.name or 'the whole object')}</code> {_shown(branch.kind)}"
    for one in branch.differences:
        before = f"<del>{_shown(one.before)}</del> " if one.before else ""
        after = f"<ins>{_shown(one.after)}</ins>" if one.after else ""
        yield f"<p><code>{_shown(one.keyword)}</code> {before}{after}</p>"
    yield from _remarks(branch.findings)
    if branch.branches:
        yield "<ul>"
        for inner in branch.branches:
            yield from _branch(inner)
        yield "</ul>"
    if branch.same:
        yield f"<p>{branch.same} fields {'in it' if branch.mark in (Mark.NEW, Mark.GONE) else 'as before'}</p>"
    yield from _more(branch.left_out, "that change")
    yield "</li>"


def _remarks(findings: Iterable[Finding]) -> Iterator[str]:
    for one in findings:
        asked = [f"{question} {answer}" for question, answer in sorted(one.verdicts.items()) if answer != Severity.SAFE]
        verdicts = f" ({_shown(', '.join(asked))})" if asked else ""
        severity = f'<span class="severity {one.severity}">{SHAPES[one.severity]} {one.severity}</span>'
        yield f"<p>{severity} <code>{_shown(one.rule)}</code> {sentence_of(one.message)}{verdicts}</p>"


def _mark(mark: Mark) -> str:
    return f'<span class="mark">{mark.sign} {mark}</span>'


def _named(ref: str) -> str:
    return f"<code>{_shown(ref.replace(_GROUP, '', 1))}</code>"


def sentence_of(text: str) -> str:
    """A sentence of a report, escaped; what it quotes in backticks is a name."""
    return with_names(_shown(text))


def _shown(text: str) -> str:
    return escape(visible(text))
