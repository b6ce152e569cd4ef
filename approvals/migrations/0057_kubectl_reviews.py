"""Reviews that were made with kubectl, and since when the policies that prove who made them are in force."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0055_requirements'),
    ]

    operations = [
        migrations.CreateModel(
            name='ReviewAdmission',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('facts', models.TextField(blank=True)),
                ('since', models.DateTimeField(blank=True, null=True)),
                ('looked_at', models.DateTimeField()),
                ('problem', models.TextField(blank=True)),
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='review_admission', to='approvals.cluster')),
            ],
        ),
        migrations.CreateModel(
            name='KubectlReview',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(max_length=63)),
                ('name', models.CharField(max_length=253)),
                ('created_at', models.DateTimeField(help_text='creationTimestamp of the object')),
                ('seen_at', models.DateTimeField()),
                ('username', models.CharField(blank=True, max_length=253)),
                ('settled_at', models.DateTimeField(blank=True, null=True)),
                ('code', models.CharField(blank=True, max_length=60)),
                ('words', models.TextField(blank=True)),
                ('finished_at', models.DateTimeField(blank=True, help_text='when its status was written', null=True)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='kubectl_reviews', to='approvals.cluster')),
                ('review', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='kubectl_reviews', to='approvals.review')),
            ],
            options={
                'ordering': ['created_at', 'pk'],
                'indexes': [models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['cluster', 'created_at'], name='kubectl_review_due'), models.Index(fields=['cluster', 'username', 'created_at'], name='kubectl_review_by_person')],
                'constraints': [models.UniqueConstraint(fields=('cluster', 'uid'), name='kubectl_review_once_per_cluster')],
            },
        ),
    ]
