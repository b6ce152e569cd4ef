"""What every row has that one worker at a time works on (ledger.claims)."""

from __future__ import annotations

from django.db import models


class Claimed(models.Model):
    """`worker_deaths` counts the workers that died in the present step of this row; progress sets it back to 0."""

    claimed_by = models.CharField(max_length=100, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    is_woken = models.BooleanField(default=False, help_text="a wake came while somebody held the claim")
    worker_deaths = models.PositiveIntegerField(default=0)
    rests_until = models.DateTimeField(
        null=True, blank=True, help_text="nobody claims it before: it killed its workers"
    )

    class Meta:
        abstract = True


class TaskClaim(Claimed):
    """The claim of a task on a row that has no claim for it: `task` as in approvals.jobs, `key` is that row's."""

    task = models.CharField(max_length=40)
    key = models.PositiveBigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "key"], name="one_claim_per_task_and_row")]

    def __str__(self) -> str:
        return f"{self.task} {self.key}"
