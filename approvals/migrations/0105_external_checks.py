"""What external checks are asked about requests, what they answer, and what signs the questions."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

import approvals.encryption.fields

SECRET = {"bound_to": ("cluster_id", "check_uid")}


class Migration(migrations.Migration):
    dependencies = [("approvals", "0104_finding_exceptions")]

    operations = [
        migrations.AddField(
            model_name="request",
            name="external_checks",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.CreateModel(
            name="CheckRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("round", models.PositiveIntegerField()),
                ("subject_digest", models.CharField(max_length=80)),
                ("check_uid", models.CharField(max_length=63)),
                ("check_name", models.CharField(max_length=253)),
                ("stage", models.CharField(max_length=20)),
                ("enforcement", models.CharField(max_length=20)),
                ("url", models.CharField(max_length=500)),
                (
                    "number",
                    models.PositiveIntegerField(help_text="among the questions of this check about this round, from 1"),
                ),
                (
                    "asked_by",
                    models.CharField(blank=True, help_text="who had it run again; empty: Pratique", max_length=253),
                ),
                ("asked_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(help_text="until when an answer counts")),
                (
                    "send_at",
                    models.DateTimeField(
                        blank=True, help_text="when the event is sent next; null: never again", null=True
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("delivered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "problem",
                    models.CharField(
                        blank=True, help_text="why it was not delivered at the last attempt", max_length=100
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        blank=True, help_text="pending, passed or failed; empty: no answer yet", max_length=10
                    ),
                ),
                ("message", models.CharField(blank=True, max_length=1000)),
                ("link", models.CharField(blank=True, max_length=500)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="check_runs", to="approvals.request"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("send_at__isnull", False)), fields=["send_at"], name="check_run_to_send"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("request", "round", "check_uid", "number"), name="check_run_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(outcome="", answered_at__isnull=True)
                        | models.Q(outcome__in=["pending", "passed", "failed"], answered_at__isnull=False),
                        name="check_run_answer_has_its_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CheckSecret",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "check_uid",
                    models.CharField(
                        help_text="of the ExternalCheck: another of its name has another secret", max_length=63
                    ),
                ),
                (
                    "secret",
                    approvals.encryption.fields.EncryptedTextField(place="secret of external check", **SECRET),
                ),
                (
                    "earlier",
                    approvals.encryption.fields.EncryptedTextField(
                        blank=True, place="earlier secret of external check", **SECRET
                    ),
                ),
                ("earlier_until", models.DateTimeField(blank=True, null=True)),
                ("made_by", models.CharField(max_length=253)),
                ("made_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="approvals.cluster"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "check_uid"), name="one_secret_per_external_check")
                ],
            },
        ),
    ]
