"""Events that go out, to which targets, and what became of each."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

import approvals.encryption.fields


class Migration(migrations.Migration):
    dependencies = [
        ('approvals', '0108_deputies'),
    ]

    operations = [
        migrations.CreateModel(
            name='NotificationTarget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('name', models.SlugField(max_length=63, unique=True)),
                ('kind', models.CharField(max_length=20)),
                ('address', approvals.encryption.fields.EncryptedTextField(bound_to=('uid',), place='address of notification target')),
                ('event_types', models.JSONField(default=list)),
                ('clusters', models.JSONField(default=list, help_text='names or globs, as they were written')),
                ('granted', models.JSONField(default=list)),
                ('labels', models.JSONField(default=dict)),
                ('min_severity', models.CharField(blank=True, max_length=10)),
                ('is_active', models.BooleanField(default=True)),
                ('stopped_because', models.CharField(blank=True, max_length=500)),
                ('secret', approvals.encryption.fields.EncryptedTextField(bound_to=('uid',), place='secret of notification target')),
                ('earlier', approvals.encryption.fields.EncryptedTextField(blank=True, bound_to=('uid',), place='earlier secret of notification target')),
                ('earlier_until', models.DateTimeField(blank=True, null=True)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('rests_until', models.DateTimeField(blank=True, null=True)),
                ('version', models.PositiveIntegerField(default=1)),
                ('created_by', models.CharField(max_length=253)),
                ('created_at', models.DateTimeField()),
                ('changed_by', models.CharField(max_length=253)),
                ('changed_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='OutboxEvent',
            fields=[
                ('number', models.PositiveBigIntegerField(primary_key=True, serialize=False)),
                ('type', models.CharField(max_length=60)),
                ('cluster', models.CharField(blank=True, max_length=63)),
                ('subject', models.CharField(max_length=400)),
                ('labels', models.JSONField(default=dict)),
                ('severity', models.CharField(blank=True, help_text='of the worst new finding; empty: of no request', max_length=10)),
                ('data', models.JSONField(default=dict)),
                ('at', models.DateTimeField()),
                ('spread_at', models.DateTimeField(blank=True, help_text='when targets were found for it', null=True)),
            ],
            options={
                'ordering': ['number'],
                'indexes': [models.Index(condition=models.Q(('spread_at__isnull', True)), fields=['number'], name='event_to_spread'), models.Index(fields=['at'], name='event_time')],
            },
        ),
        migrations.CreateModel(
            name='NotificationDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject', models.CharField(help_text='of the event: what is about one subject keeps its order', max_length=400)),
                ('send_at', models.DateTimeField(blank=True, help_text='when it is sent next; null: never again', null=True)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('tried_at', models.DateTimeField(blank=True, null=True)),
                ('status', models.PositiveIntegerField(default=0, help_text='of the last answer; 0: there was none')),
                ('milliseconds', models.PositiveIntegerField(default=0, help_text='that the last attempt took')),
                ('problem', models.CharField(blank=True, help_text='why the last attempt did not deliver it', max_length=500)),
                ('delivered_at', models.DateTimeField(blank=True, null=True)),
                ('dead_at', models.DateTimeField(blank=True, null=True)),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='approvals.notificationtarget')),
                ('event', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='approvals.outboxevent')),
            ],
            options={
                'ordering': ['pk'],
                'indexes': [models.Index(condition=models.Q(('send_at__isnull', False)), fields=['target', 'subject', 'event'], name='delivery_waiting'), models.Index(fields=['target', '-id'], name='delivery_lately')],
                'constraints': [models.UniqueConstraint(fields=('target', 'event'), name='event_once_per_target'), models.CheckConstraint(condition=models.Q(models.Q(('dead_at__isnull', True), ('delivered_at__isnull', True), ('send_at__isnull', False)), models.Q(('dead_at__isnull', True), ('delivered_at__isnull', False), ('send_at__isnull', True)), models.Q(('dead_at__isnull', False), ('delivered_at__isnull', True), ('send_at__isnull', True)), _connector='OR'), name='delivery_waits_or_is_delivered_or_dead')],
            },
        ),
    ]
