// Pratique-helm3 renders charts with Helm 3, one after the other, as provisioner/chart_engine/process.py does with Helm 4.
//
// Pratique starts it confined (provisioner/confined_program.py): no file, no network, no other program, so much memory
// and processor time. It has no client either that would ask a cluster: what a chart looks up comes with the chart.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"sort"
	"strings"
	"time"
	_ "time/tzdata" // zones that templates name: there are no files

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// What is not used again has used so much processor time, or has waited so long for a chart (chart_engine/limits.py).
const (
	maxKept  = 5 * time.Second
	maxIdle  = 60 * time.Second
	maxWords = 1000
)

// What is refused: for everybody in words of ours, or else in those of Helm, which may quote values.
type refusal struct{ ours, helms string }

func (found refusal) Error() string { return found.ours + found.helms }

type job struct {
	Values      json.RawMessage `json:"values"`
	ReleaseName string          `json:"release_name"`
	Namespace   string          `json:"namespace"`
	KubeVersion string          `json:"kube_version"`
	APIVersions []string        `json:"api_versions"`
	IsUpgrade   bool            `json:"is_upgrade"`
	Lookups     *[]known        `json:"lookups"`
	IsOpen      bool            `json:"is_open"`
	files       []*loader.BufferedFile
}

type answer struct {
	Templates map[string]string `json:"templates"`
	Again     map[string]string `json:"again"`
	CRDs      map[string]string `json:"crds"`
}

type failure struct {
	Error      string `json:"error"`
	Said       string `json:"said"`
	IsTooLarge bool   `json:"is_too_large"`
}

func main() {
	// Where the kernel does not forbid it: a schema that is fetched is asked of a port where nobody listens.
	os.Setenv("HTTP_PROXY", "http://127.0.0.1:9")
	os.Setenv("HTTPS_PROXY", "http://127.0.0.1:9")
	left := strings.Fields(os.Getenv("PRATIQUE_LEFT"))
	write(map[string]any{"state": state(), "version": version("helm.sh/helm/v3"), "left": left})
	for {
		idle := time.AfterFunc(maxIdle, func() { os.Exit(0) })
		given := read()
		idle.Stop()
		found, err := rendered(given)
		if err != nil {
			refused, is := err.(refusal)
			if !is {
				refused = refusal{helms: err.Error()}
			}
			write(failure{Error: cut(refused.ours), Said: cut(refused.helms)})
			return
		}
		write(found)
		if used() > maxKept {
			return
		}
		write(map[string]any{"state": state()})
	}
}

func cut(words string) string {
	if letters := []rune(words); len(letters) > maxWords {
		return string(letters[:maxWords])
	}
	return words
}

// All that a chart might leave to the next one would show here: names of templates, values, files, and what is served.
func state() []string {
	canary := job{Values: json.RawMessage("{}"), files: []*loader.BufferedFile{
		{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: probe\nversion: 1.0.0\n")},
		{Name: "values.yaml", Data: []byte("global: {}\nimage: {}\n")},
		{Name: "file.txt", Data: []byte("file")},
		{Name: "templates/canary.yaml", Data: []byte(`{{ define "canary" }}{{ .Values | toJson }} {{ .Chart | toJson }}{{ end }}` +
			`{{ include "canary" . }} {{ .Release | toJson }} {{ .Capabilities | toJson }} {{ .Files.Get "file.txt" }}` +
			`{{ range $path, $_ := .Files.Glob "**" }}{{ $path }} {{ end }}{{ lookup "v1" "Probe" "" "probe" | toJson }}`)},
	}}
	found := []string{}
	for _, canary.KubeVersion = range []string{"", "v1.30.0"} {
		texts, _, err := once(canary)
		found = append(found, texts["templates/canary.yaml"], fmt.Sprint(err))
	}
	return found
}

// Renders a chart twice: what differs is made up. A time that it asks for has to be another one the second time.
func rendered(given job) (answer, error) {
	if err := checkSchemas(given.files); err != nil {
		return answer{}, err
	}
	first, crds, err := once(given)
	if err != nil {
		return answer{}, err
	}
	if asksTheTime(given) {
		time.Sleep(1010*time.Millisecond - time.Duration(time.Now().Nanosecond()))
	}
	second, _, err := once(given)
	if err != nil {
		return answer{}, err
	}
	again := map[string]string{}
	for _, texts := range []map[string]string{first, second} {
		for path := range texts {
			if text, has := second[path]; !has || text != first[path] {
				again[path] = text
			}
		}
	}
	return answer{first, again, crds}, nil
}

// The templates and CRDs by their path in the chart, as `helm template` makes them of a chart that was just loaded.
func once(given job) (map[string]string, map[string]string, error) {
	loaded, err := loader.LoadFiles(given.files)
	if err != nil {
		return nil, nil, err
	}
	if err := check(loaded, given); err != nil {
		return nil, nil, err
	}
	values := map[string]any{}
	if err := json.Unmarshal(given.Values, &values); err != nil {
		return nil, nil, err
	}
	if err := chartutil.ProcessDependenciesWithMerge(loaded, values); err != nil {
		return nil, nil, err
	}
	served, err := capabilities(given)
	if err != nil {
		return nil, nil, err
	}
	options := chartutil.ReleaseOptions{
		Name: given.ReleaseName, Namespace: given.Namespace, Revision: 1,
		IsInstall: !given.IsUpgrade, IsUpgrade: given.IsUpgrade,
	}
	if given.IsUpgrade {
		options.Revision = 2
	}
	whole, err := chartutil.ToRenderValuesWithSchemaValidation(loaded, values, options, served, false)
	if err != nil {
		if strings.Contains(err.Error(), "failing loading") { // the rest would say what is there
			err = refusal{ours: "its schema refers to something, " + notInTheChart}
		}
		return nil, nil, err
	}
	var texts map[string]string
	if given.Lookups == nil {
		texts, err = engine.Render(loaded, whole)
	} else {
		texts, err = engine.RenderWithClientProvider(loaded, whole, answersOf(given))
	}
	if err != nil {
		return nil, nil, err
	}
	templates, crds := map[string]string{}, map[string]string{}
	for path, text := range texts {
		if !strings.HasSuffix(path, "NOTES.txt") {
			templates[within(path)] = text
		}
	}
	for _, crd := range loaded.CRDObjects() {
		crds[within(crd.Filename)] = string(crd.File.Data)
	}
	return templates, crds, nil
}

func within(path string) string {
	_, rest, _ := strings.Cut(path, "/")
	return rest
}

func check(loaded *chart.Chart, given job) error {
	if loaded.Metadata.Type == "library" {
		return refusal{ours: "it is a library chart, which has nothing to install"}
	}
	present, missing := map[string]bool{}, []string{}
	for _, one := range loaded.Dependencies() {
		present[one.Name()] = true
	}
	for _, wanted := range loaded.Metadata.Dependencies {
		if !present[wanted.Name] {
			present[wanted.Name] = true
			missing = append(missing, wanted.Name)
		}
	}
	if sort.Strings(missing); len(missing) > 0 {
		names := strings.Join(missing[:min(len(missing), 10)], ", ")
		return refusal{ours: "charts/ lacks the dependencies " + names + "; run `helm dependency build` and ship it"}
	}
	wanted := loaded.Metadata.KubeVersion
	// What a distribution adds to its version (-gke.1, +k3s1) does not count.
	plain, _, _ := strings.Cut(strings.SplitN(given.KubeVersion, "+", 2)[0], "-")
	if wanted != "" && plain != "" && !chartutil.IsCompatibleRange(wanted, plain) {
		return refusal{ours: "it needs Kubernetes " + wanted + ", but the cluster has " + given.KubeVersion}
	}
	return nil
}

// What is served by the cluster and nothing else, or where none is known what Helm takes for served.
func capabilities(given job) (*chartutil.Capabilities, error) {
	found := chartutil.DefaultCapabilities.Copy()
	served := found.APIVersions
	kubernetes := given.KubeVersion
	if kubernetes == "" { // as in Helm's own build: v0.37.0 of the client is of v1.37.0
		kubernetes = "v1" + strings.TrimPrefix(version("k8s.io/client-go"), "v0")
	} else {
		served = given.APIVersions
	}
	parsed, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, err
	}
	found.KubeVersion = *parsed
	found.APIVersions = append(chartutil.VersionSet{}, served...) // a copy: a template may sort it
	found.HelmVersion.Version = version("helm.sh/helm/v3")
	return found, nil
}

// An action of a template, or of a text that one evaluates (tpl), without comments; quoted text may hold braces.
var action = regexp.MustCompile("(?s)\\{\\{(?:-\\s)?/\\*.*?\\*/|\\{\\{(" +
	"(?:[^\"'`}]+|\"(?:[^\"\\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\\n]|\\\\.)*'|`[^`]*`|\\}[^}]|[\"'`])*)")

// Functions that give another answer a second later; those of dates take what is no time for the time that it is.
var timeWords = regexp.MustCompile(`\b(?:now|ago|date|dateInZone|date_in_zone|htmlDate|htmlDateInZone|durationRound)\b`)

func asksTheTime(given job) bool {
	for _, file := range given.files {
		lower := strings.ToLower(file.Name)
		name := file.Name[strings.LastIndex(file.Name, "/")+1:]
		isForPeople := strings.HasSuffix(lower, ".md") || strings.HasSuffix(lower, ".txt") ||
			strings.HasSuffix(lower, ".gotmpl") || name == "LICENSE" || name == "OWNERS"
		if !isForPeople && textAsksTheTime(file.Data) {
			return true
		}
	}
	return anyText(given.Values, func(text string) bool { return textAsksTheTime([]byte(text)) })
}

func textAsksTheTime(text []byte) bool {
	if !bytes.Contains(text, []byte("{{")) || !timeWords.Match(text) {
		return false
	}
	for _, found := range action.FindAllSubmatch(text, -1) {
		if timeWords.Match(found[1]) {
			return true
		}
	}
	return false
}

// Whether any text in a JSON says yes; every other value is passed over.
func anyText(whole []byte, says func(string) bool) bool {
	tokens := json.NewDecoder(bytes.NewReader(whole))
	for {
		token, err := tokens.Token()
		if err != nil {
			return false
		}
		if text, is := token.(string); is && says(text) {
			return true
		}
	}
}

// The version of a module that this program is built with.
func version(path string) string {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return ""
}
