//go:build tools

// Package versitygw keeps the S3 server of the tests in a go.mod of its own.
package versitygw

import _ "github.com/versity/versitygw/cmd/versitygw"
