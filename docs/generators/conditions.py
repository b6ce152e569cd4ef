"""docs/reference/conditions.md: Ready, Reconciling and Stalled of a BundleDeployment in each state."""

from __future__ import annotations

from approvals.steps.mirroring.conditions import ConditionStatus, Readiness, ReadinessRow
from docs.generators import markdown

INTRODUCTION = (
    (
        "The conditions of a BundleDeployment say why it is not ready, since when, and who can do what next: "
        "`kubectl get bd NAME -o wide`. They hold no findings, no comments of reviewers and no words of the API server."
    ),
    (
        "`Ready`, `Reconciling` and `Stalled` follow kstatus, which Flux and other tools read; its answer is in the "
        "last column. `observedGeneration` is the generation of the spec that Pratique saw last, in every state: while "
        "it is older than `metadata.generation`, kstatus says InProgress. Once the BundleDeployment is deleted, it "
        "says Terminating, and the conditions say what is waited for. Drift does not change `Ready`: `Drifted` says "
        "so, except of Secrets: the page of the deployment shows their drift to people who can get them."
    ),
    (
        "*Code* stands for the code of what is wrong, such as `MissingRights` for `missing-rights`. "
        "[Errors](errors.md) lists them."
    ),
)


def page() -> str:
    lines = markdown.heading_of_page("Conditions", "approvals/steps/mirroring/conditions.py", *INTRODUCTION)
    rows = [_row(one.value) for one in Readiness]
    lines += markdown.table(("when", "Ready", "Reconciling", "Stalled", "reason", "kstatus"), rows)
    return markdown.page(lines)


def _row(row: ReadinessRow) -> tuple[str, ...]:
    reason = f"`{row.reason}`" if row.reason else "*Code*"
    return (row.when, row.ready, str(row.is_reconciling), str(row.is_stalled), reason, _kstatus(row))


def _kstatus(row: ReadinessRow) -> str:
    if row.is_reconciling:
        return "InProgress"
    is_ready = row.ready is ConditionStatus.TRUE
    return "Failed" if row.is_stalled else "Current" if is_ready else "InProgress"
