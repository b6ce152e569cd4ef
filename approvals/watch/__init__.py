"""The Kubernetes door: BundleDeployments made or changed with kubectl and GitOps become requests like any other."""
