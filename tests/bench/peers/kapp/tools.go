//go:build tools

// Package kapp keeps the tool kapp in a go.mod of its own: the tools' requirements differ.
package kapp

import _ "carvel.dev/kapp/cmd/kapp"
