"""Rules about custom resource definitions and their objects: CRD, SRV, LIV."""

from __future__ import annotations

from provisioner.review.explanations.text import Explanation

_CRD = "Kubernetes, CustomResourceDefinitions"
_VERSIONS = "Kubernetes, Versions in CustomResourceDefinitions"
_CHANGES = "Kubernetes, Changing the API (api_changes.md)"
_SSA = "Kubernetes, Server-Side Apply"

DEFINITIONS: dict[str, Explanation] = {
    "CRD-00": Explanation(
        "A definition could not be compared.",
        "What it does to stored objects is not known.",
        "See the reason; most often one side is no valid CRD.",
        _CRD,
    ),
    "CRD-01": Explanation(
        "The scope changes between namespaced and cluster-wide.",
        "The API server refuses the update. The only way is to delete the definition, and with it all objects.",
        "Ask for a new kind beside the old one, with a migration.",
        _CRD,
    ),
    "CRD-02": Explanation(
        "The group or name of the definition changes.",
        "To Kubernetes that is another definition: old objects stay behind, or are pruned with the old one.",
        "Plan a migration of the objects before the old definition leaves the bundle.",
        _CRD,
    ),
    "CRD-03": Explanation(
        "The plural changes.",
        "It is part of every URL and of the definition's own name, so the API server refuses it.",
        "A new definition is needed.",
        _CRD,
    ),
    "CRD-04": Explanation(
        "The kind changes.",
        "Once a definition is established the API server refuses that.",
        "A new definition is needed.",
        _CRD,
    ),
    "CRD-05": Explanation(
        "The singular or the kind of lists changes.",
        "Typed clients and scripts look for the old word.",
        "Warn those who have such.",
        _CRD,
    ),
    "CRD-06": Explanation(
        "Short names or categories go.",
        "Scripts with `kubectl get` of the short name stop; nothing else does.",
        "Nothing, mostly.",
        _CRD,
    ),
    "CRD-07": Explanation(
        "A kind, plural or short name of the definition is taken by another one.",
        "The API server accepts the object and sets NamesAccepted to False: the kind or that name is not served.",
        "Find out which of the two is meant to have the name, and remove or rename the other one first.",
        f"{_CRD}, names and the condition NamesAccepted",
    ),
    "CRD-08": Explanation(
        "The definition leaves the bundle, so it is deleted.",
        "With it goes every object of the kind, in all namespaces, those of other people too.",
        "Look at the count. If the kind moves to another bundle, its objects do not survive the move by themselves.",
        _CRD,
    ),
    "CRD-09": Explanation(
        "Another tool or bundle has applied this definition, by its labels or by who owns its fields.",
        "Two owners write it in turn: what one of them drops the other one brings back, and whoever is removed first"
        " may delete it, with every object of the kind.",
        "Agree on one owner. Take the definition out of the other bundle, keeping the object, before it is taken here.",
        "https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts",
    ),
    "CRD-10": Explanation(
        "A version goes in which objects are still stored, by status.storedVersions.",
        "The API server refuses the update.",
        "Follow the steps of the finding: apply a version of the bundle that stores another version, write all objects"
        " again, take the old one out of status.storedVersions. A storage version changed by hand is drift.",
        f"{_VERSIONS}, upgrade existing objects to a new stored version",
    ),
    "CRD-11": Explanation(
        "A version goes that clients were served.",
        "They get 404. Objects whose managedFields name it make server-side apply fail (issue 111937).",
        "Raise the version in every manifest first; LIV-04 names those who still write it.",
        _VERSIONS,
    ),
    "CRD-12": Explanation(
        "A version is no longer served, though still defined.",
        "Clients get 404; it can be switched on again, so this is the softer way to find who still needs it.",
        "Raise the version in manifests and clients.",
        _VERSIONS,
    ),
    "CRD-13": Explanation(
        "Objects will be stored in another version from now on.",
        "Stored ones stay as they are until written. Going back to a definition without that version is refused.",
        "Keep both versions in the definition for as long as you may want to go back.",
        _VERSIONS,
    ),
    "CRD-13b": Explanation(
        "A version comes and is made the storage version at once.",
        "There is no release to which you could go back that knows it.",
        "Kubernetes' own rule is one release in between. Take a backup of the objects.",
        _CHANGES,
    ),
    "CRD-14": Explanation(
        "No version is served.",
        "The API server accepts that, and every request for the kind gets 404.",
        "Certainly a mistake; have it mended.",
        _VERSIONS,
    ),
    "CRD-15": Explanation(
        "A version comes.",
        "By itself it does no harm; what differs between versions is said by SRV.",
        "Nothing.",
        _VERSIONS,
    ),
    "CRD-16": Explanation(
        "A version is marked deprecated.",
        "Clients see a warning.",
        "Raise the version in time.",
        _VERSIONS,
    ),
    "CRD-17": Explanation(
        "The version that kubectl and discovery prefer changes.",
        "Scripts that name none get other fields.",
        "Name the version where it matters.",
        f"{_VERSIONS}, version priority",
    ),
    "CRD-18": Explanation(
        "The group belongs to Kubernetes (*.k8s.io), without the annotation that says who approved it.",
        "The API server refuses the definition.",
        "Only projects of Kubernetes have such an approval; elsewhere the group has to change.",
        "Kubernetes, api-approved.kubernetes.io",
    ),
    "CRD-19": Explanation(
        "The definition is not valid.",
        "The API server refuses it, and the bundle stops there.",
        "Have it mended; the words are those of the API server.",
        f"{_CRD}, structural schemas",
    ),
    "CRD-20": Explanation(
        "The definition is near to or beyond what etcd stores in one request, about 1.5 MiB.",
        "It cannot be stored; with client-side apply the limit is 256 KiB.",
        "Have the descriptions taken out.",
        "etcd, system limits",
    ),
    "CRD-21": Explanation(
        "Versions will be converted by a webhook.",
        "From then on reading the kind in another version needs that pod; also the garbage collector and namespace "
        "deletion wait for it.",
        "See that its service comes first and has more than one pod.",
        f"{_VERSIONS}, webhook conversion",
    ),
    "CRD-22": Explanation(
        "Versions are no longer converted; only apiVersion is rewritten.",
        "Objects stored in another shape are shown raw, and what the version does not know is dropped at the next "
        "write.",
        "Rewrite all objects in the storage version before.",
        _VERSIONS,
    ),
    "CRD-23": Explanation(
        "The conversion webhook moves.",
        "While old pods go and new ones start, objects cannot be read in other versions.",
        "Agree if the new service is up before the definition changes.",
        _VERSIONS,
    ),
    "CRD-24": Explanation(
        "The caBundle of the conversion webhook is no certificate.",
        "The API server refuses it, or does not serve the kind (from 1.31 on).",
        "Leave it empty where something injects it.",
        _VERSIONS,
    ),
    "CRD-25": Explanation(
        "A caBundle that was injected is overwritten or removed.",
        "Conversion fails until it is injected again.",
        "Keep the annotation of the injector.",
        _VERSIONS,
    ),
    "CRD-26": Explanation(
        "The conversion webhook no longer names v1 of reviews.",
        "The API server sends v1 only, so no object can be converted.",
        "Have v1 put back.",
        _VERSIONS,
    ),
    "CRD-27": Explanation(
        "Unknown fields are no longer kept (preserveUnknownFields false).",
        "What the schema does not name is dropped at each object's next write.",
        "See which objects lose what (LIV-02).",
        f"{_CRD}, field pruning",
    ),
    "CRD-28": Explanation(
        "Unknown fields shall be kept for the whole definition.",
        "v1 definitions may not, so the API server refuses.",
        "x-kubernetes-preserve-unknown-fields at single fields does the same.",
        f"{_CRD}, field pruning",
    ),
    "CRD-29": Explanation(
        "The status subresource goes.",
        "Controllers that write /status get 404 and stop reporting.",
        "Have it put back, unless the controller changes with it.",
        f"{_CRD}, status subresource",
    ),
    "CRD-30": Explanation(
        "A status subresource comes.",
        "Status in a normal write is ignored from now on, without an error; old controllers write in vain.",
        "See that the controller is new enough.",
        f"{_CRD}, status subresource",
    ),
    "CRD-31": Explanation(
        "The scale subresource goes.",
        "Autoscalers, kubectl scale and disruption budgets find nothing to scale.",
        "The autoscalers found are named; have them changed first.",
        f"{_CRD}, scale subresource",
    ),
    "CRD-32": Explanation(
        "The scale subresource points to other fields.",
        "Autoscalers read and write another number than until now.",
        "See that objects have the new field set.",
        f"{_CRD}, scale subresource",
    ),
    "CRD-33": Explanation("The columns of kubectl get change.", "Only eyes and bad scripts notice.", "Nothing.", _CRD),
    "CRD-34": Explanation(
        "A field can no longer be selected by.",
        "Requests with that field selector get 400.",
        "Look for clients that use it.",
        f"{_CRD}, selectable fields",
    ),
    "CRD-35": Explanation(
        "A field can be selected by.",
        "Needs Kubernetes 1.31 or later.",
        "Nothing.",
        f"{_CRD}, selectable fields",
    ),
    "SRV-01": Explanation(
        "A newer served version lacks a field of an older one.",
        "Without a webhook the field is dropped whenever an object is written by the newer version.",
        "See how many objects have it.",
        _VERSIONS,
    ),
    "SRV-02": Explanation(
        "An older served version lacks a field of a newer one.",
        "A client that writes by the old version drops it, without knowing.",
        "LIV-04 tells who writes by the old one.",
        _CHANGES,
    ),
    "SRV-03": Explanation(
        "Two served versions accept different values for the same field.",
        "An object valid in one cannot be written in the other.",
        "Have the narrower one widened.",
        _CHANGES,
    ),
    "SRV-04": Explanation(
        "Two served versions have different defaults.",
        "What an unset field means depends on who asks.",
        "Kubernetes' own rule: defaults are the same in all versions.",
        _CHANGES,
    ),
    "SRV-05": Explanation(
        "Served versions disagree, as they did before.",
        "Nothing gets worse by this change.",
        "Nothing now.",
        _VERSIONS,
    ),
    "SRV-06": Explanation(
        "A webhook converts, so the schemas do not say what becomes of an object.",
        "Only the webhook's own code knows.",
        "Try one object in each version on a test cluster.",
        _VERSIONS,
    ),
    "LIV-01": Explanation(
        "The objects that exist were put through the new definition as the API server would.",
        "Refused at any next write means: their controller stops at once. Refused when edited means: only once "
        "somebody touches that part (ratcheting), which can be in a year.",
        "The first objects are named with path and message; mend them before you agree.",
        f"{_CRD}, validation ratcheting",
    ),
    "LIV-02": Explanation(
        "Objects hold fields that the new definition does not know.",
        "They vanish from answers at once, and from storage with the next write.",
        "Save what is needed first; values are not shown, as they may be secret.",
        f"{_CRD}, field pruning",
    ),
    "LIV-03": Explanation(
        "Objects that leave a field unset will read a new default there.",
        "The behaviour of all of them changes at the same moment, without a write.",
        "If the old behaviour shall stay, set the field before.",
        f"{_CRD}, defaulting",
    ),
    "LIV-04": Explanation(
        "The objects' managedFields tell who wrote them by a version that goes.",
        "These clients get 404 next time, and their entries can break server-side apply.",
        "Raise the version in what is named: a chart, a GitOps repository, an operator.",
        f"{_SSA}, field management",
    ),
    "LIV-05": Explanation(
        "Something else in the cluster counts on this definition or on a version of it that goes.",
        "It stops working without having changed: autoscalers, webhooks, roles, budgets, owned objects.",
        "Change what is named first.",
        _VERSIONS,
    ),
    "LIV-06": Explanation(
        "Whether you could go back to the present definition after this one.",
        "A rollback that is refused, or loses what was written in between, is none.",
        "Where there is no way back, take a backup of the objects first.",
        _CHANGES,
    ),
    "LIV-07": Explanation(
        "How good the evidence is: how many of the objects were looked at, as of when.",
        "A sample proves what it finds, and nothing about the rest.",
        "Where no right to list was there, grant it to the reader and have it looked at again.",
        "Kubernetes, API Concepts",
    ),
}
