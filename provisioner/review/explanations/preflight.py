"""Rules about what the installing account may do: PRE."""

from __future__ import annotations

from provisioner.review.explanations.text import Explanation

_RBAC = "Kubernetes, Using RBAC Authorization"
_SSA = "Kubernetes, Server-Side Apply"
_REVIEW = "Kubernetes, Authorization, SubjectAccessReview"

PREFLIGHT: dict[str, Explanation] = {
    "PRE-01": Explanation(
        "The installing account lacks a verb on an object of the bundle; to apply takes patch, and create where it "
        "is new.",
        "The API server would refuse that object, in the middle of the installation.",
        "Grant the rules that this report has ready as YAML, if you agree with them, and have it looked at again.",
        _SSA,
    ),
    "PRE-02": Explanation(
        "The bundle has a role with rights that the installing account does not hold.",
        "Nobody may write a role with more than they have, so the API server refuses it.",
        "Give the account these rights, or let somebody who has them make the role beforehand.",
        f"{_RBAC}, privilege escalation prevention",
    ),
    "PRE-03": Explanation(
        "The bundle binds a role that the installing account neither covers nor may bind.",
        "The API server refuses the binding, and the program starts without its rights.",
        "Grant bind on that one role by name: it is the smaller right of the two.",
        f"{_RBAC}, restrictions on role binding creation",
    ),
    "PRE-04": Explanation(
        "The bundle has a ClusterRole with an aggregationRule.",
        "What it will collect is not known beforehand, so only who holds everything may write it.",
        "Have the rules written out, or let an administrator make this role.",
        f"{_RBAC}, aggregated ClusterRoles",
    ),
    "PRE-05": Explanation(
        "A namespace that objects of the bundle live in does not exist and does not come with it.",
        "Each of these objects is refused.",
        "Make the namespace, with the Pod Security labels that it shall have, or add it to the bundle.",
        "Kubernetes, Namespaces",
    ),
    "PRE-06": Explanation(
        "An object wants to block its owner's deletion, and the account may not set that.",
        "Where the admission plug-in OwnerReferencesPermissionEnforcement is on, the object is refused.",
        "Grant update on the owner's finalizers, or have blockOwnerDeletion left out.",
        "Kubernetes, Admission Control, OwnerReferencesPermissionEnforcement",
    ),
    "PRE-07": Explanation(
        "Nobody serves this kind in this version, neither the cluster nor a CRD of the bundle.",
        "The object cannot be stored; often a dependency is missing, or the API has been removed.",
        "Install what defines the kind first, or have the version raised.",
        "Kubernetes, Deprecated API Migration Guide",
    ),
    "PRE-08": Explanation(
        "The order in which the objects come cannot work: something is needed before it is there.",
        "The first apply stops at this object.",
        "Tell the author; Pratique sorts by kind, so this is a cycle or a wrong namespace.",
        _SSA,
    ),
    "PRE-09": Explanation(
        "The API server tried the object without storing it, and refused it: quota, admission, or a field.",
        "It would refuse it for good as well.",
        "Read its words, which are quoted; they name the plug-in or webhook that said no.",
        "Kubernetes, API Concepts, Dry-run",
    ),
    "PRE-10": Explanation(
        "The installing account holds rights that this bundle does not need.",
        "Whoever gets hold of the account, or writes a bundle for it, has them all.",
        "Take away what the evidence lists, unless other bundles are installed by the same account.",
        "Kubernetes, RBAC Good Practices",
    ),
    "PRE-11": Explanation(
        "Others can act as the installing account: they may start pods in its namespace, or ask for its token.",
        "They have its rights without an approval.",
        "Keep installing accounts in a namespace where nobody runs workloads.",
        "Kubernetes, RBAC Good Practices, workload creation",
    ),
    "PRE-12": Explanation(
        "Something that the preflight needs to know could not be read.",
        "What it does not say may still be missing.",
        "Give the reader list on what is named, or accept that apply may stop midway.",
        _REVIEW,
    ),
    "PRE-RULES": Explanation(
        "The fewest rules that would let the account install this bundle, as YAML to be applied.",
        "Each rule stands under what it is needed for, so that it can be judged.",
        "Apply it as somebody who holds these rights, or ask why the bundle needs them.",
        _RBAC,
    ),
}
