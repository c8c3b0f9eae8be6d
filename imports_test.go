// SPDX-License-Identifier: Apache-2.0

package convoy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// A rule says what the packages under from must not import.
type rule struct {
	from string
	// never are import path prefixes; ours begin with a slash.
	never []string
	// but are exceptions to never.
	but []string
	why string
}

var rules = []rule{
	{
		from: "/api", never: []string{"/", "k8s.io", "sigs.k8s.io", "github.com"},
		but: []string{"/api", "k8s.io/apimachinery"},
		why: "whoever talks to the hub imports api, and must get nothing else with it",
	},
	{
		from: "/pkg", never: []string{"/"}, but: []string{"/api", "/pkg"},
		why: "pkg is what hub and agent share, so it can stand on neither",
	},
	{
		from: "/pkg/tunnel", never: []string{"k8s.io", "sigs.k8s.io", "/api"},
		why: "the wire has to be readable, and testable, without Kubernetes",
	},
	{
		from: "/hub", never: []string{"/agent", "/e2e", "/kubectl-convoy"},
		why: "hub and agent meet only in the messages of pkg/tunnel",
	},
	{
		from: "/agent", never: []string{"/hub", "/e2e", "/kubectl-convoy"},
		why: "hub and agent meet only in the messages of pkg/tunnel",
	},
	{
		from: "/kubectl-convoy", never: []string{"/"}, but: []string{"/api", "/pkg", "/kubectl-convoy", "/charts", "/hub/render/content", "/hub/render/files", "/hub/render/facts"},
		why: "the plugin speaks to API servers only, prints what the agent's chart renders, and of the hub has what is pure in its renderer",
	},
	{
		from: "/hub/render/content", never: []string{"/hub", "k8s.io/client-go"},
		but: []string{"/hub/render/content", "/hub/render/facts", "/hub/render/files", "/hub/render/helm", "/hub/render/kustomize", "/hub/render/mutate"},
		why: "a laptop renders with the same code, and has no hub",
	},
	{
		from: "/pkg/engine", never: []string{"/pkg/state"},
		why: "the engine declares what it keeps; where that lies is decided around it",
	},
	{
		from: "/agent/link", never: []string{"/agent", "/pkg/engine", "k8s.io/client-go"}, but: []string{"/agent/link"},
		why: "the link knows the wire; what it carries reaches it through small interfaces",
	},
}

// flow lists which rooms of the hub each room may import. A room takes its value
// from the room just before it and reaches all others through interfaces that it
// declares itself; only main and wiring see everything.
var flow = map[string][]string{
	"source":     {"worker"},
	"render":     {"source", "store", "worker"},
	"store":      {},
	"deliver":    {"cache", "keyring"},
	"local":      {"cache"},
	"gateway":    {},
	"cache":      {},
	"report":     {"cache"},
	"controller": {"cache", "source", "render", "deliver", "report", "precedence"},
	"apiserver":  {"keyring", "etcd", "precedence"},
	"precedence": {},
	"keyring":    {},
	"etcd":       {},
	"options":    {"apiserver"},
	"worker":     {},
	"backup":     {"store"},
	"observer":   {},
}

// wiring are the packages that put the rooms together; nobody imports them.
var wiring = []string{module + "/hub", module + "/hub/wiring", module + "/agent"}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// packages lists all packages of the main module. Imports of tests are left to
// the tests: they may stand up a neighbour to talk to.
func packages(t *testing.T) []listed {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(golist(t, "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")))
	var all []listed
	for {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("reading the list of packages: %v", err)
		}
		all = append(all, one)
	}
}

func under(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		if strings.HasPrefix(prefix, "/") {
			prefix = module + prefix
		}
		if prefix == module+"/" {
			return strings.HasPrefix(path, prefix)
		}
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}

// broken says which imports of one package break a rule.
func (r rule) broken(path string, imports []string) []string {
	var found []string
	if !under(path, []string{r.from}) {
		return nil
	}
	for _, imported := range imports {
		if under(imported, r.never) && !under(imported, r.but) {
			found = append(found, fmt.Sprintf("%s imports %s: %s", path, imported, r.why))
		}
	}
	return found
}

func TestNoPackageImportsWhatItsRoomMustNotSee(t *testing.T) {
	t.Parallel()
	for _, one := range packages(t) {
		for _, r := range rules {
			for _, fault := range r.broken(one.ImportPath, one.Imports) {
				t.Error(fault)
			}
		}
	}
}

func TestRoomsOfTheHubImportOneWay(t *testing.T) {
	t.Parallel()
	hub := module + "/hub/"
	room := func(path string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(path, hub), "/")
		return name
	}
	for _, one := range packages(t) {
		if !strings.HasPrefix(one.ImportPath, hub) || slices.Contains(wiring, one.ImportPath) {
			continue
		}
		from := room(one.ImportPath)
		allowed, known := flow[from]
		if !known {
			t.Errorf("hub/%s is a room that imports_test.go does not know: say there what it may import", from)
			continue
		}
		for _, imported := range one.Imports {
			if !strings.HasPrefix(imported, hub) {
				continue
			}
			if to := room(imported); to != from && !slices.Contains(allowed, to) {
				t.Errorf("%s imports hub/%s: a room imports %v, others through interfaces of its own", one.ImportPath, to, allowed)
			}
		}
	}
}

func TestNobodyImportsTheWiring(t *testing.T) {
	t.Parallel()
	for _, one := range packages(t) {
		for _, imported := range one.Imports {
			if slices.Contains(wiring, imported) && one.ImportPath != module+"/hub" {
				t.Errorf("%s imports %s, which sees every room", one.ImportPath, imported)
			}
		}
	}
}

// heavy are modules that a program must not contain.
var heavy = []struct {
	program string
	never   []string
	why     string
}{
	{
		program: "./agent",
		never: []string{
			"helm.sh/helm", "sigs.k8s.io/kustomize", "github.com/go-git", "oras.land/oras-go",
			"k8s.io/apiserver", "sigs.k8s.io/controller-runtime", "go.etcd.io/etcd",
		},
		why: "an agent renders nothing, fetches from nobody but the hub and has to fit into 45 MiB",
	},
	{
		program: "./kubectl-convoy",
		never:   []string{"k8s.io/apiserver", "sigs.k8s.io/controller-runtime", "github.com/go-git", "go.etcd.io/etcd"},
		why:     "the plugin speaks to API servers only",
	},
	{
		program: "./pkg/tunnel/...",
		never:   []string{"k8s.io", "sigs.k8s.io"},
		why:     "the wire has to be readable, and testable, without Kubernetes",
	},
}

func TestProgramsStayLight(t *testing.T) {
	t.Parallel()
	for _, one := range heavy {
		for dependency := range strings.SplitSeq(string(golist(t, "-e", "-deps", one.program)), "\n") {
			if under(dependency, one.never) {
				t.Errorf("%s contains %s: %s", one.program, dependency, one.why)
			}
		}
	}
}

func TestRulesCatchWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		from, imports string
		broken        bool
	}{
		"api may use apimachinery":              {"/api/core/v1alpha1", "k8s.io/apimachinery/pkg/runtime", false},
		"api may not use client-go":             {"/api/core/v1alpha1", "k8s.io/client-go/rest", true},
		"api may not use a room":                {"/api/core/v1alpha1", module + "/pkg/tunnel", true},
		"pkg may use api":                       {"/pkg/engine", module + "/api/core/v1alpha1", false},
		"pkg may not use the hub":               {"/pkg/engine", module + "/hub/store", true},
		"the tunnel may not use apimachinery":   {"/pkg/tunnel", "k8s.io/apimachinery/pkg/types", true},
		"the agent may not use the hub":         {"/agent/link", module + "/hub/gateway", true},
		"the hub may not use the agent":         {"/hub/gateway", module + "/agent/link", true},
		"a folder with the same start is other": {"/hub/gateway", module + "/agentless", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var faults []string
			for _, r := range rules {
				faults = append(faults, r.broken(module+test.from, []string{test.imports})...)
			}
			if got := len(faults) > 0; got != test.broken {
				t.Errorf("%s importing %s: broken is %v, want %v (%v)", test.from, test.imports, got, test.broken, faults)
			}
		})
	}
}
