// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// contents of the fleet's repository: a ConfigMap, and a render of 1 MiB of random
// data in base64, which is as good as not compressed.
func contents() (map[string]string, error) {
	files := map[string]string{"small/0.yaml": manifest("small")}
	for i := range 4 {
		raw := make([]byte, 192<<10)
		if _, err := rand.Read(raw); err != nil {
			return nil, err
		}
		files[fmt.Sprintf("large/%d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large-%d, namespace: %s}\ndata: {value: %q}\n",
			i, namespace, base64.StdEncoding.EncodeToString(raw))
	}
	return files, nil
}

// source makes the GitRepository, once.
func (f *fleet) source(ctx context.Context) error {
	if f.released > 0 {
		return nil
	}
	repository, err := f.git.Repository(ctx, fleetNamespace)
	if err != nil {
		return err
	}
	files, err := contents()
	if err != nil {
		return err
	}
	if _, err := repository.Commit(ctx, "content", files); err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": sourcev1alpha1.SchemeGroupVersion.String(), "kind": "GitRepository", "metadata": map[string]any{"name": fleetNamespace},
		"spec": map[string]any{"url": f.git.URL(fleetNamespace), "interval": "1h", "caSecretRef": map[string]any{"name": install.GitCA}},
	}}
	if _, err := f.api.Resource(install.GitRepositories).Namespace(fleetNamespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = harness.WaitFor(ctx, f.api, install.GitRepositories, fleetNamespace, fleetNamespace, harness.HasCondition("Ready", "True", ""))
	return err
}

// release makes Releases of a folder, the next Cluster's turn each time, and waits
// until their agents have settled and the hub has taken their reports.
func (f *fleet) release(ctx context.Context, folder string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	if err := f.source(ctx); err != nil {
		return err
	}
	releases := f.api.Resource(install.Releases).Namespace(fleetNamespace)
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := f.released; i < f.released+n; i++ {
		group.Go(func() error {
			_, err := releases.Create(making, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": corev1alpha1.SchemeGroupVersion.String(), "kind": "Release",
				"metadata": map[string]any{"name": fmt.Sprintf("r-%05d", i)},
				"spec": map[string]any{
					"clusterRef": map[string]any{"name": clusterName(i % f.opts.agents)},
					"source":     map[string]any{"kind": corev1alpha1.SourceKindGitRepository, "name": fleetNamespace},
					"content":    map[string]any{"path": folder},
				},
			}}, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	f.released += n
	d, err := f.until(ctx, "settle", func(d done) bool { return d.Acknowledged >= int64(f.released) })
	if err == nil && d.FetchFailed > 0 {
		return fmt.Errorf("%d renders were not fetched", d.FetchFailed)
	}
	return err
}

// ready counts the Releases that are.
func (f *fleet) ready(ctx context.Context) (int, error) {
	n, more := 0, ""
	for {
		page, err := f.api.Resource(install.Releases).Namespace(fleetNamespace).List(ctx, metav1.ListOptions{Limit: 2000, Continue: more})
		if err != nil {
			return n, err
		}
		for i := range page.Items {
			if isReady(&page.Items[i]) {
				n++
			}
		}
		if more = page.GetContinue(); more == "" {
			return n, nil
		}
	}
}
