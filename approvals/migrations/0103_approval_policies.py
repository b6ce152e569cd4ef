"""ApprovalPolicies of clusters: rows that stand for them, and who wrote an object that says how requests are decided."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0102_likeness'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='decidingobject',
            name='authors',
            field=models.JSONField(db_default=[], default=list, help_text='everybody who ever wrote it, the last one last, where the kind asks; an empty one is unknown'),
        ),
        migrations.AddField(
            model_name='policy',
            name='uid',
            field=models.CharField(blank=True, db_default='', default='', help_text='of the object; else empty', max_length=63),
        ),
        migrations.AlterField(
            model_name='policy',
            name='author',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='policy',
            name='editor',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='policy',
            name='name',
            field=models.SlugField(max_length=63),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.UniqueConstraint(condition=models.Q(('uid', '')), fields=('name',), name='policy_name_once_in_the_service'),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.UniqueConstraint(condition=models.Q(('uid', ''), _negated=True), fields=('cluster', 'uid'), name='policy_uid_once_per_cluster'),
        ),
    ]
