"""The rules of reports in words: one Markdown file for each id, in this folder, read when it is first asked for.

The pages, reports and `pratique explain` say what stands in these files; docs/rules/README.md lists them. To add a
rule, copy a file, name it by the rule's id, fill it in, and run `make docs`; tests tell what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.review.rules.files import Phrase, RuleText, messages_of, rule_ids, rule_text

__all__ = ["Phrase", "RuleText", "messages_of", "rows_of", "rule_ids", "rule_text"]


def rows_of(rule: str, evidence: Mapping[str, Any]) -> list[str]:
    """The ids under which a finding is explained: its rule's, and before that its variant's where evidence names one.

    SCH-36a is found as SCH-36: the catalog has one id for both ways in which null may change, and explains two.
    """
    variant = evidence.get("variant")
    return [variant, rule] if isinstance(variant, str) else [rule]
