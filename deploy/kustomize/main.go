// Pratique-kustomize renders a tree of files with kustomize: JSON comes in, JSON goes out.
//
// Pratique starts it confined (provisioner/confined_program.py): no file, no network, no other program, so much memory
// and processor time. None of this is left to kustomize here either: its files are those of the tree, it runs no
// plug-in, no function and no helm, and what it would fetch is an error.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"runtime/debug"
	"sort"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Where the tree lies: what climbs out of it finds nothing.
const place = "/tree"

type question struct {
	Files  map[string][]byte `json:"files"`
	Folder string            `json:"folder"`
}

type object struct {
	Text string `json:"text"`
	File string `json:"file"`
}

type answer struct {
	Version string   `json:"version"`
	Objects []object `json:"objects"`
	Used    []string `json:"used"`
	Error   string   `json:"error"`
}

// A file system in memory that knows which files were read.
type recorder struct {
	filesys.FileSystem
	read map[string]bool
}

func (files *recorder) ReadFile(name string) ([]byte, error) {
	data, err := files.FileSystem.ReadFile(name)
	if err == nil {
		files.read[strings.TrimPrefix(path.Clean(name), place+"/")] = true
	}
	return data, err
}

type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nothing is fetched here")
}

func main() {
	// Where the kernel does not forbid it: nothing is asked by http, and no git is found that would fetch.
	http.DefaultTransport = nowhere{}
	os.Setenv("PATH", "")
	given, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Exit(3)
	}
	var asked question
	if err := json.Unmarshal(given, &asked); err != nil {
		os.Exit(3)
	}
	json.NewEncoder(os.Stdout).Encode(rendered(asked))
}

func rendered(asked question) answer {
	found := answer{Version: version(), Objects: []object{}, Used: []string{}}
	files := &recorder{filesys.MakeFsInMemory(), map[string]bool{}}
	for name, data := range asked.Files {
		if err := files.WriteFile(path.Join(place, name), data); err != nil {
			found.Error = err.Error()
			return found
		}
	}
	folder := path.Join(place, asked.Folder)
	built, err := build(files, folder)
	for name := range files.read {
		found.Used = append(found.Used, name)
	}
	sort.Strings(found.Used)
	if err != nil {
		found.Error = strings.ReplaceAll(err.Error(), place, "")
		return found
	}
	origins := origins(files, folder)
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			found.Error = err.Error()
			return found
		}
		found.Objects = append(found.Objects, object{string(text), origins[resource.CurId().String()]})
	}
	return found
}

func build(files filesys.FileSystem, folder string) (resmap.ResMap, error) {
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, folder)
}

// The file that each object came from, by a build of its own: patches would see the annotations that tell it.
func origins(files filesys.FileSystem, folder string) map[string]string {
	found := map[string]string{}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		text, err := files.ReadFile(path.Join(folder, name))
		if err != nil {
			continue
		}
		// A kustomization that asks for build metadata already is refused with this, and tells no origins.
		asking := append(append([]byte{}, text...), "\nbuildMetadata: [originAnnotations]\n"...)
		if files.WriteFile(path.Join(folder, name), asking) != nil {
			return found
		}
	}
	built, err := build(files, folder)
	if err != nil {
		return found
	}
	for _, resource := range built.Resources() {
		origin, err := resource.GetOrigin()
		if err != nil || origin == nil {
			continue
		}
		name := origin.Path
		if name == "" {
			name = origin.ConfiguredIn
		}
		if name != "" {
			found[resource.CurId().String()] = strings.TrimPrefix(path.Join(folder, name), place+"/")
		}
	}
	return found
}

func version() string {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "sigs.k8s.io/kustomize/api" {
			return module.Version
		}
	}
	return ""
}
