"""The templates of the page of a report. Every text that one shows is escaped, and what hides in it made visible (S24),
whether or not the author of the template thought of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from provisioner.api_groups import RBAC_GROUP
from provisioner.review.base.text import visible, with_names
from provisioner.sentences import and_more
from provisioner.values import SHAPES, Finding, Severity

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(template: str, **facts: Any) -> str:
    """The text of a file in `templates` with these facts. Text of one line is `{{ text }}`.

    `{{ text|lines }}` keeps its line feeds, `{{ text|sentence }}` shows what it quotes in backticks as names, and
    `{{ text|e }}` is only escaped: for what is `visible` already.
    """
    return _environment().get_template(template).render(facts)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - takes long: with the first page

    made = Environment(
        loader=PackageLoader("provisioner.review.output"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"lines": _lines, "sentence": _sentence, "and_more": and_more}
    made.filters |= {"without_rbac_group": _without_rbac_group, "worse_verdicts": _worse_verdicts}
    made.globals["shapes"] = SHAPES
    return made


def _finalized(value: object) -> object:
    return value if hasattr(value, "__html__") else visible(str(value))


def _without_rbac_group(ref: str) -> str:
    """The name of a role or binding in a picture of nothing else."""
    return ref.replace(f".{RBAC_GROUP}", "", 1)


def _worse_verdicts(finding: Finding) -> str:
    """What is not safe of a finding's verdicts, in brackets."""
    asked = [f"{question} {answer}" for question, answer in sorted(finding.verdicts.items()) if answer != Severity.SAFE]
    return f" ({', '.join(asked)})" if asked else ""


def _lines(text: str) -> Markup:
    return escape(visible(text, keep_newlines=True))


def _sentence(text: str) -> Markup:
    return Markup(with_names(str(escape(visible(text)))))  # noqa: S704 - escaped before
