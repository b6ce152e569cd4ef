"""Who wrote the policies that are there: from before their persons were kept, and between the first and the last.

The audit names the account of every version, and whom it stood for by then. What nobody wrote down is taken from the
identities of now.
"""

from django.db import migrations

VERBS = ("identity.proved", "identity.mapped", "identity.linked")


def fill(apps, schema_editor):
    known = Known(apps)
    for policy in apps.get_model("approvals", "Policy").objects.select_related("author", "editor", "cluster"):
        first, last = (policy.author.username, policy.created_at), (policy.editor.username, policy.changed_at)
        persons = [known.persons(account, policy.cluster, at) for account, at in (first, *known.saved(policy), last)]
        policy.author_known_as = policy.author_known_as or persons[0][0]
        policy.editor_known_as = policy.editor_known_as or persons[-1][0]
        writers = [*policy.writers, policy.author_known_as, policy.editor_known_as]
        writers += [one for some in persons for one in some]
        policy.writers = [one for number, one in enumerate(writers) if one not in writers[:number]]
        policy.save(update_fields=["author_known_as", "editor_known_as", "writers"])


class Known:
    def __init__(self, apps):
        self.users = {user.username: user for user in apps.get_model("auth", "User").objects.all()}
        self.identities, self.proofs, self.saves = {}, {}, {}
        for row in apps.get_model("approvals", "KubernetesIdentity").objects.order_by("pk"):
            self.identities.setdefault(row.user_id, []).append(row)
        entries = apps.get_model("approvals", "AuditEntry").objects.order_by("number")
        for entry in entries.filter(verb__in=VERBS).iterator():
            self.proofs.setdefault(account_in(entry), []).append(entry)
        for entry in entries.filter(verb="policy.saved").iterator():
            self.saves.setdefault(entry.facts.get("name"), []).append(entry)

    def saved(self, policy):
        """The account and the time of each version."""
        return [(one.actor, one.at) for one in self.saves.get(policy.name, []) if one.at >= policy.created_at]

    def persons(self, account, cluster, at):
        """As whom the account is known: by then, where that was another name, and by now, where it is still there."""
        user = self.users.get(account)
        if user and user.date_joined > at:
            user = None  # an account that was made again under the name
        rows = self.identities.get(user.pk, []) if user else []
        subjects = {(row.issuer, row.subject) for row in rows if row.subject}
        name = uid = ""
        for entry in self.proofs.get(account, []):
            if entry.at <= at and (user is None or user.date_joined <= entry.at):
                subjects |= subject_in(entry)
                name, uid = named_in(entry, cluster) or (name, uid)
        now = next(((row.username, row.uid) for row in rows if cluster and row.cluster_id == cluster.pk), ("", ""))
        names = [one for one in ((name, uid), now) if one[0]] or [("", "")]
        about = {"user_id": user.pk if user else None, "subjects": [list(one) for one in sorted(subjects)]}
        return [{"username": one, "uid": its, **about} for one, its in names]


def account_in(entry):
    """Whose entry it is; by a token, the actor is called as the cluster calls them."""
    named = entry.facts.get("account") or entry.facts.get("user")
    return named or (entry.actor if entry.via in ("oidc", "proxy") else "")


def subject_in(entry):
    issuer, subject = entry.facts.get("issuer") or entry.facts.get("proxy"), entry.facts.get("subject")
    return {(issuer, subject)} if issuer and subject else set()


def named_in(entry, cluster):
    """The name on the cluster and the uid that an entry tells of; None where it is about another one."""
    facts = entry.facts
    if cluster is None:
        return None
    if cluster.name in (facts.get("clusters") or {}):
        return facts["clusters"][cluster.name], ""
    if facts.get("cluster") != cluster.name:
        return None
    return facts.get("as") or entry.actor, facts.get("uid") or ""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0039_policy_writers")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
