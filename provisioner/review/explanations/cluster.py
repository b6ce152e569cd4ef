"""Rules about what stands in the way of requests and traffic: WH, AS, NP, SV, API."""

from __future__ import annotations

from provisioner.review.explanations.text import Explanation

_HOOKS = "Kubernetes, Dynamic Admission Control"
_HABITS = "Kubernetes, Admission Webhook Good Practices"
_LAYER = "Kubernetes, Aggregation Layer"
_NETWORK = "Kubernetes, Network Policies"
_REMOVED = "Kubernetes, Deprecated API Migration Guide"

CLUSTER: dict[str, Explanation] = {
    "WH-01": Explanation(
        "A webhook that must answer sees pods, without leaving out its own namespace and kube-system.",
        "When it is down nothing can start, also not the pod that would answer: the cluster locks itself out, often "
        "after all nodes restart.",
        "Have both namespaces left out by namespaceSelector on kubernetes.io/metadata.name, or failurePolicy: Ignore.",
        _HABITS,
    ),
    "WH-02": Explanation(
        "A webhook may change pods, Secrets, roles or everything, on their way in.",
        "Whoever runs it decides what others' workloads are: images, accounts, mounts.",
        "Weigh it as you would an administrator. Selectors that only let labelled namespaces in limit it.",
        _HOOKS,
    ),
    "WH-03": Explanation(
        "The service that a webhook calls is not there, does not listen where it is called, or selects no pod.",
        "With failurePolicy Fail each request that it sees is refused, from the moment the configuration is applied.",
        "Have service, port and labels mended before anything else.",
        _HOOKS,
    ),
    "WH-04": Explanation(
        "The webhook has no caBundle, and nothing says who will write one.",
        "The API server trusts no certificate of it, so each call fails.",
        "cert-manager and OpenShift write it by annotation. Some programs write it themselves at start: ask.",
        _HOOKS,
    ),
    "WH-05": Explanation(
        "The webhook calls an address outside of the cluster's services.",
        "Objects, Secrets too, leave the cluster, and a stranger's outage becomes yours.",
        "Refuse, unless the address is your own.",
        f"{_HOOKS}, URL",
    ),
    "WH-06": Explanation(
        "The webhook says of itself what the API server does not take, or understands an old form of reviews only.",
        "The configuration is refused, or dry-runs, on which Pratique's own plan rests, cannot pass it.",
        "sideEffects: None and admissionReviewVersions: [v1].",
        _HOOKS,
    ),
    "WH-07": Explanation(
        "Requests may wait long for this webhook, or are one of many that wait for the same.",
        "Mutating webhooks are asked one after the other; clients and leader elections time out.",
        "A timeout of a few seconds is enough for a webhook that works.",
        f"{_HABITS}, performance",
    ),
    "WH-08": Explanation(
        "The webhook sees what the control plane itself writes all the time: leases, nodes, tokens, events.",
        "While it is down nodes go NotReady and no leader is elected; each heartbeat waits for it.",
        "Have the rules name the kinds that the webhook is for.",
        _HABITS,
    ),
    "WH-09": Explanation(
        "A known webhook sees more than before, or now refuses where it let pass.",
        "Workloads of others come under it without any change of theirs.",
        "The evidence shows both sides. Ask what the wider reach is for.",
        _HOOKS,
    ),
    "WH-10": Explanation(
        "A webhook or admission policy goes, while what it looked after stays.",
        "Objects are no longer checked or completed; bad ones enter unseen.",
        "Agree if the CRD's own rules (CEL) have taken over.",
        _HOOKS,
    ),
    "WH-11": Explanation(
        "An admission policy refuses or changes objects, or lacks what it needs to decide.",
        "It needs no pod and cannot be down, but a missing parameter object refuses everything that it matches.",
        "Look at its matchConstraints, its binding and parameterNotFoundAction.",
        "Kubernetes, Validating Admission Policy",
    ),
    "AS-01": Explanation(
        "An API group will be answered by a service of the bundle, perhaps one that the cluster serves already.",
        "That server sees every request for the group, with the names of those who send it.",
        "Expected of metrics servers for their own group. A group of Kubernetes' own: refuse.",
        _LAYER,
    ),
    "AS-02": Explanation(
        "The API server does not check the certificate of the server behind this group.",
        "Whoever can get in between on the pod network answers in its name.",
        "Have caBundle set; cert-manager can inject it.",
        _LAYER,
    ),
    "AS-03": Explanation(
        "The service behind an API group does not exist.",
        "Discovery fails for all, namespaces cannot finish being deleted, autoscalers that use the group stop.",
        "Install the service first.",
        _LAYER,
    ),
    "AS-04": Explanation(
        "Nobody will answer for an API group any more.",
        "Its clients get 404 at once.",
        "Look who uses the kinds that are named.",
        _LAYER,
    ),
    "NP-01": Explanation(
        "A network policy with rules holds for every pod of its namespace.",
        "Pods of others are opened to what the rules name, and closed to all the rest.",
        "Have the bundle's own pods selected by label.",
        _NETWORK,
    ),
    "NP-02": Explanation(
        "A network policy goes, or may let more through than before.",
        "Policies only allow: without one that selects it, a pod talks to everybody.",
        "See which policies are left for these pods.",
        _NETWORK,
    ),
    "NP-03": Explanation(
        "A rule lets traffic from or to everywhere, a good part of all addresses, or every pod of the cluster.",
        "For ingress the service has to defend itself; for egress data can leave to any place.",
        "Usual for a public endpoint on one port. For anything else, name the peers.",
        _NETWORK,
    ),
    "NP-04": Explanation(
        "The pods may not send to port 53, by this policy or another of the bundle.",
        "They find no service by name; most programs then fail at start, with words that do not say DNS.",
        "Allow UDP and TCP 53 to kube-system, unless a policy outside of the bundle does.",
        _NETWORK,
    ),
    "SV-01": Explanation(
        "A service can be reached from outside of the pod network, or takes over an address (externalIPs).",
        "It needs a login and patches like anything on the Internet; with externalIPs it can take traffic of others "
        "(CVE-2020-8554).",
        "Ask for an ingress in front, source ranges, or a load balancer of the inner network.",
        "Kubernetes, Service; CVE-2020-8554",
    ),
    "SV-02": Explanation(
        "A host name is served by an ingress, route or gateway, perhaps without TLS.",
        "Controllers merge hosts of all namespaces: another's host can be taken, or shared by path.",
        "Check that the name is the bundle's to use.",
        "Kubernetes, Ingress; Gateway API, security model",
    ),
    "SV-03": Explanation(
        "The pods listen on the node's own network.",
        "Network policies do not hold there, and neighbours of the node can reach them.",
        "Needed by network plug-ins and node exporters; a Service does for others.",
        _NETWORK,
    ),
    "API-01": Explanation(
        "The cluster does not serve this kind in this version, by its own discovery.",
        "The object cannot be stored.",
        "Raise the version, or install what defines the kind.",
        _REMOVED,
    ),
    "API-02": Explanation(
        "Kubernetes removes this version with the release that is named, or has done so.",
        "Dangerous where that is your next release or earlier: after the upgrade the bundle cannot be applied any "
        "more.",
        "Ask the author for the newer version; the objects themselves live on.",
        _REMOVED,
    ),
    "API-03": Explanation(
        "The API is to be removed, some releases from now.",
        "No harm yet.",
        "Put it on the list for the next upgrade.",
        _REMOVED,
    ),
    "API-04": Explanation(
        "The version is alpha or beta, which clusters serve only where somebody switched it on.",
        "It may change or go with any upgrade, and another cluster may not have it.",
        "Agree if your clusters serve it for good.",
        "Kubernetes, Deprecation Policy",
    ),
    "API-05": Explanation(
        "A webhook rule or an autoscaler names a version that is gone.",
        "It matches nothing, silently: the webhook is not called, the autoscaler finds no target.",
        "Have the version raised there as well.",
        _REMOVED,
    ),
}
