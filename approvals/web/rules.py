"""Why a rule exists, in the words of the page: what its finding means for whoever says yes.

An id of its own comes first, then its family, the letters before the dash.
"""

from __future__ import annotations

_FAMILIES = {
    "CRD": "A custom resource definition decides which versions of its objects are served and stored. "
    "Clients, stored objects and the way back each depend on it in their own way: the verdicts tell them apart.",
    "SCH": "The schema decides what the API server accepts. What the old schema accepted and the new one refuses "
    "can be stored already, and its next write fails.",
    "SRV": "An object is read and written in every served version. Where two versions accept different things, "
    "a client of one can lose or break what a client of the other wrote.",
    "LIV": "The objects that exist now were put through the new definition. This is what the cluster holds, "
    "not a guess from the schema.",
    "RB": "Rights add up over all roles and bindings of an account. This compares what the account may do in the end, "
    "before and after, however the roles are cut.",
    "PRE": "The bundle is installed with the rights of one account. What that account may not do stops the "
    "installation midway.",
    "POD": "A pod that leaves the limits of the Pod Security Standards can reach its node, "
    "and through the node every other pod on it.",
    "WH": "A webhook stands in the way of requests to the API server: it reads them, may change them, "
    "and stops them when it does not answer.",
    "AS": "An APIService sends a whole API group to a service in the cluster. "
    "Whoever answers there answers for the API server.",
    "NP": "A network policy decides who may talk to whom. Pods that no policy selects talk to everybody.",
    "SV": "This opens a way into the cluster from outside of it.",
    "SEC": "Settings and secrets are read by pods while they run. A value that stands in a bundle "
    "can be read by whoever can read the bundle.",
    "IMG": "The image is the code that will run. Only a digest says which bytes these are; "
    "a tag or a registry can be pointed elsewhere after the approval.",
    "API": "An object is stored only if the cluster serves its group and version.",
    "IMM": "Some fields cannot be changed once the object exists. The change needs the object to be deleted and made "
    "anew, with what hangs on it.",
    "DEL": "Deleting cannot be undone: with the object goes what it owns and what it stores.",
    "OBJ": "What the API server answered when it was asked to try this change, without keeping it.",
    "OWN": "Another manager, or Pratique's own rules, lays claim to the same object or field.",
    "TXT": "Text that looks like something else, or that cannot be seen, is how a reader is led to approve "
    "what is not there.",
    "GAP": "Something could not be looked at. What nobody looked at is not known to be safe.",
}
_RULES = {
    "CRD-08": "With its definition every object of that kind is deleted, in every namespace.",
    "CRD-11": "A client that asks for this version gets 404 from then on. Objects that remember it as the version of "
    "one of their field managers make server-side apply fail until that is cleared.",
    "RB-01": "Every verb on every resource is the whole cluster, with what is installed later.",
    "RB-05": "Who may escalate can write roles with more rights than they have: they can give themselves everything.",
    "RB-09": "The built-in roles admin, edit and view collect the rules of labelled roles. Everybody who has one of "
    "them gains these rights, without a new binding.",
    "RB-10": "Who may impersonate acts as another user or group, with all of their rights.",
    "RB-11": "Secrets hold passwords, keys and the tokens of other accounts. list and watch hand out their contents "
    "just as get does.",
    "RB-13": "A token of another account is as good as being that account.",
    "RB-14": "Who may start pods runs code as any account of that namespace, and reads each of its Secrets.",
    "RB-18": "The kubelet's own interface runs commands in every pod of the node, past admission and audit.",
    "RB-45": "A binding to a role that does not exist grants nothing until somebody creates a role of that name; "
    "they then decide what it grants.",
    "RB-46": "The role of a binding cannot be changed: the API server refuses the update.",
    "RB-49": "Reading everything includes the Secrets.",
    "RB-50": "Whoever breaks into such a pod has the rights of its account.",
    "RB-51": "The account stands for an identity at the cloud provider, with rights that Kubernetes does not know.",
    "RB-DIFF": "All that the account gains, in as few rules as can say it. What is risky has a finding of its own.",
    "RB-LESS": "All that the account loses. What runs as it may count on these rights.",
    "POD-20": "The namespace refuses such pods. The controller is accepted and its pods are not: the rollout hangs.",
    "POD-23": "These folders hold credentials of the node, or the socket that starts containers on it.",
    "IMG-01": "The tag can be pointed at another image later: what runs then is not what was approved.",
    "IMG-05": "The tag is the one approved before, the bytes behind it are not.",
    "WH-01": "If the webhook does not answer, nothing that it guards can be written, "
    "perhaps not even the pod that would answer.",
}


def explanation(rule: str) -> str:
    """What is behind a finding of this rule; "" for a rule of which no family is known."""
    return _RULES.get(rule) or _FAMILIES.get(rule.partition("-")[0], "")
