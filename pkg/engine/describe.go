// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
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
	return whatIs(ctx, rn.target)
}

// Describe asks a cluster what it is, without a Runner.
func Describe(ctx context.Context, config *rest.Config) (Cluster, error) {
	t, err := newTarget(config, clock.RealClock{}, newMetrics(nil))
	if err != nil {
		return Cluster{}, err
	}
	return whatIs(ctx, t)
}

func whatIs(ctx context.Context, t *target) (Cluster, error) {
	var c Cluster
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := ask(ctx, t, "/version", &version); err != nil {
		return c, err
	}
	var kubeSystem struct {
		Metadata meta `json:"metadata"`
	}
	if err := ask(ctx, t, "/api/v1/namespaces/kube-system", &kubeSystem); err != nil {
		return c, err
	}
	var groups metav1.APIGroupList
	if err := ask(ctx, t, "/apis", &groups); err != nil {
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

func ask(ctx context.Context, t *target, path string, out any) error {
	body, _, err := t.call(ctx, request{verb: "discover", method: http.MethodGet, path: path})
	if err != nil {
		return fmt.Errorf("ask the cluster for %s: %w", path, err)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}
