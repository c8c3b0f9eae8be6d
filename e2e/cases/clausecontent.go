// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/install"
)

// replaced gives a Release other files and other content, and waits for what comes of it.
func (p *Player) replaced(ctx context.Context, r *release, files map[string]string, content corev1alpha1.ReleaseContent) (string, error) {
	if err := p.commit(ctx, r, "an event", files, r.links); err != nil {
		return "", err
	}
	r.files, r.content, r.path = files, content, content.Path
	if err := p.publish(ctx, r); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d files committed as %.10s, Release path %s", len(files), r.commit, r.path), p.settle(ctx, r)
}

const (
	valuesFile = contentFolder + "/values.yaml"
	otherFile  = "numbers.yaml"
)

func (p *Player) valuesElsewhere(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	files, _, err := p.c.files(r.step)
	if err != nil {
		return "", err
	}
	files = maps.Clone(files)
	content := corev1alpha1.ReleaseContent{Path: r.path, Helm: &corev1alpha1.HelmContent{}}
	if strings.HasPrefix(m[1], "inline") {
		raw, err := yaml.YAMLToJSON([]byte(files[valuesFile]))
		if err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrCase, valuesFile, err)
		}
		content.Helm.Values = &runtime.RawExtension{Raw: raw}
	} else {
		files[contentFolder+"/"+otherFile] = files[valuesFile]
		content.Helm.ValuesFiles = []string{otherFile}
	}
	files[valuesFile] = ""
	return p.replaced(ctx, r, files, content)
}

func (p *Player) pathBecomes(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	return p.replaced(ctx, r, r.files, corev1alpha1.ReleaseContent{Path: m[1]})
}

func (p *Player) chartBecomes(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	return p.replaced(ctx, r, r.files, corev1alpha1.ReleaseContent{Path: m[1], Helm: &corev1alpha1.HelmContent{}})
}

func (p *Player) kustomizationIncludes(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	files := maps.Clone(r.files)
	files["over/kustomization.yaml"] = "{resources: [../" + m[1] + "]}\n"
	return p.replaced(ctx, r, files, corev1alpha1.ReleaseContent{Path: "over", Kustomize: &corev1alpha1.KustomizeContent{}})
}

var (
	literals = regexp.MustCompile(`literals: \[[^\]]*\]`)
	image    = regexp.MustCompile(`\bimage: \S+`)
)

// noSuchImage in an image's name: nobody can pull it. The nodes here run whatever they
// are given, so the API server refuses pods of it, and the rollout cannot end either.
const noSuchImage = "does-not-exist"

func (p *Player) literalsAndImage(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	files := map[string]string{}
	for path, text := range r.files {
		if strings.Contains(m[1], "=") {
			text = literals.ReplaceAllLiteralString(text, "literals: ["+m[1]+"]")
		}
		files[path] = image.ReplaceAllLiteralString(text, "image: "+m[2])
	}
	also := ""
	if strings.Contains(m[2], noSuchImage) {
		for _, t := range p.targets {
			if err := refusePods(ctx, t, p.c.Namespace()); err != nil {
				return "", err
			}
		}
		also = "; the cluster refuses pods of that image, since its nodes would run it"
	}
	did, err := p.replaced(ctx, r, files, r.content)
	return did + also, err
}

// refusePods has the cluster refuse pods of an image that does not exist, and returns
// when it does.
func refusePods(ctx context.Context, t *target, namespace string) error {
	name := "no-such-image-" + namespace
	policy := fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  matchConditions: [{name: here, expression: "object.metadata.namespace == '%[2]s'"}]
  validations: [{expression: "object.spec.containers.all(c, !c.image.contains('%[3]s'))", message: "there is no such image"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, name, namespace, noSuchImage)
	if _, err := t.cube.plane.KubectlInput(ctx, policy, "apply", "-f", "-"); err != nil {
		return err //nolint:wrapcheck // says all
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the cluster does not refuse pods of %s", noSuchImage))
	defer cancel()
	for {
		_, err := t.cube.plane.Kubectl(ctx, "-n", namespace, "run", "probe", "--image="+noSuchImage, "--restart=Never", "--dry-run=server")
		if err != nil && strings.Contains(err.Error(), "there is no such image") {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollPause):
		}
	}
}

// hardText is a value that breaks out of a text that is put together without care.
const hardText = "a\"b - c: \nx"

func (p *Player) patched(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	r.mutations = []corev1alpha1.Mutation{
		{Name: "site", Type: corev1alpha1.MutationGoTemplate, Inline: []string{"metadata:\n  labels:\n    " + m[1] + ": {{ .cluster.name }}\n"}},
	}
	if m[2] == "" {
		return "mutation site", p.mutated(ctx, r)
	}
	r.mutations = append(r.mutations, corev1alpha1.Mutation{
		Name: "note", Type: corev1alpha1.MutationGoTemplate, Inline: []string{"metadata:\n  annotations:\n    note: {{ .cluster.note }}\n"},
	})
	for _, t := range p.targets {
		if err := p.described(ctx, t, "note", hardText); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("mutations site and note; the annotation is called note and is to be %q", hardText), p.mutated(ctx, r)
}

func (p *Player) patchUnknown(ctx context.Context, _ []string) (string, error) {
	r := p.releases[0]
	if len(r.mutations) == 0 {
		return "nothing: there is no patch", nil
	}
	r.mutations[0].Inline = []string{"metadata:\n  labels:\n    site: {{ .cluster.unheardOf }}\n"}
	return "mutation site names unheardOf", p.mutated(ctx, r)
}

// described puts a key into the metadata of a Cluster.
func (p *Player) described(ctx context.Context, t *target, key, value string) error {
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"metadata": map[string]string{key: value}}})
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	_, err = p.world.Hub.Plane.Dynamic().Resource(install.Clusters).Namespace(t.namespace).Patch(ctx, t.cluster, types.MergePatchType, raw, metav1.PatchOptions{})
	return err //nolint:wrapcheck // names the Cluster
}

// mutated gives a Release its mutations.
func (p *Player) mutated(ctx context.Context, r *release) error {
	raw, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/mutations", "value": r.mutations}})
	if err != nil {
		return fmt.Errorf("mutations: %w", err)
	}
	for _, t := range p.targets {
		client := p.world.Hub.Plane.Dynamic().Resource(install.Releases).Namespace(t.namespace)
		if _, err := client.Patch(ctx, r.name, types.JSONPatchType, raw, metav1.PatchOptions{}); err != nil {
			return err //nolint:wrapcheck // names the Release
		}
	}
	return p.follow(ctx, r)
}
