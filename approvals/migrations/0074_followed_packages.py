"""Which bundles of catalogues requests are about, and which packages deployments follow. Older requests have none."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0073_catalogs'),
    ]

    operations = [
        migrations.AddField(
            model_name='request',
            name='bundles',
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.AddField(
            model_name='request',
            name='is_for_people',
            field=models.BooleanField(db_default=False, default=False, help_text='grants do not approve it: it follows a catalog by upgradePolicy Request'),
        ),
        migrations.CreateModel(
            name='FollowedPackage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField()),
                ('catalog', models.CharField(max_length=253)),
                ('package', models.CharField(max_length=253)),
                ('digest', models.CharField(blank=True, max_length=80)),
                ('available', models.CharField(blank=True, max_length=253)),
                ('available_version', models.CharField(blank=True, max_length=500)),
                ('since', models.DateTimeField(blank=True, help_text='since when that is available', null=True)),
                ('reason', models.CharField(blank=True, help_text='why_not as one word for programs', max_length=20)),
                ('why_not', models.TextField(blank=True)),
                ('beyond', models.TextField(blank=True, help_text='what is newer and cannot be taken, and why')),
                ('answer_at', models.DateTimeField(blank=True, null=True)),
                ('looked_at', models.DateTimeField(blank=True, null=True)),
                ('problem', models.TextField(blank=True, help_text='why nobody can tell what the catalogue offers here')),
                ('problem_since', models.DateTimeField(blank=True, null=True)),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='followed_packages', to='approvals.bundledeployment')),
                ('request', models.ForeignKey(blank=True, help_text='the last one that was for it', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='approvals.request')),
            ],
            options={
                'ordering': ['position'],
                'indexes': [models.Index(fields=['catalog'], name='followed_package_catalog'), models.Index(condition=models.Q(('answer_at__isnull', False)), fields=['answer_at'], name='followed_package_due')],
                'constraints': [models.UniqueConstraint(fields=('deployment', 'position'), name='one_package_per_source')],
            },
        ),
    ]
