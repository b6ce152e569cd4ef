//go:build tools

// Package helm4 keeps the Helm that renders as the wheel of the format helm does: both have the same version.
package helm4

import _ "helm.sh/helm/v4/cmd/helm"
