// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/render/kustomize"
	"kumodo.io/convoy/pkg/manifest"
)

// listen counts the connections that are made to a port of loopback.
func listen(t *testing.T) (address string, count *atomic.Int64) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	count = &atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			_ = connection.Close() // whoever it was, it should not be there
		}
	}()
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return listener.Addr().String(), count
}

// fakeGit stands where git would be found, and leaves a mark when it is run.
func fakeGit(t *testing.T) (mark string) {
	t.Helper()
	folder := t.TempDir()
	mark = filepath.Join(folder, "ran")
	if err := os.WriteFile(filepath.Join(folder, "git"), []byte("#!/bin/sh\n: > "+mark+"\n"), 0o700); err != nil { //nolint:gosec // a program has to be executable
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	return mark
}

func TestNothingIsDialedOrRunHoweverAReferenceIsSpelled(t *testing.T) {
	address, count := listen(t)
	mark := fakeGit(t)
	url := "http://" + address + "/team/base"
	plugin := func(field string) string {
		return "transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: p}\n  " + field + "\n"
	}
	tests := []struct{ name, kustomization, field string }{
		{"git::", "resources: ['git::" + url + "']", "resources"},
		{"?ref=", "resources: ['" + url + "?ref=main']", "resources"},
		{"scp style", "resources: ['git@127.0.0.1:" + strings.TrimPrefix(address, "127.0.0.1:") + "/team/base.git']", "resources"},
		{"components", "components: ['" + url + "//x?ref=v1']", "components"},
		{"openapi.path", "openapi: {path: '" + url + "/schema.json'}", "openapi.path"},
		{"replacements.path", "replacements: [{path: '" + url + "/r.yaml'}]", "replacements[0].path"},
		{"an option of git as ref", "resources: ['https://example.test/a/b?ref=--upload-pack=touch%20x']", "resources"},
		{"an option of git as host", "resources: ['ssh://-oProxyCommand=touch/a/b']", "resources"},
		{"a file by http", "resources: ['" + url + "/all.yaml']", "resources"},
		{"http in capitals", "Resources: ['HTTP://" + address + "/all.yaml']", "resources"},
		{"http without slashes", "resources: ['http:" + address + "/all.yaml']", "resources"},
		{"ssh", "resources: ['ssh://git@" + address + "/team/base']", "resources"},
		{"file", "resources: ['file:///etc']", "resources"},
		{"a name of a well-known host", "resources: [github.com/team/base]", "resources"},
		{"bases", "bases: ['" + url + "']", "resources"},
		{"crds", "crds: ['" + url + "/crd.json']", "crds"},
		{"configurations", "configurations: ['" + url + "/c.yaml']", "configurations"},
		{"patches", "patches: [{path: '" + url + "/p.yaml'}]", "patches[0].path"},
		{"patchesStrategicMerge", "patchesStrategicMerge: ['" + url + "/p.yaml']", "patchesStrategicMerge[0]"},
		{"patchesStrategicMerge with a line feed", "patchesStrategicMerge:\n- |\n  " + url + "/p.yaml\n", "patchesStrategicMerge[0]"},
		{"patchesJson6902", "patchesJson6902: [{target: {version: v1, kind: ConfigMap, name: c}, path: '" + url + "/p.yaml'}]", "patchesJson6902[0].path"},
		{"a generator's files", "configMapGenerator: [{name: c, files: ['k=" + url + "/f']}]", "configMapGenerator[0].files"},
		{"a generator's envs", "secretGenerator: [{name: c, envs: ['" + url + "/f']}]", "secretGenerator[0].envs[0]"},
		{"generators", "generators: ['" + url + "/g.yaml']", "generators[0]"},
		{"transformers", "transformers: ['" + url + "?ref=x']", "transformers[0]"},
		{"validators", "validators: ['git@example.test:a/b']", "validators[0]"},
		{"a transformer's path", plugin("path: " + url + "/p.yaml"), "path"},
		{"a transformer's path in capitals", plugin("PATH: " + url + "/p.yaml"), "path"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			source := files.New([]files.File{{Name: "over/kustomization.yaml", Data: []byte(test.kustomization + "\n")}}, nil)
			_, err := build(t, source, "over")
			if !errors.Is(err, kustomize.ErrRemote) || !strings.HasPrefix(err.Error(), "over/kustomization.yaml: ") || !strings.Contains(err.Error(), test.field+": ") {
				t.Errorf("got %v", err)
			}
		})
	}
	if n := count.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("git was run: %v", err)
	}
}

const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"

func TestWhatIsRefusedIsNamed(t *testing.T) {
	tests := []struct {
		name, tree string
		want       error
		text       string
	}{
		{"no kustomization", "-- over/cm.yaml --\n" + config, kustomize.ErrNone, "over: there is no kustomization.yaml"},
		{"two kustomizations", "-- over/kustomization.yaml --\n-- over/Kustomization --\n", kustomize.ErrSeveral, "over: has several kustomization files"},
		{"no such folder", "-- x --\n", kustomize.ErrMissing, "over: is not in the source"},
		{"a field that kustomize does not have", "-- over/kustomization.yaml --\nresource: [a]\n", kustomize.ErrBuild, "over/kustomization.yaml: "},
		{"an empty kustomization", "-- over/kustomization.yaml --\nkind: Kustomization\n", kustomize.ErrBuild, "over: kustomize: kustomization.yaml is empty"},
		{"a file that is not there", "-- over/kustomization.yaml --\nresources: [a.yaml]\n", kustomize.ErrMissing, `over/kustomization.yaml: resources: "a.yaml": is not in the source`},
		{"all files that are not there, at once", "-- over/kustomization.yaml --\nresources: [a.yaml, ../b]\npatches: [{path: p.yaml}]\n", kustomize.ErrMissing, `"a.yaml": is not in the source; over/kustomization.yaml: resources: "../b": is not in the source; over/kustomization.yaml: patches[0].path: "p.yaml"`},
		{"a file above its folder", "-- over/kustomization.yaml --\nresources: [../cm.yaml]\n-- cm.yaml --\n" + config, kustomize.ErrRoot, `over/kustomization.yaml: resources: "../cm.yaml": is not in or below the folder`},
		{"an absolute path", "-- over/kustomization.yaml --\nresources: [/etc/passwd]\n", files.ErrOutside, `"/etc/passwd": leads out of the source`},
		{"a chart", "-- over/kustomization.yaml --\nhelmCharts: [{name: x}]\n", kustomize.ErrHelm, "over/kustomization.yaml: helmCharts: charts are not rendered"},
		{"a chart in the old form", "-- over/kustomization.yaml --\nhelmChartInflationGenerator: [{chartName: x}]\n", kustomize.ErrHelm, "helmCharts"},
		{"a chart by a generator", "-- over/kustomization.yaml --\ngenerators: [g.yaml]\n-- over/g.yaml --\napiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\n", kustomize.ErrHelm, "over/g.yaml: "},
		{"a program", "-- over/kustomization.yaml --\ntransformers: [t.yaml]\n-- over/t.yaml --\napiVersion: example.test/v1\nkind: Sed\nmetadata: {name: x}\n", kustomize.ErrPlugin, `over/t.yaml: "example.test/v1" "Sed": is a plugin`},
		{"a container", "-- over/kustomization.yaml --\nvalidators: [t.yaml]\n-- over/t.yaml --\napiVersion: builtin\nkind: X\nmetadata: {name: x, annotations: {config.kubernetes.io/function: 'container: {image: i}'}}\n", kustomize.ErrPlugin, "over/t.yaml: config.kubernetes.io/function names a program"},
		{"an exec function of a second document", "-- over/kustomization.yaml --\ngenerators: [t.yaml]\n-- over/t.yaml --\napiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\n---\napiVersion: builtin\nkind: X\nmetadata: {name: x, annotations: {config.k8s.io/function: 'exec: {path: x}'}}\n", kustomize.ErrPlugin, "over/t.yaml: config.k8s.io/function"},
		{"settings of plugins that are patched", "-- over/kustomization.yaml --\ntransformers: [t]\n-- over/t/kustomization.yaml --\nresources: [t.yaml]\nnamePrefix: x\n-- over/t/t.yaml --\napiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\n", kustomize.ErrPlugin, "over/t/kustomization.yaml: "},
		{"a base that builds itself", "-- over/kustomization.yaml --\nresources: [../over]\n", kustomize.ErrCycle, "over: leads back to itself"},
		{"bases that build each other", "-- over/kustomization.yaml --\nresources: [../b]\n-- b/kustomization.yaml --\nresources: [../over]\n", kustomize.ErrCycle, "over: leads back to itself"},
		{"types that lead back to themselves", "-- over/kustomization.yaml --\nresources: [cm.yaml]\ncrds: [crd.json]\n-- over/cm.yaml --\n" + config + "-- over/crd.json --\n{\"a.Kind\": {\"Schema\": {\"properties\": {\"kind\": {}, \"apiVersion\": {}, \"metadata\": {}, \"x\": {\"$ref\": \"a.Kind\"}}}}}\n", kustomize.ErrCycle, "over/crd.json: a.Kind: leads back to itself"},
		{"an empty file of types", "-- over/kustomization.yaml --\nresources: [cm.yaml]\ncrds: [crd.json]\n-- over/cm.yaml --\n" + config + "-- over/crd.json --\n", kustomize.ErrBuild, "over/crd.json: "},
		{"a schema that is none", "-- over/kustomization.yaml --\nnamespace: x\nresources: [cm.yaml]\nopenapi: {path: s.json}\npatches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}'}]\n-- over/cm.yaml --\n" + config + "-- over/s.json --\n{\"definitions\": 7}\n", kustomize.ErrBuild, "over: kustomize: gave up: invalid schema file"},
		{"data that would have to be rewritten", "-- over/kustomization.yaml --\nresources: [cm.yaml]\nconfigMapGenerator: [{name: d, files: [cm.yaml]}]\n-- over/cm.yaml --\n--- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n", kustomize.ErrBuild, "over/cm.yaml: "},
		{"YA-05: an alias bomb in a kustomization", "-- over/kustomization.yaml --\nresources: &a [x, x, x, x, x, x, x, x, x, x]\ncrds: [*a, *a]\n" + bombs(), manifest.ErrTooLarge, "over/kustomization.yaml, document 1"},
		{"YA-05: a document that contains itself", "-- over/kustomization.yaml --\nresources: [self.yaml]\n-- over/self.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: self, annotations: *m}\n", nil, "over/self.yaml, document 1, line 3: ConfigMap self: a value that contains itself"},
		{"YA-05: an inline patch that contains itself", "-- over/kustomization.yaml --\nresources: [cm.yaml]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: &m {name: c, annotations: *m}\n-- over/cm.yaml --\n" + config, nil, "over/kustomization.yaml: patches[0].patch, document 1, line 3: ConfigMap c: a value that contains itself"},
		{"YA-05: brackets", "-- over/kustomization.yaml --\nresources: [a.yaml]\n-- over/a.yaml --\n" + strings.Repeat("[", 100_000) + "\n", nil, "over/a.yaml, document 1, line 1: not valid YAML: exceeded max depth"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := build(t, tree(test.tree), "over")
			runtime.ReadMemStats(&after)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) || len(err.Error()) > 4096 {
				t.Errorf("got %v", err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > boundBytes {
				t.Errorf("it allocates %d MiB", used>>20)
			}
		})
	}
}

func TestWhatASecretIsMadeOfIsNotRepeated(t *testing.T) {
	tests := []struct {
		name, tree string
		want       error
		text       string
	}{
		{"a literal that is no pair", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, literals: [a=b, KustSecretValue4]}]\n", kustomize.ErrPair, `over/kustomization.yaml: secretGenerator[0].literals[1]: secret "q": must be KEY=VALUE`},
		{"a literal without a key", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, literals: [=KustSecretValue4]}]\n", kustomize.ErrPair, "secretGenerator[0].literals[0]"},
		{"one of a base", "-- over/kustomization.yaml --\nresources: [../b]\n-- b/kustomization.yaml --\nsecretGenerator: [{name: q, literals: [KustSecretValue4]}]\n", kustomize.ErrPair, "b/kustomization.yaml: secretGenerator[0].literals[0]"},
		{"one of a generator's settings", "-- over/kustomization.yaml --\ngenerators: [g.yaml]\n-- over/g.yaml --\napiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: q}\nliterals: [KustSecretValue4]\n", kustomize.ErrPair, `over/g.yaml: literals[0]: secret "q"`},
		{"a line of envs that is no text", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, envs: [e]}]\n-- over/e --\nA=b\nB=KustSecretValue4\xff\n", kustomize.ErrPair, `secretGenerator[0].envs[0]: e, line 2: must be KEY=VALUE`},
		{"a line of envs without a sign", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, envs: [e]}]\n-- over/e --\n# remark\n\nA=b\n  KustSecretValue4\n", kustomize.ErrPair, `over/kustomization.yaml: secretGenerator[0].envs[0]: e, line 4: must be KEY=VALUE`},
		{"a line of envs without a key", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, env: e}]\n-- over/e --\n=KustSecretValue4\n", kustomize.ErrPair, `secretGenerator[0].envs[0]: e, line 1: `},
		{"a line of envs that is a sentence", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, envs: [e]}]\n-- over/e --\nthe KustSecretValue4 = x\n", kustomize.ErrPair, `e, line 1: `},
		{"a line of envs of settings", "-- over/kustomization.yaml --\ngenerators: [g.yaml]\n-- over/g.yaml --\napiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: q}\nenvs: [e]\n-- over/e --\nKustSecretValue4\n", kustomize.ErrPair, `over/g.yaml: envs[0]: e, line 1: `},
		{"a line of envs of a ConfigMap", "-- over/kustomization.yaml --\nconfigMapGenerator: [{name: q, envs: [e]}]\n-- over/e --\nA=b\nKustSecretValue4\n", kustomize.ErrPair, `configMapGenerator[0].envs[0]: e, line 2: `},
		{"a line of envs of settings of a ConfigMap", "-- over/kustomization.yaml --\ngenerators: [g.yaml]\n-- over/g.yaml --\napiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: q}\nenvs: [e]\n-- over/e --\nKustSecretValue4\n", kustomize.ErrPair, `over/g.yaml: envs[0]: e, line 1: `},
		{"a line of envs twice", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, envs: [e]}]\n-- over/e --\nKustSecretValue4=x\nKustSecretValue4=x\n", kustomize.ErrBuild, "over: kustomize: "},
		{"a value where the name of a file should be", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, files: [KustSecretValue4]}]\n", kustomize.ErrSecretFile, `over/kustomization.yaml: secretGenerator[0].files[0]: secret "q": there is no such file`},
		{"a pair where the name of a file should be", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, files: ['password=KustSecretValue4']}]\n", kustomize.ErrSecretFile, `secretGenerator[0].files[0]: secret "q"`},
		{"a value where the name of a file of pairs should be", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, envs: [KustSecretValue4]}]\n", kustomize.ErrSecretFile, `secretGenerator[0].envs[0]: secret "q": there is no such file`},
		{"one of settings", "-- over/kustomization.yaml --\ngenerators: [g.yaml]\n-- over/g.yaml --\napiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: q}\nfiles: [KustSecretValue4]\n", kustomize.ErrSecretFile, `over/g.yaml: files[0]: secret "q"`},
		{"a patch that fails over the value", "-- over/kustomization.yaml --\nsecretGenerator: [{name: q, literals: [a=KustSecretValue4]}]\npatches: [{target: {kind: Secret}, patch: '[{op: test, path: /data/a, value: KustSecretValue4}]'}]\n", kustomize.ErrBuild, "over: kustomize: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := build(t, tree(test.tree), "over")
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "KustSecret") || strings.Contains(err.Error(), "S3VzdFNlY3JldF") {
				t.Errorf("it repeats the value: %v", err)
			}
		})
	}
}

// boundBytes that a kustomization which is refused may make one allocate in all: unlike
// the time that takes it does not depend on what else the machine does.
const boundBytes = 512 << 20

// bombs are aliases of aliases.
func bombs() string {
	var b strings.Builder
	b.WriteString("metadata:\n  annotations:\n    a0: &b0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 8; i++ {
		fmt.Fprintf(&b, "    a%d: &b%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*b%d, ", i-1), 10), ", "))
	}
	return b.String()
}

func TestFoldersThatNameEachOtherTwiceDoNotGrowWithoutEnd(t *testing.T) {
	var list []files.File
	for i := range 40 {
		for _, side := range []string{"a", "b"} {
			next := fmt.Sprintf("resources: [../a%d, ../b%d]\nnamePrefix: %s-\n", i+1, i+1, side)
			list = append(list, files.File{Name: fmt.Sprintf("%s%d/kustomization.yaml", side, i), Data: []byte(next)})
		}
	}
	_, err := build(t, files.New(list, nil), "a0")
	if !errors.Is(err, kustomize.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// patched is a Deployment with a patch of its containers, with room for a schema. By the
// one in it lists of containers are replaced, and not merged by name.
const patched = `
-- over/kustomization.yaml --
resources: [d.yaml]
patches: [{path: p.yaml}]
OPENAPI
-- over/d.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}}
-- over/p.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {spec: {containers: [{name: a, image: z}]}}}
-- over/s.json --
{"definitions": {"v1.D": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}]}}}
`

// containers counts those that a build with such a line leaves.
func containers(openapi string) (int, error) {
	list, err := kustomize.Render(kustomize.Options{Tree: tree(strings.Replace(patched, "OPENAPI", openapi, 1)), Path: "over"})
	if err != nil {
		return 0, err
	}
	return bytes.Count(list[0].Data, []byte(`"image"`)), nil
}

func TestASchemaOfOneBuildIsNotThatOfAnother(t *testing.T) {
	tests := []struct {
		openapi string
		want    int
	}{{"", 2}, {"openapi: {path: s.json}", 1}}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			test := tests[i%2]
			if got, err := containers(test.openapi); err != nil || got != test.want {
				t.Errorf("%q leaves %d containers, want %d: %v", test.openapi, got, test.want, err)
			}
		})
	}
	group.Wait()
}

func TestGO02BasesThatWereNotFetchedAreNamed(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
	source := func(kustomization string) *files.Tree {
		return files.New([]files.File{
			{Name: "app/kustomization.yaml", Data: []byte(kustomization)}, {Name: "app/big.yaml", Data: []byte(pointer)},
		}, map[string]error{"vendor/lib": files.ErrSubmodule})
	}
	tests := []struct {
		name, kustomization string
		want                error
		text                string
	}{
		{"a base in a submodule", "resources: [../vendor/lib/base]\n", files.ErrSubmodule, `app/kustomization.yaml: resources: "../vendor/lib/base": vendor/lib: is a submodule`},
		{"a component that is a submodule", "components: [../vendor/lib]\n", files.ErrSubmodule, `app/kustomization.yaml: components: "../vendor/lib": vendor/lib: is a submodule`},
		{"a pointer of Git LFS as resource", "resources: [big.yaml]\n", files.ErrPointer, `app/kustomization.yaml: resources: "big.yaml": app/big.yaml: is a Git LFS pointer`},
		{"a pointer of Git LFS as data", "configMapGenerator: [{name: c, files: [big.yaml]}]\n", files.ErrPointer, `configMapGenerator[0].files: "big.yaml": app/big.yaml: is a Git LFS pointer`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := build(t, source(test.kustomization), "app")
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAPartOfASourceTellsAllThatItLacks(t *testing.T) {
	part := files.NewPart([]files.File{{Name: "over/kustomization.yaml", Data: []byte("resources: [../base, ../more]\ncomponents: [../tls]\npatches: [{path: ../p.yaml}]\n")}}, nil, []string{"over"})
	if _, err := build(t, part, "over"); !errors.Is(err, kustomize.ErrMissing) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"base", "more", "p.yaml", "tls"}, part.Missing()); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestWhatABuildReadsIsSeenAndNothingElse(t *testing.T) {
	source := tree("-- over/kustomization.yaml --\nresources: [../base]\n-- base/kustomization.yaml --\nresources: [cm.yaml]\n-- base/cm.yaml --\n" + config + "-- other/x.yaml --\n-- README.md --\n")
	if _, err := build(t, source, "over"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"base", "over"}, source.Seen()); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
}
