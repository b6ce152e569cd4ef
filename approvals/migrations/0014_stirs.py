"""What happens to a deployment's objects is counted, so that its health is read when it may be another."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0013_outcomes_of_any_object")]

    operations = [
        migrations.AddField(
            model_name="bundledeployment", name="stirs", field=models.PositiveBigIntegerField(default=0)
        ),
        migrations.AddField(
            model_name="bundledeployment",
            name="stirs_observed",
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="bundledeployment", name="observed_at", field=models.DateTimeField(blank=True, null=True)
        ),
    ]
