from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0098_deciding")]

    operations = [
        migrations.AddField(
            model_name="request",
            name="apply_at",
            field=models.DateTimeField(
                blank=True, help_text="it is not applied before that: chosen by who may approve", null=True
            ),
        ),
        migrations.AddField(
            model_name="request",
            name="apply_at_by",
            field=models.CharField(blank=True, db_default="", help_text="who chose it last", max_length=253),
        ),
        migrations.AddField(
            model_name="request", name="held_from", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="request", name="held_until", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AlterField(
            model_name="request",
            name="awaits",
            field=models.CharField(
                blank=True,
                choices=[("account", "account"), ("rights", "rights"), ("window", "window")],
                help_text="what must change in the cluster before the next check",
                max_length=10,
            ),
        ),
    ]
