// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
)

// GitCA is the Secret that the GitRepositories of Source trust.
const GitCA = "git-ca"

// Source makes, in a namespace of the hub, a GitRepository that leads to a
// repository of the Git server, with the Secret that it needs.
func (h *Hub) Source(ctx context.Context, server *gitserver.Server, namespace, name string, interval metav1.Duration) error {
	secret := map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": GitCA, "namespace": namespace},
		"stringData": map[string]any{"ca.crt": string(server.CA())},
	}
	repository := &sourcev1alpha1.GitRepository{
		TypeMeta:   metav1.TypeMeta{APIVersion: sourcev1alpha1.SchemeGroupVersion.String(), Kind: "GitRepository"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: sourcev1alpha1.GitRepositorySpec{
			URL: server.URL(name), Interval: &interval,
			CASecretRef: &sourcev1alpha1.SecretReference{Name: GitCA},
		},
	}
	return h.ApplyObjects(ctx, secret, repository)
}

// Release builds a Release of a folder of a GitRepository for a Cluster.
func Release(namespace, name, cluster, repository, path string, mods ...func(*corev1alpha1.Release)) *corev1alpha1.Release {
	r := &corev1alpha1.Release{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1alpha1.SchemeGroupVersion.String(), Kind: "Release"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1alpha1.ReleaseSpec{
			ClusterRef: corev1alpha1.ClusterReference{Name: cluster},
			Source:     corev1alpha1.SourceReference{Kind: corev1alpha1.SourceKindGitRepository, Name: repository},
			Content:    corev1alpha1.ReleaseContent{Path: path},
		},
	}
	for _, mod := range mods {
		mod(r)
	}
	return r
}

// Create makes many Releases at once, as a controller would that knows no rate
// limit of its own.
func (h *Hub) Create(ctx context.Context, releases ...*corev1alpha1.Release) error {
	config := h.Plane.RESTConfig()
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, release := range releases {
		group.Go(func() error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(release)
			if err != nil {
				return fmt.Errorf("create %s: %w", release.Name, err)
			}
			delete(content, "status")
			_, err = client.Resource(Releases).Namespace(release.Namespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("create %s: %w", release.Name, err)
			}
			return nil
		})
	}
	return group.Wait() //nolint:wrapcheck // wrapped above
}

// ApplyObjects gives objects to kubectl apply on the hub's host. Status and
// empty fields that an unset value leaves behind are left out.
func (h *Hub) ApplyObjects(ctx context.Context, objects ...any) error {
	var input strings.Builder
	for _, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if m, ok := object.(map[string]any); ok {
			content, err = m, nil
		}
		if err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		delete(content, "status")
		if meta, ok := content["metadata"].(map[string]any); ok {
			delete(meta, "creationTimestamp")
		}
		raw, err := json.Marshal(content)
		if err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		input.Write(raw)
		input.WriteString("\n")
	}
	if _, err := h.Plane.KubectlInput(ctx, input.String(), "apply", "-f", "-"); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	return nil
}
