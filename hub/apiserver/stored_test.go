// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

func TestObjectsLieInEtcdAsCompressedJSONUnderOurPrefix(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	create(t, newClient(t, s), newRelease("team", "web", "edge"), newCluster("team", "edge"), newGitRepository("team", "app"))

	all, err := s.EtcdClient().Get(t.Context(), "", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, kv := range all.Kvs {
		key := string(kv.Key)
		if key == "compact_rev_key" || key == apiserver.EtcdPrefix+"/format" {
			continue // the library's own, and the number of our format
		}
		keys = append(keys, key)
		if !bytes.HasPrefix(kv.Value, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			t.Errorf("%s is no zstd frame: %.20q", key, kv.Value)
			continue
		}
		dec, err := zstd.NewReader(bytes.NewReader(kv.Value))
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.NewDecoder(dec).Decode(&object); err != nil {
			t.Errorf("%s is no JSON: %v", key, err)
		}
		dec.Close()
		if v := object["apiVersion"]; v != "core.convoy.kumodo.io/v1alpha1" && v != "source.convoy.kumodo.io/v1alpha1" {
			t.Errorf("%s is stored as %v", key, v)
		}
	}
	slices.Sort(keys)
	want := []string{
		"/registry/convoy.kumodo.io/core.convoy.kumodo.io/clusters/team/edge",
		"/registry/convoy.kumodo.io/core.convoy.kumodo.io/releases/team/web",
		"/registry/convoy.kumodo.io/source.convoy.kumodo.io/gitrepositories/team/app",
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestAnObjectStoredUncompressedIsReadAndCompressedByItsNextWrite(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	const key = apiserver.EtcdPrefix + "/core.convoy.kumodo.io/releases/team/old"
	plain := `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"Release","metadata":{"name":"old","namespace":"team","uid":"u","generation":1},"spec":{"clusterRef":{"name":"edge"},"source":{"kind":"GitRepository","name":"app"}}}`
	if _, err := s.EtcdClient().Put(t.Context(), key, plain); err != nil {
		t.Fatal(err)
	}
	name := types.NamespacedName{Namespace: "team", Name: "old"}
	// A write that changes nothing: it happens because what lies there is stale.
	_, err := s.Storage().Releases.UpdateStatus(t.Context(), name, "u", func(*corev1alpha1.Release) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.EtcdClient().Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || !bytes.HasPrefix(got.Kvs[0].Value, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		t.Errorf("still uncompressed: %.40q", got.Kvs[0].Value)
	}
}

func TestAHubRefusesWhatANewerHubWrote(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	if _, err := s.EtcdClient().Put(t.Context(), apiserver.EtcdPrefix+"/format", "2"); err != nil {
		t.Fatal(err)
	}
	o := apiserver.NewOptions()
	o.Standalone = true
	o.Etcd.StorageConfig.Transport.ServerList = []string{s.Etcd.Endpoint()}
	_, err := apiserver.New(t.Context(), apiserver.Config{Options: o, Serving: s.Keyring.ServingCA, HubCA: s.Keyring.HubCA.PEM})
	if !errors.Is(err, apiserver.ErrFormat) {
		t.Errorf("got %v, want %v", err, apiserver.ErrFormat)
	}
}

func TestTheAPIServicesAreTheGroupsServedAndNoOthers(t *testing.T) {
	t.Parallel()
	want := []string{"v1alpha1.core.convoy.kumodo.io", "v1alpha1.source.convoy.kumodo.io", "v1alpha1.extensions.convoy.kumodo.io"}
	if diff := cmp.Diff(want, apiserver.APIServiceNames()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	s := apiservertest.Start(t)
	var groups struct {
		Groups []struct {
			Versions []struct{ GroupVersion string }
		}
	}
	a := raw(t, s, http.MethodGet, "/apis", "", "Accept", "application/json")
	if err := json.Unmarshal([]byte(a.body), &groups); err != nil {
		t.Fatal(err)
	}
	var served []string
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			group, version, _ := strings.Cut(v.GroupVersion, "/")
			served = append(served, version+"."+group)
		}
	}
	slices.Sort(served)
	slices.Sort(want)
	if diff := cmp.Diff(want, served); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

func TestAThousandReleasesGoWithOneRequest(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	const count = 1000
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(16)
	for i := range count {
		g.Go(func() error {
			_, err := s.Storage().Releases.Create(ctx, newRelease("big", "r-"+strings.Repeat("x", 1+i%3)+"-"+itoa(i), "edge"))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := c.DeleteAllOf(t.Context(), &corev1alpha1.Release{}, client.InNamespace("big")); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d Releases marked as deleted in %s", count, time.Since(began))

	var list corev1alpha1.ReleaseList
	if err := c.List(t.Context(), &list, client.InNamespace("big")); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != count {
		t.Fatalf("%d Releases left, want all %d: their finalizers hold them", len(list.Items), count)
	}
	g, ctx = errgroup.WithContext(t.Context())
	g.SetLimit(16)
	for _, r := range list.Items {
		if r.DeletionTimestamp == nil {
			t.Fatalf("%s is not marked as deleted", r.Name)
		}
		g.Go(func() error {
			return s.Storage().Releases.RemoveFinalizer(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, r.UID, corev1alpha1.FinalizerRelease)
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &list, client.InNamespace("big")); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 0 {
		t.Errorf("%d Releases left", len(list.Items))
	}
}

func TestInventoriesCanBeReadAndDeletedButNotWrittenByUsers(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	name := types.NamespacedName{Namespace: "team", Name: "web"}
	_, err := s.Storage().Inventories.Put(t.Context(), name, func() *corev1alpha1.ReleaseInventory { return &corev1alpha1.ReleaseInventory{} }, func(i *corev1alpha1.ReleaseInventory) error {
		i.Sequence++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	path := corePath + "/namespaces/team/releaseinventories"
	body := `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"ReleaseInventory","metadata":{"name":"web"}}`
	for _, c := range []struct {
		method, path, body string
		code               int
	}{
		{http.MethodGet, path + "/web", "", http.StatusOK},
		{http.MethodPost, path, body, http.StatusMethodNotAllowed},
		{http.MethodPut, path + "/web", body, http.StatusMethodNotAllowed},
		{http.MethodPatch, path + "/web", body, http.StatusMethodNotAllowed},
		{http.MethodDelete, path + "/web", "", http.StatusOK},
		{http.MethodGet, path + "/web", "", http.StatusNotFound},
		{http.MethodDelete, path, "", http.StatusOK},
	} {
		if a := raw(t, s, c.method, c.path, c.body); a.code != c.code {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, a.code, c.code, a.body)
		}
	}
}

func TestProbesNeedNoCertificate(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		w := newRecorder()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		s.Probes().ServeHTTP(w, request)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
