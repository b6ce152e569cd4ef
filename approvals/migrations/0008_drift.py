"""Drift: what was found, what was put back, and who works on it."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0007_waivers'),
    ]

    operations = [
        migrations.CreateModel(
            name='Drift',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('open', 'Open'), ('corrected', 'Corrected'), ('over', 'Over')], max_length=10)),
                ('kind', models.CharField(max_length=10)),
                ('message', models.TextField(blank=True)),
                ('fields', models.JSONField(default=list)),
                ('problem', models.TextField(blank=True)),
                ('strikes', models.PositiveIntegerField(default=0)),
                ('corrected_at', models.DateTimeField(blank=True, null=True)),
                ('is_fight', models.BooleanField(default=False)),
                ('rival', models.CharField(blank=True, max_length=300)),
                ('found_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['-changed_at', '-pk'],
            },
        ),
        migrations.AddField(
            model_name='bundledeployment',
            name='claimed_by',
            field=models.CharField(blank=True, max_length=100),
        ),
        migrations.AddField(
            model_name='bundledeployment',
            name='claimed_until',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='bundledeployment',
            name='drift_problem',
            field=models.TextField(blank=True, help_text='why nobody can tell whether something drifted'),
        ),
        migrations.AddField(
            model_name='bundledeployment',
            name='is_woken',
            field=models.BooleanField(default=False, help_text='a wake came while somebody held the claim'),
        ),
        migrations.AddField(
            model_name='inventoryitem',
            name='fingerprint',
            field=models.CharField(blank=True, help_text='as it was last compared: cluster.drift', max_length=64),
        ),
        migrations.AddField(
            model_name='inventoryitem',
            name='look_at',
            field=models.DateTimeField(blank=True, help_text='when to compare it again; null: nothing happened', null=True),
        ),
        migrations.AddIndex(
            model_name='inventoryitem',
            index=models.Index(condition=models.Q(('look_at__isnull', False)), fields=['look_at'], name='inventory_due'),
        ),
        migrations.AddIndex(
            model_name='inventoryitem',
            index=models.Index(fields=['group', 'kind'], name='inventory_kind'),
        ),
        migrations.AddField(
            model_name='drift',
            name='item',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='drift', to='approvals.inventoryitem'),
        ),
        migrations.AddField(
            model_name='drift',
            name='revision',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.revision'),
        ),
        migrations.AddConstraint(
            model_name='drift',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['open', 'corrected', 'over'])), name='drift_state_known'),
        ),
    ]
