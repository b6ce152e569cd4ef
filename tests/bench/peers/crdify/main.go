// Command crdify-bench runs the tool crdify in this process on two CRDs, and says what that took:
// `crdify-bench OLD NEW ROUNDS` prints one JSON object. Reading the files is not counted.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/afero"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/loaders/file"
	"sigs.k8s.io/crdify/pkg/runner"
)

// figures are what one call of crdify took; peaks are the process's highest resident size, in KiB.
type figures struct {
	Seconds      []float64 `json:"seconds"`
	PeakAtStart  int       `json:"peak_kib_before"`
	PeakAfterRun int       `json:"peak_kib_after"`
	Refuses      bool      `json:"refuses"`
}

func main() {
	log.SetFlags(0)

	rounds, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}

	settings, err := config.Load("")
	if err != nil {
		log.Fatal(err)
	}

	run, err := runner.New(settings, runner.DefaultRegistry())
	if err != nil {
		log.Fatal(err)
	}

	older, newer := load(os.Args[1]), load(os.Args[2])
	found := figures{PeakAtStart: peak()}

	for range rounds {
		began := time.Now()
		results := run.Run(older, newer)
		found.Seconds = append(found.Seconds, time.Since(began).Seconds())
		found.Refuses = results.HasFailures()
	}

	found.PeakAfterRun = peak()

	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

func load(path string) *apiextensionsv1.CustomResourceDefinition {
	crd, err := file.New(afero.OsFs{}).Load(context.Background(), &url.URL{Scheme: "file", Path: path})
	if err != nil {
		log.Fatal(err)
	}

	return crd
}

// peak reads VmHWM, as the kernel counts it.
func peak() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		log.Fatal(err)
	}

	for line := range strings.Lines(string(status)) {
		if size, isPeak := strings.CutPrefix(line, "VmHWM:"); isPeak {
			kib, err := strconv.Atoi(strings.Fields(size)[0])
			if err != nil {
				log.Fatal(err)
			}

			return kib
		}
	}

	return 0
}
