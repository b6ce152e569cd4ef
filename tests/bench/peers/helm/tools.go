//go:build tools

// Package helm keeps the tool helm in a go.mod of its own: the tools' requirements differ.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
