// Pratique-kustomize renders a tree of files with kustomize: JSON comes in, JSON goes out.
//
// Pratique starts it confined (provisioner/confined_program.py): no file, no network, no other program, so much memory
// and processor time. None of this is left to kustomize here either: its files are those of the tree, it runs no
// plug-in, no function and no helm, and what it would fetch is an error.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// The tree as a file system that is only read, and knows which files were. Kustomize's own one in memory refuses many names.
type tree struct {
	filesys.FileSystem // an empty one, for what no build asks
	files              map[string][]byte
	folders            map[string]bool
	read               map[string]bool
}

func treeOf(given map[string][]byte) *tree {
	made := &tree{filesys.MakeFsInMemory(), map[string][]byte{}, map[string]bool{place: true}, map[string]bool{}}
	for name, data := range given {
		whole := path.Join(place, name)
		made.files[whole] = data
		for folder := path.Dir(whole); len(folder) > len(place); folder = path.Dir(folder) {
			made.folders[folder] = true
		}
	}
	return made
}

func (made *tree) ReadFile(name string) ([]byte, error) {
	whole := path.Clean(name)
	data, found := made.files[whole]
	if !found {
		return nil, fmt.Errorf("'%s' doesn't exist", name)
	}
	made.read[strings.TrimPrefix(whole, place+"/")] = true
	return bytes.Clone(data), nil
}

func (made *tree) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	whole := path.Join("/", name)
	if made.folders[whole] {
		return filesys.ConfirmedDir(whole), "", nil
	}
	if _, found := made.files[whole]; !found {
		return "", "", fmt.Errorf("'%s' doesn't exist", name)
	}
	return filesys.ConfirmedDir(path.Dir(whole)), path.Base(whole), nil
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
	files := treeOf(asked.Files)
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

func build(files *tree, folder string) (resmap.ResMap, error) {
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, folder)
}

// The file that each object came from, by a build of its own: patches would see the annotations that tell it.
func origins(files *tree, folder string) map[string]string {
	found := map[string]string{}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if text, has := files.files[path.Join(folder, name)]; has {
			asking := append(bytes.Clone(text), "\nbuildMetadata: [originAnnotations]\n"...)
			files.files[path.Join(folder, name)] = asking
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
