// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster describes the cluster that a Runner works on.
type Cluster struct {
	// KubernetesVersion as the server says it: v1.37.2.
	KubernetesVersion string
	// APIVersions served, sorted.
	APIVersions []string
	// UID of the namespace kube-system: the identity of the cluster.
	UID string
}

// Describe asks the cluster what it is. A group whose server is away is listed too.
func (rn *Runner) Describe(ctx context.Context) (Cluster, error) {
	var c Cluster
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := rn.ask(ctx, "/version", &version); err != nil {
		return c, err
	}
	var kubeSystem struct {
		Metadata meta `json:"metadata"`
	}
	if err := rn.ask(ctx, "/api/v1/namespaces/kube-system", &kubeSystem); err != nil {
		return c, err
	}
	var groups metav1.APIGroupList
	if err := rn.ask(ctx, "/apis", &groups); err != nil {
		return c, err
	}
	c.KubernetesVersion, c.UID = version.GitVersion, kubeSystem.Metadata.UID
	c.APIVersions = append(c.APIVersions, "v1")
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			c.APIVersions = append(c.APIVersions, v.GroupVersion)
		}
	}
	slices.Sort(c.APIVersions)
	return c, nil
}

func (rn *Runner) ask(ctx context.Context, path string, out any) error {
	body, _, err := rn.target.call(ctx, request{verb: "discover", method: http.MethodGet, path: path})
	if err != nil {
		return fmt.Errorf("ask the cluster for %s: %w", path, err)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}
