"""What was entered or made without a proof of its own counts no longer (security-rules.md S01, S33).

API tokens carried no proof, so they end and say so. A cluster's token could enter a local account and overwrite what
the operator had mapped: those identities go, and the operator maps again. Sessions end by themselves, without a row.
"""

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db import migrations
from django.db.models import Exists, OuterRef, Q

WORDS = "it was made before tokens had scopes, clusters and a proof: make a new one on the account page"


def end_unproved(apps, schema_editor):
    apps.get_model("approvals", "ApiToken").objects.filter(proofs=None).update(ended_because=WORDS)
    identity = apps.get_model("approvals", "KubernetesIdentity")
    mapped = identity.objects.filter(user=OuterRef("user"), authenticator="mapped")
    has_password = ~Q(user__password__startswith=UNUSABLE_PASSWORD_PREFIX) & ~Q(user__password="")
    is_local = Q(user__is_staff=True) | Q(user__is_superuser=True) | has_password | Exists(mapped)
    identity.objects.filter(is_local, authenticator="token-review").delete()


class Migration(migrations.Migration):
    dependencies = [("approvals", "0026_proofs")]
    operations = [migrations.RunPython(end_unproved, migrations.RunPython.noop)]
