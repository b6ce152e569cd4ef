"""An approval that is carried over is a review, and names the one that it carries."""

import django.db.models.deletion
from django.db import migrations, models

from approvals.migrations import _append_only


class Migration(migrations.Migration):
    dependencies = [("approvals", "0106_rollouts")]

    operations = [
        migrations.AddField(
            model_name="request", name="carry_over", field=models.JSONField(blank=True, db_default={}, default=dict)
        ),
        migrations.AddField(
            model_name="voidedround",
            name="apply_at",
            field=models.DateTimeField(
                blank=True,
                null=True,
                help_text="it was not to be applied before that, which the next round does not keep",
            ),
        ),
        migrations.AddField(
            model_name="review",
            name="carries",
            field=models.ForeignKey(
                blank=True,
                null=True,
                help_text="the approval of an earlier round or request that is carried over, and when it was given",
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="approvals.review",
            ),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(carries=None) | models.Q(decision="Approve", policy=None, user__isnull=False),
                name="a_persons_approval_is_carried",
            ),
        ),
        migrations.RunPython(_append_only.keep_append_only, migrations.RunPython.noop),
    ]
