// SPDX-License-Identifier: Apache-2.0

package convoy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

func TestEveryDirectDependencyHasItsReason(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go mod edit -json: %v", err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatalf("reading go.mod: %v", err)
	}
	var required []string
	for _, one := range file.Require {
		if !one.Indirect {
			required = append(required, one.Path)
		}
	}
	row := regexp.MustCompile("(?m)^\\| `([a-zA-Z0-9._/-]+)` \\| [^|]+ \\| ([^|]*) \\|$")
	var explained []string
	for _, found := range row.FindAllStringSubmatch(read(t, "docs/dependencies.md"), -1) {
		explained = append(explained, found[1])
		if len(found[2]) < 8 {
			t.Errorf("docs/dependencies.md: %s has no reason", found[1])
		}
	}
	slices.Sort(required)
	slices.Sort(explained)
	if diff := cmp.Diff(required, explained); diff != "" {
		t.Errorf("direct dependencies (-go.mod +docs/dependencies.md):\n%s", diff)
	}
}

// A block is a fenced example of a page.
type block struct {
	file, language, text string
	line                 int
}

func pages(t *testing.T) []string {
	t.Helper()
	return files(t, func(file string) bool { return strings.HasSuffix(file, ".md") })
}

func blocks(t *testing.T) []block {
	t.Helper()
	var found []block
	for _, file := range pages(t) {
		var open *block
		for number, line := range strings.Split(read(t, file), "\n") {
			fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
			switch {
			case isFence && open == nil:
				open = &block{file: file, language: fence, line: number + 1}
			case isFence:
				found = append(found, *open)
				open = nil
			case open != nil:
				open.text += line + "\n"
			}
		}
		if open != nil {
			t.Errorf("%s:%d: this example never ends", file, open.line)
		}
	}
	return found
}

func TestExamplesInThePagesParse(t *testing.T) {
	t.Parallel()
	known := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(known))
	utilruntime.Must(corev1alpha1.AddToScheme(known))
	utilruntime.Must(sourcev1alpha1.AddToScheme(known))
	strict := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	for _, one := range blocks(t) {
		switch one.language {
		case "sh", "bash":
			command := exec.CommandContext(t.Context(), "bash", "-n")
			command.Stdin = strings.NewReader(one.text)
			var problems bytes.Buffer
			command.Stderr = &problems
			if err := command.Run(); err != nil {
				t.Errorf("%s:%d: %v: %s", one.file, one.line, err, problems.String())
			}
		case "yaml":
			for part := range strings.SplitSeq(one.text, "\n---\n") {
				var content map[string]any
				if err := yaml.UnmarshalStrict([]byte(part), &content); err != nil {
					t.Errorf("%s:%d: %v", one.file, one.line, err)
					continue
				}
				// Whole objects of kinds that we know; a fragment is only YAML.
				if _, _, err := strict.Decode([]byte(part), nil, nil); err != nil && content["kind"] != nil && !runtime.IsNotRegisteredError(err) {
					t.Errorf("%s:%d: %v", one.file, one.line, err)
				}
			}
		case "", "text", "console", "json", "go", "mermaid", "promql":
		default:
			t.Errorf("%s:%d: examples are sh, yaml, json, go, console or text, not %q", one.file, one.line, one.language)
		}
	}
}

func TestLinksInThePagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, file := range pages(t) {
		for _, found := range link.FindAllStringSubmatch(read(t, file), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			if _, err := os.Stat(path.Join(path.Dir(file), found[1])); err != nil {
				t.Errorf("%s: link to %s: %v", file, found[1], err)
			}
		}
	}
}

func TestMakeTargetsNamedInThePagesExist(t *testing.T) {
	t.Parallel()
	target := regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	known := map[string]bool{}
	for _, found := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		known[found[1]] = true
	}
	named := regexp.MustCompile("`make ([a-z][a-z0-9-]*)|(?m:^make ([a-z][a-z0-9-]*))")
	for _, file := range pages(t) {
		for _, found := range named.FindAllStringSubmatch(read(t, file), -1) {
			if name := found[1] + found[2]; !known[name] {
				t.Errorf("%s: make %s does not exist", file, name)
			}
		}
	}
}

// Commands of the examples that a reader copies: the files that they name are there,
// and the plugin has the verbs.
func TestWhatTheExamplesNameIsThere(t *testing.T) {
	t.Parallel()
	verbs := map[string]bool{}
	use := regexp.MustCompile(`(?m)^\s+Use:\s+"([a-z]+)`)
	for _, file := range files(t, func(file string) bool { return path.Dir(file) == "kubectl-convoy" && strings.HasSuffix(file, ".go") }) {
		for _, found := range use.FindAllStringSubmatch(read(t, file), -1) {
			verbs[found[1]] = true
		}
	}
	ours := regexp.MustCompile(`(?:^|[\s=])((?:manifests|charts|docs|hack)/[\w./-]+|Dockerfile\.\w+)`)
	plugin := regexp.MustCompile(`kubectl(?: -n \S+| --context \S+)* convoy ([a-z]+)`)
	seen := 0
	for _, one := range blocks(t) {
		if one.language != "sh" && one.language != "bash" {
			continue
		}
		for _, found := range ours.FindAllStringSubmatch(one.text, -1) {
			seen++
			if _, err := os.Stat(found[1]); err != nil {
				t.Errorf("%s:%d: %v", one.file, one.line, err)
			}
		}
		for _, found := range plugin.FindAllStringSubmatch(one.text, -1) {
			seen++
			if !verbs[found[1]] {
				t.Errorf("%s:%d: the plugin has no verb %s", one.file, one.line, found[1])
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d files and verbs found: the expressions do not fit the pages any more", seen)
	}
}

func TestCIRunsTheTestCommandOfTheREADME(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"README.md", "CONTRIBUTING.md", ".ci/run"} {
		if !regexp.MustCompile(`(?m)^(stage test |  stage test )?make test( |$)`).MatchString(read(t, file)) {
			t.Errorf("%s does not run make test", file)
		}
	}
}

// foreign are flags of other programs that the pages and manifests speak of.
var foreign = []string{
	"--context", "--for", "--timeout", "--namespace", "--kubeconfig", "--server-side", "--from-literal", "--from-file",
	"--create-namespace", "--field-selector", "--all", "--watch", "--replicas", "--type", "--patch", "--subresource",
	"--encryption-provider-config", "--show-managed-fields", "--force-conflicts", "--tail", "--raw", "--dry-run", "--grace-period",
	"--selector", "--sort-by", "--output", "--http-version",
	"--kube-context", "--set", "--build-arg", "--ignore-not-found",
}

// library are flags that the hub has from the API server library.
var library = []string{"--secure-port", "--bind-address", "--client-ca-file"}

func TestFlagsNamedInThePagesExist(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	for _, file := range files(t, func(file string) bool { return goFile(file) && !strings.HasSuffix(file, "_test.go") }) {
		sources.WriteString(read(t, file))
	}
	flag := regexp.MustCompile("(^|[\\s`(\\[=])(--[a-z][a-z0-9-]+)")
	texts := append(pages(t), "manifests/hub/40-deployment.yaml", "manifests/agent/platform.yaml", "manifests/agent/shared.yaml",
		"manifests/hub/overlays/external-etcd/deployment.yaml", "charts/convoy-hub/templates/40-deployment.yaml", "charts/convoy-agent/templates/agent.yaml")
	for _, file := range texts {
		for _, found := range flag.FindAllStringSubmatch(read(t, file), -1) {
			name := found[2]
			if slices.Contains(foreign, name) || strings.Contains(sources.String(), `"`+strings.TrimPrefix(name, "--")+`"`) {
				continue
			}
			// Flags of the API server library are not in our source.
			if slices.Contains(library, name) || strings.HasPrefix(name, "--etcd-") || strings.HasPrefix(name, "--audit-") || strings.HasPrefix(name, "--watch-cache") {
				continue
			}
			t.Errorf("%s: no program of ours has the flag %s", file, name)
		}
	}
}
