"""What would change from one bundle of a catalog to another, on demand: for who may get the catalog and create a
deployment, and of what a deployment runs for who may get that, which is asked again on every look.

A comparison is no request, and approves nothing. What is compared was fetched without credentials (S08), so that
whoever has both rights may know the result; of what a deployment runs everybody is shown what they may see (S09).
"""

from approvals.services.comparisons.asked import (
    AskedComparison,
    ComparisonQuestion,
    bundle_to_install,
    check_may_compare,
    cluster_to_compare_on,
    comparison_asked,
    format_offered,
)
from approvals.services.comparisons.comparing import (
    ComparedLines,
    compare_bundles,
    comparison_lines,
    comparison_result,
    known_comparison,
)

__all__ = [
    "AskedComparison",
    "ComparedLines",
    "ComparisonQuestion",
    "bundle_to_install",
    "check_may_compare",
    "cluster_to_compare_on",
    "compare_bundles",
    "comparison_asked",
    "comparison_lines",
    "comparison_result",
    "format_offered",
    "known_comparison",
]
