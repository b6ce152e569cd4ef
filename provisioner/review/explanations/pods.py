"""Rules about pods, their images and what they read: POD, IMG, SEC."""

from __future__ import annotations

from provisioner.review.explanations.text import Explanation

_PSS = "Kubernetes, Pod Security Standards"
_PSA = "Kubernetes, Pod Security Admission"
_IMAGES = "Kubernetes, Images"
_SECRETS = "Kubernetes, Good practices for Secrets"
_CONTEXT = "Kubernetes, Configure a Security Context"

PODS: dict[str, Explanation] = {
    "POD-01": Explanation(
        "The pods share the node's network, processes or memory.",
        "hostPID shows and can signal every process of the node, their environment too; hostNetwork passes "
        "NetworkPolicies and reaches what listens on localhost.",
        "Expected of node agents and network plug-ins. Ask everybody else.",
        f"{_PSS}, baseline",
    ),
    "POD-02": Explanation(
        "The containers run as processes of a Windows node.",
        "That is no container: they have the node's files and rights.",
        "Only for agents that manage Windows nodes.",
        f"{_PSS}, baseline",
    ),
    "POD-03": Explanation(
        "A container runs privileged.",
        "It sees all devices, has all capabilities, and is root on the node; a file system mount leads to every pod "
        "there.",
        "Ask for the capability that is really needed. For sysctls, set them on the node or use a safe sysctl.",
        f"{_PSS}, baseline",
    ),
    "POD-04": Explanation(
        "A container has Linux capabilities beyond those that runtimes give by default.",
        "SYS_ADMIN, SYS_MODULE, DAC_READ_SEARCH and the like are root on the node; NET_ADMIN changes the pod's "
        "network only.",
        "Look at the single capability. With user namespaces (hostUsers: false) most lose their reach.",
        f"{_PSS}, baseline; capabilities(7)",
    ),
    "POD-05": Explanation(
        "The pods mount folders of the node.",
        "What is written there outlives the pod and is read by the node; what is read there belongs to others.",
        "Read-only mounts of one log folder are usual for agents. For data, use a volume claim or local volumes.",
        f"{_PSS}, baseline; Kubernetes, Volumes, hostPath",
    ),
    "POD-06": Explanation(
        "A container takes a port of its node.",
        "It is reached at the node's address past services and often past NetworkPolicies, and one node fits one "
        "such pod.",
        "A Service or an ingress does the same without.",
        f"{_PSS}, baseline",
    ),
    "POD-07": Explanation(
        "A probe or hook names another host.",
        "The kubelet calls it from the node's network, so it can be used to reach what the pod cannot.",
        "Leave the host out: the pod's own address is the default.",
        f"{_PSS}, baseline (1.34)",
    ),
    "POD-08": Explanation(
        "A container switches AppArmor off.",
        "One wall less between it and the node's kernel.",
        "RuntimeDefault, or a profile of its own.",
        f"{_PSS}, baseline",
    ),
    "POD-09": Explanation(
        "The pods choose their own SELinux user, role or type.",
        "A type such as spc_t is not confined at all.",
        "Leave it to the runtime, or use one of the container types that baseline allows.",
        f"{_PSS}, baseline",
    ),
    "POD-10": Explanation(
        "A container sees all of /proc, without the usual masks.",
        "It can read and set what concerns the whole kernel; meant for containers within containers.",
        "Only together with user namespaces.",
        f"{_PSS}, baseline",
    ),
    "POD-11": Explanation(
        "A container runs without a seccomp filter.",
        "Every system call of the kernel is open to it, the rarely tested ones too.",
        "RuntimeDefault fits nearly every program.",
        f"{_PSS}, baseline",
    ),
    "POD-12": Explanation(
        "The pods set kernel parameters that are not their own namespace's.",
        "They hold for the whole node, or the kubelet refuses the pod unless it is told to allow them.",
        "Set them when the node is made.",
        f"{_PSS}, baseline; Kubernetes, Using sysctls in a Cluster",
    ),
    "POD-13": Explanation(
        "The pods mount kinds of volumes that the level restricted does not know.",
        "Network volumes named in the pod itself pass by the classes and quotas of storage.",
        "A claim with a storage class does the same and is seen.",
        f"{_PSS}, restricted",
    ),
    "POD-14": Explanation(
        "A container may gain privileges while it runs (setuid programs).",
        "A small hole in the program becomes root in the container.",
        "allowPrivilegeEscalation: false breaks only programs that use sudo or ping the old way.",
        f"{_PSS}, restricted",
    ),
    "POD-15": Explanation(
        "Nothing keeps a container from running as root.",
        "Root in a container is root on the node as soon as one wall falls, but for user namespaces.",
        "runAsNonRoot: true, with an image that names a user by number.",
        f"{_PSS}, restricted",
    ),
    "POD-16": Explanation(
        "The pods say that they run as user 0.",
        "As above, and on purpose.",
        "Any other number, with fsGroup where files have to be written.",
        f"{_PSS}, restricted",
    ),
    "POD-17": Explanation(
        "No seccomp profile is stated.",
        "Without one it depends on the kubelet's setting (SeccompDefault) whether there is a filter.",
        "State RuntimeDefault once, for the pod.",
        f"{_PSS}, restricted",
    ),
    "POD-18": Explanation(
        "A container keeps the capabilities that runtimes give by default.",
        "NET_RAW lets it forge packets, CHOWN and DAC_OVERRIDE pass by file rights.",
        "drop: [ALL], and add NET_BIND_SERVICE where a port under 1024 is needed.",
        f"{_PSS}, restricted",
    ),
    "POD-20": Explanation(
        "The namespace enforces a level that these pods do not meet.",
        "The Deployment is accepted, its pods are not: the rollout waits, and old pods are not replaced. Only the "
        "events of the ReplicaSet say why.",
        "Have the pods changed, or the namespace's label lowered by somebody who may decide that.",
        _PSA,
    ),
    "POD-21": Explanation(
        "The pods need a lower level of isolation than those of the version that runs now.",
        "What the namespace enforced may no longer fit, and a break-in reaches further.",
        "The findings beside this one name the fields. Ask what the new version needs them for.",
        _PSS,
    ),
    "POD-22": Explanation(
        "The bundle sets or removes the label by which its own namespace decides which pods enter.",
        "A bundle that lowers its own fence is not fenced. A word that is no level makes the API server refuse the "
        "namespace.",
        "Let the platform set these labels, and leave them out of bundles.",
        _PSA,
    ),
    "POD-23": Explanation(
        "The pods mount a folder or socket on which the node's own trust rests.",
        "The runtime's socket starts any container; /etc and /var/lib/kubelet hold the node's identity and others' "
        "tokens.",
        "Refuse, unless it is the agent that manages the node.",
        "Kubernetes, Volumes, hostPath",
    ),
    "POD-24": Explanation(
        "Habits that others on the node feel: no memory limit, no readiness probe, a writable root, an unused token.",
        "None is a danger by itself; without a memory limit the kernel chooses whom it kills.",
        "A note for the author.",
        _CONTEXT,
    ),
    "POD-25": Explanation(
        "The pods run in kube-system, default or another namespace of the cluster.",
        "Policies and quotas often leave these out, and accounts there are strong.",
        "Give the bundle a namespace of its own.",
        "Kubernetes, Namespaces",
    ),
    "POD-26": Explanation(
        "The pods ask for a priority or runtime of the system, or for one that does not exist.",
        "system-cluster-critical pushes others off a full node; a class that is missing makes every pod be refused.",
        "Keep system classes for what the cluster cannot live without.",
        "Kubernetes, Pod Priority and Preemption; Runtime Class",
    ),
    "POD-27": Explanation(
        "The pods no longer have user namespaces.",
        "Root inside them is root outside again.",
        "Ask which volume or setting made that necessary.",
        "Kubernetes, User Namespaces",
    ),
    "IMG-00": Explanation(
        "The text is no image reference.",
        "The API server takes it; the kubelet says InvalidImageName, and the pod never starts.",
        "Most often a template variable was left empty, or a name has capital letters.",
        _IMAGES,
    ),
    "IMG-01": Explanation(
        "The image is named by a tag, not by its digest.",
        "A tag can be moved. What runs after the next restart need not be what was approved, and nobody is asked.",
        "Have the digest added: name:tag@sha256:... keeps the tag for people.",
        f"{_IMAGES}, image names",
    ),
    "IMG-02": Explanation(
        "The image has the tag latest, or none.",
        "It is pulled anew at every start, so two pods of one Deployment can run different code, and there is no "
        "going back.",
        "Name a version, at best with its digest.",
        f"{_IMAGES}, image pull policy",
    ),
    "IMG-03": Explanation(
        "The code comes from another registry than before.",
        "A move of the vendor, a mirror of your own, or an attack on the chart look alike here.",
        "Confirm it by a way other than this bundle: release notes, the vendor's site.",
        _IMAGES,
    ),
    "IMG-04": Explanation(
        "The container runs another repository's image than before.",
        "That is another program, or another publisher.",
        "As for a new registry: confirm it elsewhere.",
        _IMAGES,
    ),
    "IMG-05": Explanation(
        "The tag is the one that was approved, the digest is not.",
        "A release was rebuilt in place, which honest publishers seldom do, or was replaced.",
        "Compare the two digests with what the publisher signed.",
        _IMAGES,
    ),
    "IMG-06": Explanation(
        "The version goes back.",
        "Data written by the newer one may not be readable, and mended holes are open again.",
        "Agree if it is a rollback, after a look at the schemas of its data.",
        "Semantic Versioning 2.0.0",
    ),
    "IMG-07": Explanation(
        "The image comes from a place that is not on your list.",
        "The list is your own rule: what is on it is scanned, mirrored or signed with you.",
        "Have it mirrored to a place on the list, or the list extended by whoever keeps it.",
        "the list of allowed images that was given",
    ),
    "IMG-08": Explanation(
        "An argument or variable names an image that the program starts itself, by tag.",
        "No check of pods sees it, and its code was not pinned when you approved.",
        "Have it named by digest (RELATED_IMAGE variables are made for that).",
        _IMAGES,
    ),
    "IMG-09": Explanation(
        "A pull secret is missing.",
        "Images that need a login cannot be pulled; those that the node has already still start, so it can show late.",
        "Make the Secret, or take its name out.",
        f"{_IMAGES}, imagePullSecrets",
    ),
    "IMG-10": Explanation(
        "The pods ask for nodes of a kind that the cluster has not.",
        "They wait for ever.",
        "Have the selector changed; for images, look which architectures their index holds.",
        "Kubernetes, Assigning Pods to Nodes",
    ),
    "IMG-12": Explanation(
        "The image is pulled from a registry that is closed.",
        "A new node cannot start these pods.",
        "registry.k8s.io has the same images.",
        "Kubernetes blog, k8s.gcr.io redirect",
    ),
    "SEC-01": Explanation(
        "A Secret in the bundle has its values with it.",
        "They stand in the registry or repository that the bundle came from, for all who can read it, and in its "
        "history.",
        "Change the credential, and let the Secret be made in the cluster: by hand, External Secrets or Sealed "
        "Secrets.",
        _SECRETS,
    ),
    "SEC-02": Explanation(
        "A key named like a credential has its value in a ConfigMap or in a variable.",
        "Roles for reading leave Secrets out, but show ConfigMaps and pods to everybody.",
        "If it is one, move it into a Secret and change it; the name may also mean something else.",
        _SECRETS,
    ),
    "SEC-03": Explanation(
        "An object marked immutable shall change.",
        "The API server refuses; the mark cannot be taken off either.",
        "Give the new object another name and let the pods point to it, which also makes them roll.",
        "Kubernetes, ConfigMaps, immutable ConfigMaps",
    ),
    "SEC-04": Explanation(
        "Pods read a ConfigMap or Secret, or a key of one, that is not there.",
        "They stay in CreateContainerConfigError until it is; a rollout waits for them.",
        "Make it first, or find the wrong name. Where another object of the bundle makes it, it only takes a moment.",
        "Kubernetes, ConfigMaps",
    ),
    "SEC-05": Explanation(
        "Configuration changes, and the pods that read it do not.",
        "Variables are read at start, so the old value stays until somebody restarts them, perhaps months later.",
        "Have a hash of the configuration put into the pod template, or restart the pods after the change.",
        "Kubernetes, ConfigMaps, mounted ConfigMaps are updated automatically",
    ),
    "SEC-06": Explanation(
        "The Secret is a credential for the cluster itself: a token of an account without an end, or a bootstrap "
        "token.",
        "Who reads it is that account, or can join a node, until somebody deletes it.",
        "Tokens that end come from the TokenRequest API; bootstrap tokens from kubeadm, for hours.",
        "Kubernetes, Secrets, types of Secret",
    ),
}
