// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
	"kumodo.io/convoy/hub/apiserver/resource"
)

var web = types.NamespacedName{Namespace: "team", Name: "web"}

func newRelease(name, cluster string) *v1alpha1.Release {
	return &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec: v1alpha1.ReleaseSpec{
			ClusterRef: v1alpha1.ClusterReference{Name: cluster},
			Source:     v1alpha1.SourceReference{Kind: v1alpha1.SourceKindGitRepository, Name: "app"},
		},
	}
}

func mustCreate(t testing.TB, s *apiservertest.Server, r *v1alpha1.Release) *v1alpha1.Release {
	t.Helper()
	out, err := s.Storage().Releases.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOfManyWritersNoneLosesItsChange(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	created := mustCreate(t, s, newRelease("web", "edge"))
	const writers, each = 8, 10
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range each {
				_, err := s.Storage().Releases.UpdateStatus(t.Context(), web, created.UID, func(r *v1alpha1.Release) error {
					r.Status.Sequence++
					return nil
				})
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	got, err := s.Storage().Releases.Get(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status.Sequence != writers*each {
		t.Errorf("sequence %d, want %d", got.Status.Sequence, writers*each)
	}
	if len(got.ManagedFields) > 0 {
		t.Error("writes in process left managed fields")
	}
}

func TestAWriteOfNothingWritesNothing(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	created := mustCreate(t, s, newRelease("web", "edge"))
	got, err := s.Storage().Releases.UpdateStatus(t.Context(), web, "", func(*v1alpha1.Release) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if got.ResourceVersion != created.ResourceVersion {
		t.Errorf("version went from %s to %s", created.ResourceVersion, got.ResourceVersion)
	}
}

func TestAnObjectMadeAnewUnderTheNameIsNotTheOneMeant(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	in := s.Storage().Releases
	mustCreate(t, s, newRelease("web", "edge"))
	old := types.UID("another")
	for name, err := range map[string]error{
		"status":    second(in.UpdateStatus(t.Context(), web, old, func(*v1alpha1.Release) error { return nil })),
		"update":    second(in.Update(t.Context(), web, old, func(*v1alpha1.Release) error { return nil })),
		"delete":    in.Delete(t.Context(), web, old),
		"finalizer": in.RemoveFinalizer(t.Context(), web, old, v1alpha1.FinalizerRelease),
	} {
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

var errStop = errors.New("stop")

func TestAnErrorOfTheChangeEndsItAndComesBack(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	mustCreate(t, s, newRelease("web", "edge"))
	_, err := s.Storage().Releases.UpdateStatus(t.Context(), web, "", func(*v1alpha1.Release) error { return errStop })
	if !errors.Is(err, errStop) {
		t.Errorf("got %v, want %v", err, errStop)
	}
	_, err = s.Storage().Releases.UpdateStatus(t.Context(), types.NamespacedName{Namespace: "team", Name: "none"}, "", func(*v1alpha1.Release) error { return nil })
	if !apierrors.IsNotFound(err) {
		t.Errorf("an object that is not there: %v, want NotFound", err)
	}
	_, err = s.Storage().Inventories.UpdateStatus(t.Context(), web, "", func(*v1alpha1.ReleaseInventory) error { return nil })
	if !errors.Is(err, resource.ErrNoStatus) {
		t.Errorf("a kind without a status: %v, want %v", err, resource.ErrNoStatus)
	}
}

func TestTheStatusStaysOfConstantSize(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	mustCreate(t, s, newRelease("web", "edge"))
	_, err := s.Storage().Releases.UpdateStatus(t.Context(), web, "", func(r *v1alpha1.Release) error {
		r.Status.Exceptions = make([]v1alpha1.ObjectException, 65)
		return nil
	})
	if !apierrors.IsInvalid(err) {
		t.Errorf("65 exceptions: %v, want Invalid", err)
	}
}

func TestPutCreatesAndChanges(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	in := s.Storage().Inventories
	create := func() *v1alpha1.ReleaseInventory { return &v1alpha1.ReleaseInventory{} }
	for want := int64(1); want <= 2; want++ {
		got, err := in.Put(t.Context(), web, create, func(i *v1alpha1.ReleaseInventory) error {
			i.Sequence++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.Sequence != want {
			t.Errorf("sequence %d, want %d", got.Sequence, want)
		}
	}
}

func TestAnInventoryOfTenThousandObjectsFits(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	in := s.Storage().Inventories
	fill := func(n int) func(*v1alpha1.ReleaseInventory) error {
		return func(i *v1alpha1.ReleaseInventory) error {
			i.Entries = make([]v1alpha1.InventoryEntry, n)
			for j := range i.Entries {
				i.Entries[j] = v1alpha1.InventoryEntry{
					Group: "apps", Version: "v1", Kind: "Deployment", Namespace: fmt.Sprintf("namespace-%d", j%50), Name: fmt.Sprintf("application-%d", j),
					UID: fmt.Sprintf("%08x-0000-4000-8000-%012x", j*7919, j*104729), Digest: fmt.Sprintf("sha256:%064x", j*15485863), Health: "Healthy",
				}
			}
			return nil
		}
	}
	create := func() *v1alpha1.ReleaseInventory { return &v1alpha1.ReleaseInventory{} }
	began := time.Now()
	if _, err := in.Put(t.Context(), web, create, fill(10_000)); err != nil {
		t.Fatal(err)
	}
	t.Logf("written in %s", time.Since(began))
	got, err := in.Get(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Entries) != 10_000 {
		t.Errorf("%d entries came back", len(got.Entries))
	}
	if _, err := in.Put(t.Context(), web, create, fill(10_001)); !apierrors.IsInvalid(err) {
		t.Errorf("10,001 entries: %v, want Invalid", err)
	}
}

func TestAReflectorSeesPlainObjectsHoweverManyLookOn(t *testing.T) {
	// From the third watcher on the watch cache hands out wrappers.
	t.Parallel()
	s := apiservertest.Start(t)
	const watchers = 5
	ctx, cancel := context.WithCancel(t.Context())
	stores := make([]cache.Store, watchers)
	var wg sync.WaitGroup
	for i := range stores {
		stores[i] = cache.NewStore(cache.MetaNamespaceKeyFunc)
		r := cache.NewReflectorWithOptions(s.Storage().Releases.ListWatch(), &v1alpha1.Release{}, stores[i], cache.ReflectorOptions{})
		wg.Go(func() { r.RunWithContext(ctx) })
	}
	defer wg.Wait()
	defer cancel()

	mustCreate(t, s, newRelease("web", "edge"))
	for i := range 20 {
		_, err := s.Storage().Releases.UpdateStatus(ctx, web, "", func(r *v1alpha1.Release) error {
			r.Status.Sequence = int64(i + 1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := 0; i < watchers; {
		if o, found, err := stores[i].GetByKey("team/web"); err == nil && found {
			if r, ok := o.(*v1alpha1.Release); !ok {
				t.Fatalf("watcher %d got a %T", i, o)
			} else if r.Status.Sequence == 20 {
				i++
				continue
			}
		}
		select {
		case <-deadline:
			t.Fatalf("watcher %d did not see the last write", i)
		case <-tick.C:
		}
	}
}

func TestListsAreSelectedByNamespaceAndCluster(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	for name, cluster := range map[string]string{"a": "edge-1", "b": "edge-2", "c": "edge-1"} {
		mustCreate(t, s, newRelease(name, cluster))
	}
	for name, c := range map[string]struct {
		options resource.ListOptions
		want    int
	}{
		"everything":        {resource.ListOptions{}, 3},
		"another namespace": {resource.ListOptions{Namespace: "other"}, 0},
		"one cluster":       {resource.ListOptions{Namespace: "team", Fields: fields.OneTermEqualSelector("spec.clusterRef.name", "edge-1")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Storage().Releases.List(t.Context(), c.options)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Items) != c.want {
				t.Errorf("%d Releases, want %d", len(got.Items), c.want)
			}
		})
	}
}
