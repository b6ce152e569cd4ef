"""Break-glass and the review that is owed after it are reviews, with the number of an incident."""

from django.db import migrations, models

from approvals.migrations import _append_only

DECISIONS = {
    "Approve": "Approve",
    "RequestChanges": "Request changes",
    "Deny": "Deny",
    "BreakGlass": "Break glass",
    "Accept": "Accept afterwards",
    "Object": "Object afterwards",
}


class Migration(migrations.Migration):
    dependencies = [("approvals", "0100_change_words")]

    operations = [
        migrations.RemoveConstraint(model_name="review", name="review_decision_known"),
        migrations.AddField(
            model_name="review",
            name="incident",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="of a break-glass: the number of the incident", max_length=200
            ),
        ),
        migrations.AlterField(
            model_name="review",
            name="decision",
            field=models.CharField(choices=list(DECISIONS.items()), max_length=14),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(decision__in=list(DECISIONS)), name="review_decision_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=(models.Q(decision="BreakGlass") & ~models.Q(incident="") & ~models.Q(reason=""))
                | (~models.Q(decision="BreakGlass") & models.Q(incident="")),
                name="break_glass_has_its_incident",
            ),
        ),
        migrations.AddIndex(
            model_name="review",
            index=models.Index(
                condition=models.Q(decision="BreakGlass"), fields=["given_at"], name="review_broke_glass"
            ),
        ),
        migrations.RunPython(_append_only.keep_append_only, migrations.RunPython.noop),
    ]
