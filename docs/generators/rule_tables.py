"""docs/rules/annotations.md and docs/rules/control-plane.md: what rules look for by name, with the reason for each."""

from __future__ import annotations

from collections.abc import Iterator

from docs.generators.markdown import code, heading_of_page, page, table
from provisioner.review.checks.governance.control_plane import ANYWHERE, WELL_KNOWN
from provisioner.review.checks.traffic.controller_annotations import ANNOTATIONS, Annotation
from provisioner.review.rules import messages_of

_RULE = "[{0}](../../provisioner/review/rules/{0}.md)"


_STARS = "A name that ends with `*` stands for all that begin so."


def known_annotations() -> str:
    """The annotations that rules about ingresses and load balancers judge."""
    runs, guards, leads = (_RULE.format(f"ING-0{number}") for number in (1, 2, 3))
    introduction = (
        f"{runs} judges annotations that controllers run as configuration, {guards} those that guard access,",
        f"and {leads} those that send traffic elsewhere. Others are judged by another rule, or by none (`UNJUDGED`).",
    )
    source = "provisioner/review/checks/traffic/controller_annotations.py"
    words = ("\n".join(introduction), f"{_STARS} *Off* lists values that guard nothing.")
    lines = heading_of_page("Annotations that rules judge", source, *words)
    named: dict[tuple[str, str, str], list[str]] = {}
    for one in ANNOTATIONS:
        why = messages_of(one.rule).render(f"why.{one.why}", {})
        named.setdefault((one.rule, why, _off(one)), []).append(code(one.name))
    rows = ([_RULE.format(rule), "<br>".join(names), why, off] for (rule, why, off), names in named.items())
    return page([*lines, *table(("rule", "annotations", "each of them …", "off"), rows)])


def _off(one: Annotation) -> str:
    """Nothing where only the absence of the annotation guards nothing."""
    values = [code(value) for value in sorted(one.off) if value]
    return ", ".join(values) if one.rule == "ING-02" else ""


def control_plane() -> str:
    """The objects that SYS-01 knows."""
    told = (
        f"{_RULE.format('SYS-01')} reports a bundle that creates, changes, takes over or deletes one of these objects."
    )
    source = "provisioner/review/checks/governance/control_plane.py"
    lines = heading_of_page(
        "Objects of the control plane", source, f"{told}\n{_STARS} The first row that holds counts."
    )
    return page([*lines, *table(("severity", "kinds", "namespace", "names", "each of them is one …"), _known())])


def _known() -> Iterator[list[str]]:
    for one in WELL_KNOWN:
        kinds = ", ".join(f"{kind}.{one.group}" if one.group else kind for kind in one.kinds)
        why = messages_of("SYS-01").render(f"why.{one.why}", {})
        where = "any" if one.namespace == ANYWHERE else code(one.namespace)
        yield [str(one.severity), kinds, where, ", ".join(map(code, one.names)), why]
