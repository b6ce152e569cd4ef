"""What any process met when it called a cluster, and when the registered credentials end."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0082_history_by_name"),
    ]

    operations = [
        migrations.AlterField(
            model_name="cluster",
            name="problem",
            field=models.TextField(blank=True, help_text="as the watch knows it"),
        ),
        migrations.AddField(
            model_name="cluster",
            name="refusal",
            field=models.TextField(
                blank=True, help_text="as any process met it (approvals.refusals); counts for minutes"
            ),
        ),
        migrations.AddField(
            model_name="cluster",
            name="refused_by",
            field=models.CharField(blank=True, max_length=100),
        ),
        migrations.AddField(
            model_name="cluster",
            name="refused_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="credentials_end",
            field=models.DateTimeField(blank=True, help_text="of those it is registered with", null=True),
        ),
    ]
