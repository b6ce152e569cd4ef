package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// An object that may be looked up, and what it is; nil where it does not exist.
type known struct {
	APIVersion string         `json:"api_version"`
	Kind       string         `json:"kind"`
	Namespace  string         `json:"namespace"`
	Name       string         `json:"name"`
	Body       map[string]any `json:"body"`
}

// What is answered to a lookup, as by provisioner/chart_engine/lookup_process.py.
type answers struct {
	known  []known
	kinds  []string // apiVersion/Kind
	isOpen bool
}

func answersOf(given job) answers {
	found := answers{*given.Lookups, slices.Clone(given.APIVersions), given.IsOpen}
	for _, one := range found.known {
		found.kinds = append(found.kinds, one.APIVersion+"/"+one.Kind)
	}
	return found
}

func (its answers) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if !its.isOpen && !slices.ContainsFunc(its.kinds, func(one string) bool { return strings.HasPrefix(one, apiVersion+"/") }) {
		return nil, false, fmt.Errorf("config.lookup names nothing in %.200s", apiVersion)
	}
	return asked{answers: its, apiVersion: apiVersion, kind: kind}, true, nil
}

// The objects of one kind, in one namespace or in all. Helm gets them and lists them, and does nothing else with them.
type asked struct {
	dynamic.NamespaceableResourceInterface
	answers
	apiVersion, kind, namespace string
}

func (its asked) Namespace(name string) dynamic.ResourceInterface {
	its.namespace = name
	return its
}

func (its asked) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if wrong := path.IsValidPathSegmentName(name); len(wrong) > 0 { // as a client of Kubernetes
		return nil, fmt.Errorf("invalid resource name %.300q: %v", name, wrong)
	}
	for _, namespace := range []string{its.namespace, ""} { // Helm leaves out the namespace of what has none
		for _, one := range its.known {
			if one.APIVersion == its.apiVersion && one.Kind == its.kind && one.Namespace == namespace && one.Name == name {
				if one.Body == nil {
					return nil, its.absent(name)
				}
				return (&unstructured.Unstructured{Object: one.Body}).DeepCopy(), nil
			}
		}
	}
	if its.isOpen {
		return nil, its.absent(name)
	}
	where := name
	if its.namespace != "" {
		where = its.namespace + "/" + name
	}
	return nil, fmt.Errorf("config.lookup does not name %s %.300s", its.kind, where)
}

func (its asked) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if its.isOpen {
		return nil, its.absent("")
	}
	return nil, errors.New("a lookup of every " + its.kind + " is not answered: config.lookup names single objects")
}

func (its asked) absent(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: its.kind}, name)
}
