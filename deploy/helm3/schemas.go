package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
)

const notInTheChart = "which is not in the chart; expected references with #"

// Helm would fetch what a schema refers to, from any address and from files.
func checkSchemas(files []*loader.BufferedFile) error {
	for _, file := range files {
		if file.Name != "values.schema.json" && !strings.HasSuffix(file.Name, "/values.schema.json") {
			continue
		}
		var whole any
		if json.Unmarshal(file.Data, &whole) != nil {
			return refusal{ours: file.Name + ": it is no JSON"}
		}
		pending := []any{whole}
		for len(pending) > 0 {
			value := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			switch parts := value.(type) {
			case []any:
				pending = append(pending, parts...)
			case map[string]any:
				for key, part := range parts {
					pending = append(pending, part)
					target, isText := part.(string)
					if isText && isReference(key) && !isKnown(target) {
						return refusal{ours: fmt.Sprintf("%s: it refers to '%.200s', %s", file.Name, target, notInTheChart)}
					}
				}
			}
		}
	}
	return nil
}

func isReference(key string) bool {
	return key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef" || key == "$schema"
}

func isKnown(target string) bool {
	for _, start := range []string{"#", "http://json-schema.org/", "https://json-schema.org/"} {
		if strings.HasPrefix(target, start) {
			return true
		}
	}
	return false
}
