"""Revisions that were undone, and revoked ones: by whom and why."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0008_drift'),
    ]

    operations = [
        migrations.AddField(
            model_name='revision',
            name='undone_at',
            field=models.DateTimeField(blank=True, help_text='when what ran before was put back whole: nothing of it is left to look after', null=True),
        ),
        migrations.AddField(
            model_name='revision',
            name='revoked_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='revision',
            name='revoked_by',
            field=models.CharField(blank=True, help_text='their name on the cluster', max_length=253),
        ),
        migrations.AddField(
            model_name='revision',
            name='revoked_reason',
            field=models.CharField(blank=True, max_length=1000),
        ),
        migrations.AddConstraint(
            model_name='revision',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('revoked_at', None), ('revoked_by', ''), ('revoked_reason', '')), models.Q(('revoked_at__isnull', False), models.Q(('revoked_by', ''), _negated=True), models.Q(('revoked_reason', ''), _negated=True)), _connector='OR'), name='revoked_by_somebody_for_a_reason'),
        ),
    ]
