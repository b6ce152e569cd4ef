"""Indexes from which PostgreSQL finds a page of any list. About a minute for 100,000 requests."""

import django.db.models.deletion
from django.db import migrations, models

OF_AUDIT = {"audit_cluster": "cluster", "audit_actor": "actor", "audit_name": "deployment", "audit_via": "via"}
LISTED = ["state", "cluster", "purpose", "format", "deployment"]


def of_request(name: str, fields: list[str]) -> migrations.AddIndex:
    return migrations.AddIndex("request", models.Index(fields=fields, name=name))


class Migration(migrations.Migration):
    dependencies = [("approvals", "0047_fill_lists")]

    operations = [
        migrations.AlterField(
            "request",
            "cluster",
            models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="approvals.cluster"),
        ),
        of_request("request_by_time", ["created_at", "id", *LISTED, "weight"]),
        of_request("request_by_weight", ["weight", "created_at", "id", *LISTED]),
        of_request("request_of_cluster", ["cluster", "created_at", "id", "state", "weight"]),
        migrations.AddIndex(
            "policyevaluation", models.Index(fields=["policy", "-at", "-id"], name="evaluation_lately")
        ),
        *(
            migrations.AddIndex("auditentry", models.Index(fields=[field, "-number"], name=name))
            for name, field in OF_AUDIT.items()
        ),
    ]
