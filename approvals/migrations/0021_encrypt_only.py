"""The encrypted columns take the place of the plain ones."""

from django.db import migrations

from approvals.encryption.fields import EncryptedJSONField, EncryptedTextField

JSON = (
    ("chatdelivery", "wish", EncryptedJSONField(place="wish of delivery", bound_to=("tool", "key"))),
    ("drift", "fields", EncryptedJSONField(place="fields of drift", bound_to=("item_id",))),
    ("report", "body", EncryptedJSONField(place="report of request", bound_to=("request_id", "round"))),
)
KUBECONFIG = EncryptedTextField(
    help_text="server, CA and inline credentials; empty: in-cluster",
    place="kubeconfig of cluster",
    bound_to=("name",),
)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0020_encrypt_rows")]
    operations = [
        migrations.RemoveField("cluster", "kubeconfig"),
        migrations.RenameField("cluster", "encrypted", "kubeconfig"),
        migrations.AlterField("cluster", "kubeconfig", KUBECONFIG),
        *(migrations.RemoveField(model, column) for model, column, _ in JSON),
        *(migrations.RenameField(model, "encrypted", column) for model, column, _ in JSON),
        *(migrations.AlterField(model, column, field) for model, column, field in JSON),
    ]
