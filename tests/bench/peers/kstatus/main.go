// kstatus says what the library of Flux and others makes of objects: a JSON list comes in, and one of states goes out.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	var objects []map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		fail(err)
	}
	states := make([]string, 0, len(objects))
	for _, object := range objects {
		found, err := status.Compute(&unstructured.Unstructured{Object: withWholeNumbers(object).(map[string]any)})
		if err != nil {
			fail(err)
		}
		states = append(states, found.Status.String())
	}
	if err := json.NewEncoder(os.Stdout).Encode(states); err != nil {
		fail(err)
	}
}

// withWholeNumbers is as the clients of Kubernetes decode: whole numbers as int64.
func withWholeNumbers(value any) any {
	switch known := value.(type) {
	case map[string]any:
		for key, inner := range known {
			known[key] = withWholeNumbers(inner)
		}
	case []any:
		for at, inner := range known {
			known[at] = withWholeNumbers(inner)
		}
	case float64:
		if known == float64(int64(known)) {
			return int64(known)
		}
	}
	return value
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
