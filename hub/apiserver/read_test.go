// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

const tableType = "application/json;as=Table;v=v1;g=meta.k8s.io"

// table reads a list as kubectl does: the narrow header, the wide one, the rows.
func table(t *testing.T, s *apiservertest.Server, path string) (narrow, wide []string, rows [][]any) {
	t.Helper()
	a := raw(t, s, http.MethodGet, path, "", "Accept", tableType)
	if a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.body)
	}
	var got metav1.Table
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	for _, c := range got.ColumnDefinitions {
		if c.Priority == 0 {
			narrow = append(narrow, c.Name)
		} else {
			wide = append(wide, c.Name)
		}
	}
	for _, r := range got.Rows {
		rows = append(rows, r.Cells)
	}
	return narrow, wide, rows
}

func TestTablesShowWhatAPersonWantsToSee(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	create(t, c, newRelease("team", "web", "edge-1"), newCluster("team", "edge-1"), newGitRepository("team", "app"))
	in := s.Storage()
	digest := "sha256:" + strings.Repeat("ab", 32)
	commit := "main@sha1:" + strings.Repeat("cd", 20)
	ready := func(reason, message string, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}}
	}
	_, err := in.Releases.UpdateStatus(t.Context(), types.NamespacedName{Namespace: "team", Name: "web"}, "", func(r *corev1alpha1.Release) error {
		r.Status = corev1alpha1.ReleaseStatus{
			Conditions: ready("Degraded", "Deployment web:\n 1 of 2", metav1.ConditionFalse), SourceRevision: commit,
			RenderRef: digest, AppliedRef: digest, Sequence: 42, Objects: corev1alpha1.ObjectCounts{Total: 10, Applied: 9, Healthy: 8},
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expires := metav1.NewTime(time.Now().Add(23*time.Hour + time.Minute))
	_, err = in.Clusters.UpdateStatus(t.Context(), types.NamespacedName{Namespace: "team", Name: "edge-1"}, "", func(c *corev1alpha1.Cluster) error {
		c.Status = corev1alpha1.ClusterStatus{
			Conditions: ready("Connected", "since noon", metav1.ConditionTrue), KubernetesVersion: "v1.37.2", AgentVersion: "v0.1.0", ClusterUID: "uid",
			Agent: &corev1alpha1.ClusterAgentStatus{CertificateExpiresAt: &expires},
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = in.Inventories.Put(t.Context(), types.NamespacedName{Namespace: "team", Name: "web"}, func() *corev1alpha1.ReleaseInventory { return &corev1alpha1.ReleaseInventory{} }, func(i *corev1alpha1.ReleaseInventory) error {
		i.RenderRef, i.Sequence, i.Entries = digest, 42, make([]corev1alpha1.InventoryEntry, 3)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for path, want := range map[string]struct {
		narrow, wide []string
		row          []any
	}{
		corePath + "/namespaces/team/releases": {
			narrow: []string{"Name", "Cluster", "Ready", "Status", "Revision", "Age"},
			wide:   []string{"Render", "Applied", "Objects", "Healthy", "Sequence", "Message"},
			row:    []any{"web", "edge-1", "False", "Degraded", "main@sha1:cdcdcdcdcdcd", "AGE", "sha256:abababababab", "sha256:abababababab", "9/10", "8/10", float64(42), "Deployment web: 1 of 2"},
		},
		corePath + "/namespaces/team/clusters": {
			narrow: []string{"Name", "Ready", "Reason", "Version", "Agent", "Age"},
			wide:   []string{"Target-UID", "Certificate", "Message"},
			row:    []any{"edge-1", "True", "Connected", "v1.37.2", "v0.1.0", "AGE", "uid", "23h", "since noon"},
		},
		corePath + "/namespaces/team/releaseinventories": {
			narrow: []string{"Name", "Objects", "Render", "Age"},
			wide:   []string{"Sequence"},
			row:    []any{"web", float64(3), "sha256:abababababab", "AGE", float64(42)},
		},
		sourcePath + "/namespaces/team/gitrepositories": {
			narrow: []string{"Name", "URL", "Ready", "Revision", "Age"},
			wide:   []string{"Reason", "Message"},
			row:    []any{"app", "https://git.example/team/app.git", "Unknown", "", "AGE", "", ""},
		},
	} {
		t.Run(path, func(t *testing.T) {
			narrow, wide, rows := table(t, s, path)
			if diff := cmp.Diff(want.narrow, narrow); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.wide, wide); diff != "" {
				t.Errorf("wide columns (-want +got):\n%s", diff)
			}
			if len(rows) != 1 {
				t.Fatalf("%d rows, want 1", len(rows))
			}
			rows[0][len(want.narrow)-1] = "AGE"
			if diff := cmp.Diff(want.row, rows[0]); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReleasesAreSelectedByTheirCluster(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	create(t, c, newRelease("a", "one", "edge-1"), newRelease("a", "two", "edge-2"), newRelease("b", "three", "edge-1"))
	for name, options := range map[string][]client.ListOption{
		"read from etcd":            {client.MatchingFields{"spec.clusterRef.name": "edge-1"}},
		"read from the watch cache": {client.MatchingFields{"spec.clusterRef.name": "edge-1"}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			// The cache may be behind by a moment.
			var names []string
			for deadline := time.Now().Add(10 * time.Second); len(names) < 2 && time.Now().Before(deadline); {
				var list corev1alpha1.ReleaseList
				if err := c.List(t.Context(), &list, options...); err != nil {
					t.Fatal(err)
				}
				names = nil
				for _, r := range list.Items {
					names = append(names, r.Namespace+"/"+r.Name)
				}
			}
			slices.Sort(names)
			if diff := cmp.Diff([]string{"a/one", "b/three"}, names); diff != "" {
				t.Errorf("selected (-want +got):\n%s", diff)
			}
		})
	}
	a := raw(t, s, http.MethodGet, corePath+"/releases?fieldSelector=spec.source.name%3Dx", "")
	if a.code != http.StatusBadRequest || !strings.Contains(a.body, "spec.source.name") {
		t.Errorf("an unknown selector: %d %s", a.code, a.body)
	}
}

func TestDiscoveryTellsShortNamesCategoriesAndVerbs(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	d, err := discovery.NewDiscoveryClientForConfig(s.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	type resource struct {
		Short, Categories, Verbs string
	}
	got := map[string]resource{}
	for _, gv := range []string{corev1alpha1.SchemeGroupVersion.String(), sourcev1alpha1.SchemeGroupVersion.String(), extensionsv1alpha1.SchemeGroupVersion.String()} {
		list, err := d.ServerResourcesForGroupVersion(gv)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			got[r.Name] = resource{strings.Join(r.ShortNames, " "), strings.Join(r.Categories, " "), strings.Join(r.Verbs, " ")}
		}
	}
	all := "create delete deletecollection get list patch update watch"
	want := map[string]resource{
		"clusters":               {"cvc", "convoy", all},
		"clusters/status":        {"", "", "get patch update"},
		"clusters/join":          {"", "", "create"},
		"clusters/revoke":        {"", "", "create"},
		"clusters/confirm":       {"", "", "create"},
		"hubs":                   {"", "", "get list"},
		"hubs/backup":            {"", "", "create"},
		"hubs/restore":           {"", "", "create"},
		"releases":               {"rel", "convoy", all},
		"releases/status":        {"", "", "get patch update"},
		"releases/sync":          {"", "", "create"},
		"releases/confirm":       {"", "", "create"},
		"releases/preview":       {"", "", "create get"},
		"releases/lifecycle":     {"", "", "create get patch update"},
		"releases/health":        {"", "", "get"},
		"releases/diff":          {"", "", "create get"},
		"releases/history":       {"", "", "get"},
		"releaseinventories":     {"relinv", "", "delete deletecollection get list watch"},
		"gitrepositories":        {"cvgit", "convoy", all},
		"gitrepositories/status": {"", "", "get patch update"},
		"helmregistries":         {"cvhelm", "convoy", all},
		"helmregistries/status":  {"", "", "get patch update"},
		"ociregistries":          {"cvoci", "convoy", all},
		"ociregistries/status":   {"", "", "get patch update"},

		"healthrulesets":              {"hrs", "convoy", all},
		"healthrulesets/status":       {"", "", "get patch update"},
		"globalhealthrulesets":        {"ghrs", "convoy", all},
		"globalhealthrulesets/status": {"", "", "get patch update"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("discovery (-want +got):\n%s", diff)
	}
}

func TestOpenAPIDescribesEveryFieldUnderItsKind(t *testing.T) {
	t.Parallel()
	// kubectl explain reads this.
	s := apiservertest.Start(t)
	for path, wants := range map[string][]string{
		"/openapi/v3" + corePath:   {`"io.kumodo.convoy.core.v1alpha1.Release"`, `"x-kubernetes-group-version-kind":[{"group":"core.convoy.kumodo.io","kind":"Release","version":"v1alpha1"}]`, "clusterRef names the target Cluster. Immutable.", "/namespaces/{namespace}/releases/{name}/sync", "JoinRequest"},
		"/openapi/v3" + sourcePath: {`"io.kumodo.convoy.source.v1alpha1.GitRepository"`, "secretRef names a Secret with the credentials"},
		"/openapi/v3" + rulesPath:  {`"io.kumodo.convoy.extensions.v1alpha1.HealthRuleSet"`, "healthy: a CEL expression of type bool.", "/globalhealthrulesets/{name}/status"},
		"/openapi/v2":              {`"io.kumodo.convoy.core.v1alpha1.Cluster"`, `"io.kumodo.convoy.source.v1alpha1.GitRepository"`},
	} {
		a := raw(t, s, http.MethodGet, path, "")
		if a.code != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.code, a.body)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s does not contain %s", path, want)
			}
		}
		if strings.Contains(a.body, "__internal") {
			t.Errorf("%s names internal versions", path)
		}
		if strings.Contains(a.body, "kumodo.io/convoy/api") || strings.Contains(a.body, "io.convoy.api") {
			t.Errorf("%s names Go import paths instead of models", path)
		}
	}
}

func TestARequestForProtobufGetsJSON(t *testing.T) {
	t.Parallel()
	// The host's namespace controller asks so; an error here would keep every
	// namespace of the host from being deleted.
	s := apiservertest.Start(t)
	const both = "application/vnd.kubernetes.protobuf,application/json"
	for name, c := range map[string]struct{ method, path string }{
		"list":              {http.MethodGet, corePath + "/namespaces/empty/releases"},
		"delete collection": {http.MethodDelete, corePath + "/namespaces/empty/releases"},
		"an error":          {http.MethodGet, corePath + "/namespaces/empty/releases/none"},
	} {
		t.Run(name, func(t *testing.T) {
			a := raw(t, s, c.method, c.path, "", "Accept", both)
			if got := a.header.Get("Content-Type"); got != "application/json" {
				t.Errorf("answered in %q", got)
			}
			if a.code >= http.StatusInternalServerError {
				t.Errorf("%d %s", a.code, a.body)
			}
		})
	}
	if a := raw(t, s, http.MethodGet, corePath+"/releases", "", "Accept", "application/vnd.kubernetes.protobuf"); a.code != http.StatusNotAcceptable {
		t.Errorf("protobuf alone: %d, want %d", a.code, http.StatusNotAcceptable)
	}
	if a := raw(t, s, http.MethodGet, corePath+"/releases", "", "Accept", "application/cbor"); a.code != http.StatusNotAcceptable {
		t.Errorf("CBOR: %d, want %d", a.code, http.StatusNotAcceptable)
	}
}
