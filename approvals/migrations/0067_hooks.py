"""What hooks have run, which run at a deletion, and what a chart was given. Of older contents nobody knows it."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0066_last_event'),
    ]

    operations = [
        migrations.AddField(
            model_name='content',
            name='has_deletion_hooks',
            field=models.BooleanField(db_default=False, default=False, help_text='whether hooks of it run when its deployment is deleted'),
        ),
        migrations.AddField(
            model_name='request',
            name='chart_values',
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name='HookRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group', models.CharField(blank=True, max_length=253)),
                ('version', models.CharField(max_length=63)),
                ('kind', models.CharField(max_length=63)),
                ('namespace', models.CharField(blank=True, max_length=253)),
                ('name', models.CharField(max_length=253)),
                ('moment', models.CharField(max_length=20)),
                ('nonce', models.CharField(max_length=63)),
                ('uid', models.CharField(blank=True, max_length=63)),
                ('has_succeeded', models.BooleanField(default=False)),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='hook_runs', to='approvals.bundledeployment')),
                ('request', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='hook_runs', to='approvals.request')),
            ],
            options={
                'ordering': ['kind', 'namespace', 'name'],
                'constraints': [models.UniqueConstraint(fields=('deployment', 'group', 'kind', 'namespace', 'name'), name='hook_once_per_deployment')],
            },
        ),
    ]
