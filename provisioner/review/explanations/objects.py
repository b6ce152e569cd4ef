"""Rules about what happens to objects, and about the report itself: OBJ, IMM, DEL, OWN, TXT, and what was not seen."""

from __future__ import annotations

from provisioner.review.explanations.text import Explanation

_SSA = "Kubernetes, Server-Side Apply"
_DRY = "Kubernetes, API Concepts, Dry-run"
_US = "Pratique, what a report promises"
_UNICODE = "Unicode Technical Standard 39, Security Mechanisms"

OBJECTS: dict[str, Explanation] = {
    "OBJ-01": Explanation(
        "An object comes that was not there.", "What it does is said by its own findings.", "Nothing.", _SSA
    ),
    "OBJ-02": Explanation(
        "Fields of an object change; the evidence shows each before and after.",
        "By dry-run it is what the cluster would store, with the fields of others and the defaults.",
        "Look for fields that the release notes do not mention.",
        _DRY,
    ),
    "OBJ-03": Explanation(
        "The object fits its schema, but could not be tried on the cluster, because its kind or namespace comes "
        "with it.",
        "Quotas, webhooks and rules between fields are not tested before apply.",
        "Usual for a first installation.",
        _DRY,
    ),
    "OBJ-04": Explanation(
        "Whether the cluster accepts the object could not be found out.",
        "It may be refused in the middle of apply, which then stops there.",
        "See the reason given; often the kind cannot do dry-runs, or its server does not answer.",
        _DRY,
    ),
    "OBJ-05": Explanation(
        "The API server took the object and warned.",
        "Warnings tell of deprecated fields, unknown fields that are dropped, and Pod Security that would refuse.",
        "Read it as you would a compiler's.",
        "Kubernetes blog, Warning: Helpful Warnings Ahead",
    ),
    "OBJ-06": Explanation(
        "The object keeps a container, volume, variable, webhook or subject that this bundle does not set.",
        "Somebody else added it, and it goes on running beside what you approve.",
        "Find the field's manager (kubectl get --show-managed-fields) and ask whether it shall stay.",
        _SSA,
    ),
    "OBJ-07": Explanation(
        "The object does not fit the schema of its kind, or loses fields that the kind does not know.",
        "It is refused, or stored without what its author meant.",
        "Often bundle and CRD are of different versions.",
        "Kubernetes, CustomResourceDefinitions, field pruning",
    ),
    "OBJ-08": Explanation(
        "The object is being deleted, or was made again since the plan.",
        "Apply would touch another object than the one you looked at.",
        "Wait until it is gone, and have a new plan made.",
        "Kubernetes, Finalizers",
    ),
    "OBJ-09": Explanation(
        "What would happen to this object could not be planned.",
        "Nothing is applied while that is so.",
        "See the words of the API server.",
        _DRY,
    ),
    "IMM-01": Explanation(
        "A field changes that the API server never lets change, so the object must be deleted and made anew.",
        "In between it is gone: pods stop, addresses change, data of a claim may go. Apply of the rest waits for it.",
        "Agree to the replacement with its consequence, or ask for a new name beside the old one.",
        "Kubernetes, API reference of the kind",
    ),
    "DEL-01": Explanation(
        "An object leaves the bundle, so it is deleted.",
        "With a CRD go all its objects, with a Namespace all in it, with a claim its data unless the volume is "
        "kept. There is no undo.",
        "Look at the counts and sizes. If it shall stay, have it left in the bundle, or take a backup first.",
        "Kubernetes, Cascading deletion; Persistent Volumes, reclaiming",
    ),
    "HIS-01": Explanation(
        "This content ran before, and since then an object of it was deleted or made anew that held more than itself.",
        "Going back makes the object again, not what was in it: data, custom resources, what others kept there.",
        "Look for a backup from before the revision that is named, or go on without what was lost.",
        f"{_US}, from the recorded outcomes of the revisions since",
    ),
    "HIS-02": Explanation(
        "A Job of a revision that ran before is made again, so it runs once more.",
        "What it did then may be done already, or may be wrong by now: a migration that meets newer data, a mail.",
        "Find out whether it can run twice and on the data of today. If not, wish for a bundle without it.",
        "Kubernetes, Jobs: a Job runs when it is created",
    ),
    "OWN-01": Explanation(
        "Another manager owns a field that this bundle sets to something else.",
        "Pratique never forces: the apply would be refused, or the two would fight.",
        "Decide who shall own the field, and take it out of the other's manifest.",
        f"{_SSA}, conflicts",
    ),
    "OWN-02": Explanation(
        "An object of this name is there already and belongs to somebody else.",
        "It is not adopted, so nobody can approve the request while it stands in the way.",
        "Have it renamed or removed by whoever made it; what nobody holds, collisionProtection: IfNoController adopts.",
        _SSA,
    ),
    "TXT-01": Explanation(
        "A text holds characters that cannot be seen, or that turn the direction of others.",
        "What you read is not what the cluster reads (CVE-2021-42574).",
        "Refuse, unless the author explains each.",
        "CVE-2021-42574, Trojan Source",
    ),
    "TXT-02": Explanation(
        "A name is made of letters that look like others.",
        "It passes for a name that you trust.",
        "Compare with the escaped form that is shown.",
        _UNICODE,
    ),
    "TXT-03": Explanation(
        "A text mixes letters of several scripts that look alike.",
        "In a sentence it is mostly harmless; in a command or address it is not.",
        "Look at the escaped form.",
        _UNICODE,
    ),
    "TXT-04": Explanation(
        "A name has letters beyond ASCII.",
        "Most names of Kubernetes cannot have them, so where one can, it is rare.",
        "Nothing, if the language is yours.",
        _UNICODE,
    ),
    "GAP": Explanation(
        "Something that belongs into the report could not be looked at.",
        "What nobody looked at is not known to be safe.",
        "See the reason: mostly a right to list is missing, or a server did not answer.",
        _US,
    ),
    "CRASHED": Explanation(
        "One check of the report did not finish.",
        "What it looks for may be there and is not said.",
        "Tell the operators of Pratique; the place in the code is named.",
        _US,
    ),
    "UNCLAIMED": Explanation(
        "No check knows what objects of this kind do.",
        "Its fields are shown, but nobody judged them; some kinds hold pods or rights in themselves.",
        "Read the difference with somebody who knows the kind.",
        _US,
    ),
}
