"""What a request waits for, so that it is looked at when that changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0037_voided_rounds")]
    operations = [
        migrations.AddField(
            "request",
            "awaits",
            models.CharField(
                max_length=10,
                blank=True,
                default="",
                choices=[("account", "account"), ("rights", "rights")],
                help_text="what in the cluster has to change before another look is worth it",
            ),
            preserve_default=False,
        ),
    ]
