//go:build tools

// Package kwok keeps the fake kubelet's module in a go.mod of its own: its requirements differ from Kubernetes'.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
