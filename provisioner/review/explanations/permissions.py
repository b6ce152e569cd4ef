"""Rules about permissions: RB and the rules by which Pratique guards itself."""

from __future__ import annotations

from provisioner.review.explanations.text import Explanation

_RBAC = "Kubernetes, Using RBAC Authorization"
_GOOD = "Kubernetes, RBAC Good Practices"
_S = "Pratique, reviewers' rules"

PERMISSIONS: dict[str, Explanation] = {
    "RB-00": Explanation(
        "A role or binding could not be read, so what it grants is not counted here.",
        "An account may hold more than this report says.",
        "Look at the object itself; the API server refuses most that cannot be read.",
        _RBAC,
    ),
    "RB-01": Explanation(
        "The account may use every verb on every resource, of all API groups or of the core group.",
        "That is cluster-admin under another name, and it grows by itself with every CRD that is installed later.",
        "Ask for the list of what the program really calls; an audit log of a test run gives it.",
        _GOOD,
    ),
    "RB-02": Explanation(
        "The account may do everything inside one namespace.",
        "It reads each Secret there and runs as each account there, so it has the rights of the strongest of them.",
        "Acceptable where the namespace holds nothing but this program; else have the rules named.",
        _GOOD,
    ),
    "RB-03": Explanation(
        "The account is bound to cluster-admin, or to admin or edit for the whole cluster.",
        "admin and edit read and write the workloads of every namespace, kube-system too, which leads to all the rest.",
        "Have a role of its own made, or bind the built-in role by a RoleBinding in the namespaces concerned.",
        _GOOD,
    ),
    "RB-04": Explanation(
        "The account may use paths of the API server that are no resources, with verbs or to places that show "
        "internals.",
        "/debug/pprof and /logs tell of other people's requests, and can slow the API server down.",
        "A metrics reader needs get on /metrics and nothing else.",
        _RBAC,
    ),
    "RB-05": Explanation(
        "The verb escalate lifts the check that nobody writes a role with more rights than they hold.",
        "Who may write a role and holds escalate on it holds everything, whatever else stands in this report.",
        "Operators that make roles for others can hold those rights themselves instead; ask for that.",
        f"{_RBAC}, privilege escalation prevention",
    ),
    "RB-06": Explanation(
        "The account may bind roles whose rights it does not hold, and may write bindings.",
        "It can bind itself to cluster-admin. Either half alone is harmless.",
        "Have bind limited by resourceNames to the roles that the program hands out.",
        f"{_RBAC}, restrictions on role binding creation",
    ),
    "RB-07": Explanation(
        "The account may write bindings, but may only hand on what it holds itself.",
        "It cannot rise, but it can give its rights to others, and these stay when it goes.",
        "Fine for an operator that makes bindings for its workloads; look at what it holds.",
        _RBAC,
    ),
    "RB-08": Explanation(
        "The account may write roles, with no more rights in them than its own.",
        "It can take rights out of roles, and put its own into roles that others are bound to.",
        "Have it limited to roles by name where these are known.",
        _RBAC,
    ),
    "RB-09": Explanation(
        "A ClusterRole carries a label by which admin, edit or view collect its rules.",
        "Everybody with one of these roles in any namespace has the new rights at once, with no binding to be seen.",
        "Usual for the bundle's own custom resources. Refuse it for Secrets, pods/exec, roles or other people's kinds.",
        f"{_RBAC}, aggregated ClusterRoles",
    ),
    "RB-10": Explanation(
        "The account may send requests as another user, group or ServiceAccount.",
        "It has the rights of whomever it names, and audit shows the name second. The group system:masters is bound "
        "by no rule at all.",
        "Only an authenticating proxy needs this, and then for named users or groups.",
        "Kubernetes, User impersonation",
    ),
    "RB-11": Explanation(
        "The account may read Secrets: get of any name, or list or watch, which answer with the contents.",
        "Among them are tokens, pull secrets and certificates of others; what it reads it can use from anywhere.",
        "Controllers that serve TLS need one Secret by name in their own namespace. Ask why more.",
        _GOOD,
    ),
    "RB-12": Explanation(
        "The account may make Secrets and read them, or overwrite those of others.",
        "A Secret of type service-account-token, once made, is filled with a token of the account it names.",
        "Have it limited to its own namespace, where no stronger account lives.",
        "Kubernetes, Secrets, ServiceAccount token Secrets",
    ),
    "RB-13": Explanation(
        "The account may create serviceaccounts/token, which answers with a token.",
        "A token of another account is as good as being that account; for named ones, only of these.",
        "Tools that fetch credentials for one account need it for that name alone (resourceNames do work here).",
        _GOOD,
    ),
    "RB-14": Explanation(
        "The account may start pods, itself or by a workload.",
        "A pod chooses its ServiceAccount and mounts any Secret of its namespace; where Pod Security lets it, also "
        "the node's disk.",
        "Inherent in every operator that runs workloads. Weigh where: one namespace of its own, or the whole cluster.",
        _GOOD,
    ),
    "RB-15": Explanation(
        "The account may run commands in pods that run already. Before Kubernetes 1.35 the verb get is enough.",
        "It has whatever these pods have: files, tokens, network. Read-only roles with get on pods/exec are no such.",
        "Have it limited to the program's own namespace, or taken out of a role that is meant for reading.",
        "Kubernetes issue 78741",
    ),
    "RB-16": Explanation(
        "The account may forward ports into pods.",
        "The connection comes from the node, so NetworkPolicies do not see it, and reaches ports bound to localhost.",
        "A tool for people; a controller seldom needs it.",
        "Kubernetes, Use Port Forwarding",
    ),
    "RB-17": Explanation(
        "The account may add debug containers to pods, or change the image of those that run.",
        "Its code then runs inside a pod of somebody else, with that pod's account.",
        "Ask whether patch of pods is needed for labels only; then pods/status or a webhook will often do.",
        "Kubernetes, Ephemeral Containers",
    ),
    "RB-18": Explanation(
        "The account may reach the kubelet through nodes/proxy; since exec is a websocket, get is enough.",
        "The kubelet runs commands in every pod of its node, and neither admission nor audit of the API server sees "
        "it.",
        "Metrics collectors need nodes/metrics and nodes/stats instead (KEP-2862, from 1.33 on).",
        f"{_GOOD}; KEP-2862",
    ),
    "RB-18b": Explanation(
        "The account may read one part of the kubelet's interface, such as metrics or logs.",
        "This is the narrow way that replaces nodes/proxy; nodes/log can still show what programs write.",
        "Nothing, unless logs of nodes are confidential with you.",
        "KEP-2862",
    ),
    "RB-19": Explanation(
        "The account may talk to services and pods through the API server.",
        "Programs that trust the inside of the cluster, without a login of their own, are open to it.",
        "Have it limited to the services concerned by name.",
        "Kubernetes, Access Services Running on Clusters",
    ),
    "RB-20": Explanation(
        "The account may change nodes, and perhaps remove pods as well.",
        "With both it can drain other nodes and label its own, so that pods with strong accounts come to it.",
        "Node agents should change their own node only, which NodeRestriction gives the kubelet and nobody else.",
        _GOOD,
    ),
    "RB-21": Explanation(
        "The account may write the status of services or pods.",
        "The address in a service's status is believed by proxies: traffic can be drawn elsewhere (CVE-2020-8554).",
        "Load-balancer controllers need services/status; others should not have it.",
        "CVE-2020-8554",
    ),
    "RB-22": Explanation(
        "The account may make PersistentVolumes.",
        "One of type hostPath is any folder of a node, and Pod Security does not look behind a claim.",
        "Only provisioners need this.",
        _GOOD,
    ),
    "RB-23": Explanation(
        "The account may approve certificate requests for signers of the cluster, perhaps also make them.",
        "A client certificate says its own user and groups, and cannot be taken back before it ends.",
        "Look at the signer's name: kubernetes.io/kube-apiserver-client makes anybody, a signer of the bundle's own "
        "not.",
        "Kubernetes, Certificates and Certificate Signing Requests",
    ),
    "RB-24": Explanation(
        "The account may write admission webhooks or admission policies.",
        "It can read every object that passes, Secrets too; a mutating one can put its own code into every pod.",
        "Operators that renew their caBundle need update on one configuration by name.",
        _GOOD,
    ),
    "RB-25": Explanation(
        "The account may write or delete custom resource definitions.",
        "With a definition go all its objects; a conversion webhook reads and rewrites all of them.",
        "CRDs can come with the bundle, where they are reviewed, instead of from the running program.",
        "Kubernetes, Extend the Kubernetes API with CustomResourceDefinitions",
    ),
    "RB-26": Explanation(
        "The account may write APIServices.",
        "Requests for an API group then go to its own server, with the names of whoever sent them.",
        "Have the APIService shipped in the bundle instead.",
        "Kubernetes, Aggregation Layer",
    ),
    "RB-27": Explanation(
        "The account may change or delete namespaces.",
        "Labels of a namespace decide what Pod Security admits and which NetworkPolicies and webhooks hold; to "
        "delete it deletes all in it.",
        "To make namespaces, create is enough.",
        _GOOD,
    ),
    "RB-28": Explanation(
        "The account may write ConfigMaps where those of the cluster itself are.",
        "coredns answers every name, kube-proxy carries every connection, and aws-auth says who is an administrator.",
        "Have it limited by resourceNames, or to the program's own namespace.",
        _GOOD,
    ),
    "RB-29": Explanation(
        "The account may write NetworkPolicies.",
        "It can let itself in, or take away what keeps others out.",
        "Have it limited to the program's own namespace.",
        "Kubernetes, Network Policies",
    ),
    "RB-30": Explanation(
        "The account may write what decides where traffic goes: services, endpoints, ingresses, routes.",
        "It can put itself between clients and servers, as far as these do not check certificates.",
        "Expected of ingress and mesh controllers. Ask anybody else.",
        "CVE-2020-8554; Kubernetes, Service",
    ),
    "RB-31": Explanation(
        "The account may delete events.",
        "Events are where an intrusion first shows, unless your audit log is kept elsewhere.",
        "Have the verb removed: events end by themselves.",
        _GOOD,
    ),
    "RB-32": Explanation(
        "The account may delete objects of every kind.",
        "One mistake of the program, or one stolen token, is an outage without a way back.",
        "Have the kinds named that the program makes.",
        _GOOD,
    ),
    "RB-33": Explanation(
        "The account may change quotas, priorities or sandbox classes.",
        "It can starve others, preempt them, or lower the isolation of their pods.",
        "Fine for a platform's own controllers; have it limited to read for others.",
        "Kubernetes, Resource Quotas; Pod Priority and Preemption",
    ),
    "RB-34": Explanation(
        "The account may write storage classes, attachments or snapshots.",
        "A snapshot of another's volume, restored, is that volume's data.",
        "Expected of storage drivers and backup programs only.",
        "Kubernetes, Storage Classes; Volume Snapshots",
    ),
    "RB-35": Explanation(
        "The account may change Leases of the control plane or of nodes.",
        "It can hold up the scheduler, or let a healthy node seem dead, so that its pods are moved.",
        "A program elects its leader in its own namespace.",
        "Kubernetes, Leases",
    ),
    "RB-36": Explanation(
        "The account may use a policy that admits privileged pods (SecurityContextConstraints or PodSecurityPolicy).",
        "Its pods can be root on their node.",
        "Have the narrowest constraint named by resourceNames.",
        "OpenShift, Managing security context constraints",
    ),
    "RB-37": Explanation(
        "The account may give orders to another deployer: Argo CD, Flux, OLM, Crossplane, Kyverno or Pratique.",
        "That controller carries them out with its own rights, as a rule those of a cluster-admin.",
        "Treat it as if the account had the deployer's rights, and look at what limits that deployer.",
        _GOOD,
    ),
    "RB-38": Explanation(
        "The account may ask who a token is and what somebody may do (as system:auth-delegator does).",
        "Usual for API servers and metrics endpoints; it changes nothing.",
        "Nothing.",
        "Kubernetes, Configure the Aggregation Layer",
    ),
    "RB-40": Explanation(
        "Rights are given to those who did not sign in.",
        "Everybody who can reach the API server has them, without leaving a name.",
        "Refuse, unless it is the public discovery that every cluster has.",
        _GOOD,
    ),
    "RB-41": Explanation(
        "Rights are given to everybody who signed in, or to every ServiceAccount.",
        "Each pod of the cluster has them, those of other teams too, and each person with any login.",
        "Have the accounts named.",
        _GOOD,
    ),
    "RB-42": Explanation(
        "A binding names system:masters.",
        "The group passes every check without RBAC; a certificate with it cannot be taken back.",
        "The binding adds nothing. Ask why it is there.",
        _GOOD,
    ),
    "RB-43": Explanation(
        "Rights go to the default account of a namespace, or to all its accounts.",
        "Every pod there has them that does not say otherwise, also ones that come later.",
        "Have an account made for the program, and bind that.",
        _GOOD,
    ),
    "RB-44": Explanation(
        "A binding of the bundle names a ServiceAccount that is not part of it.",
        "Somebody else's workload gains rights; if the account does not exist, whoever makes it gains them.",
        "Check the name and namespace: a wrong install namespace is the usual cause.",
        _RBAC,
    ),
    "RB-45": Explanation(
        "A binding names a role that is not there, or that nobody here could look up.",
        "It grants nothing today. Whoever makes a role of that name decides what it grants, without touching the "
        "binding.",
        "Have the role shipped as well, or the binding left out.",
        _RBAC,
    ),
    "RB-46": Explanation(
        "A binding shall name another role than it does now.",
        "roleRef never changes: the API server refuses the update, and everything after it is not applied.",
        "Give the binding another name, or delete it first and accept a moment without these rights.",
        f"{_RBAC}, RoleBinding and ClusterRoleBinding",
    ),
    "RB-47": Explanation(
        "A rule matches no request: a resource that its group has not, pods/*, a name together with create, or what "
        "belongs to no namespace in a RoleBinding.",
        "It grants nothing, today. The author meant something else, so the program may fail; and an installer may "
        "still be asked to hold it.",
        "Tell the author; it is no danger.",
        _RBAC,
    ),
    "RB-48": Explanation(
        "A rule holds every resource of some groups.",
        "What that is changes with each upgrade of the cluster and each CRD: rights grow without a request.",
        "Have the resources named. The evidence lists what it is today.",
        _GOOD,
    ),
    "RB-49": Explanation(
        "The account may read every kind of object, or all of the core group.",
        "That includes Secrets, and with them the tokens of stronger accounts.",
        "Use the built-in role view, which leaves Secrets out, or have the kinds named.",
        _GOOD,
    ),
    "RB-50": Explanation(
        "A pod that is easily reached or shares its node runs with an account that holds dangerous rights.",
        "Whoever breaks into that pod has them; this is where most takeovers of clusters begin.",
        "Split the pod: the part that faces others needs no token (automountServiceAccountToken: false).",
        _GOOD,
    ),
    "RB-51": Explanation(
        "The ServiceAccount stands for an identity at the cloud provider.",
        "What that identity may do is written there and is not seen here; it can be more than the cluster.",
        "Look the identity up at the provider before you agree.",
        "AWS IRSA, GKE and Azure Workload Identity",
    ),
    "RB-DIFF": Explanation(
        "All rights that the account gains, as the fewest rules that say them; how roles are cut does not matter.",
        "What is risky among them has a finding of its own; this is the complete list for those who want it.",
        "Compare with what the release notes say the program newly does.",
        _RBAC,
    ),
    "RB-LESS": Explanation(
        "Rights that the account no longer has, however its roles are cut.",
        "Good, unless something that still runs counts on them.",
        "Look at pods of the old version that go on running, and at other users of the account.",
        _RBAC,
    ),
    "RB-SAME": Explanation(
        "Roles or bindings change in form, and nobody may do more or less than before.",
        "It says so because a difference of text alone would make you look for one.",
        "Nothing.",
        _RBAC,
    ),
    "OWN-PRATIQUE-01": Explanation(
        "The bundle carries objects of Pratique's own API.",
        "A deployment that makes deployments decides what else enters the cluster. Requests and reviews are made by "
        "Pratique and by people; one in a bundle would be forged.",
        "Refuse requests and reviews. For deployments, review what they bring as if it stood here.",
        _S,
    ),
    "OWN-PRATIQUE-02": Explanation(
        "The bundle changes or deletes a part of Pratique, or stands between Pratique and the API server.",
        "It can switch off the control that you are using now, or answer for the API server who somebody is and what "
        "they may do.",
        "Agree only to an upgrade of Pratique by those who run it.",
        _S,
    ),
    "OWN-PRATIQUE-03": Explanation(
        "The account, or whoever is bound to the role, can get round approvals: decide requests, act as somebody who "
        "may, change who may do what, or change what Pratique runs with.",
        "Rights for the whole cluster include the namespace of Pratique, where it is enough to read Secrets or "
        "to start pods. In the namespace of an installing account that has such power itself, it is enough to start "
        "pods, or to make and read Secrets: both give its token.",
        "Limit the rights to the namespaces that the program works in, and keep strong installing accounts in "
        "namespaces of their own. Otherwise a person has to approve it: no policy and no chat message can.",
        _S,
    ),
    "OWN-PRATIQUE-04": Explanation(
        "A binding gives rights to an account of Pratique's own.",
        "Pratique applies with the installing accounts so that it needs few rights itself; this changes that.",
        "Refuse, unless it comes with an upgrade of Pratique.",
        _S,
    ),
    "OWN-PRATIQUE-05": Explanation(
        "A workload, a token Secret or a custom resource of the bundle uses a ServiceAccount that can get round "
        "approvals: one that Pratique applies bundles with, one of the control plane, or one to which roles and "
        "bindings of the cluster already give such power.",
        "Whoever gets into the pod or reads the Secret can do what that account can do, without a review. The program "
        "of the bundle can do it from its first start.",
        "Give the program an account of its own with only the rights that it needs. Where the roles of the cluster "
        "could not be read, let Pratique list them.",
        _S,
    ),
    "OWN-PRATIQUE-06": Explanation(
        "A mutating webhook or policy of the bundle changes pods, workloads, Secrets, ConfigMaps, accounts or services "
        "in the namespace of Pratique or of the control plane; or a webhook sees the Secrets there.",
        "Who can change those pods runs programs as the accounts of these namespaces; who can change services and "
        "network policies leads their traffic elsewhere. The labels of objects "
        "(objectSelector) and conditions are not counted on, because whoever writes an object chooses them.",
        "Exclude both namespaces by a namespaceSelector on kubernetes.io/metadata.name.",
        _S,
    ),
    "OWN-PRATIQUE-07": Explanation(
        "An object tells another deployer (Argo CD, Flux, OLM, Crossplane, Kyverno and the like) to create objects.",
        "The deployer creates them with its own rights, often those of an administrator. They are not in the report, "
        "and they may change without a request.",
        "Put the objects into the bundle itself, or read what the object names before you approve.",
        _S,
    ),
    "OWN-PRATIQUE-08": Explanation(
        "The bundle asks a signer of Kubernetes for a certificate, lets machines become nodes, or changes users, "
        "groups, tokens or roles in an API of OpenShift or Rancher.",
        "With a client certificate or such a token its holder signs in to the cluster, and no role can be taken from a "
        "certificate once it is signed. Whoever is put into a group may do what the group may.",
        "Have the program sign in with a ServiceAccount. Let the cluster's own administrators change users and groups.",
        _S,
    ),
}
