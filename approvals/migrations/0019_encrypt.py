"""Columns for what 0020 encrypts and 0021 puts in the place of the plain ones (security-rules.md S30)."""

from django.db import migrations, models

from approvals.packed import PackedJSONField


class Migration(migrations.Migration):
    dependencies = [("approvals", "0018_server_words")]
    operations = [
        migrations.AddField("cluster", "encrypted", models.BinaryField(null=True)),
        migrations.AddField("chatdelivery", "encrypted", models.BinaryField(null=True)),
        migrations.AddField("drift", "encrypted", models.BinaryField(null=True)),
        migrations.AddField("report", "encrypted", models.BinaryField(null=True)),
        migrations.AlterField("cluster", "kubeconfig", models.TextField(blank=True, null=True)),
        migrations.AlterField("chatdelivery", "wish", models.JSONField(null=True)),
        migrations.AlterField("drift", "fields", models.JSONField(null=True)),
        migrations.AlterField("report", "body", PackedJSONField(null=True)),
    ]
