// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientcache "k8s.io/client-go/tools/cache"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func release(name, uid string, version int) *corev1alpha1.Release {
	return &corev1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(uid), ResourceVersion: strconv.Itoa(version)},
		Spec: corev1alpha1.ReleaseSpec{
			ClusterRef: corev1alpha1.ClusterReference{Name: "edge"},
			Source:     corev1alpha1.SourceReference{Kind: "GitRepository", Name: "apps"},
		},
	}
}

// told records what handlers are told: "old>new" by UID and version.
func told(c *Cache) *[]string {
	var list []string
	show := func(r *corev1alpha1.Release) string {
		if r == nil {
			return "-"
		}
		return fmt.Sprintf("%s@%s", r.UID, r.ResourceVersion)
	}
	c.OnRelease(func(old, next *corev1alpha1.Release) { list = append(list, show(old)+">"+show(next)) })
	return &list
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAWriterIsReadAtOnceAndTheWatchTellsNothingTwice(t *testing.T) {
	c := New(Options{})
	got := told(c)
	must(t, c.releases.Replace([]any{release("a", "1", 5)}, "6"))
	c.PutRelease(release("a", "1", 8))
	if r, _ := c.Release(types.NamespacedName{Namespace: "team", Name: "a"}); r.ResourceVersion != "8" {
		t.Errorf("read version %s after a write of 8", r.ResourceVersion)
	}
	must(t, c.releases.Update(release("a", "1", 7)))
	must(t, c.releases.Update(release("a", "1", 8)))
	must(t, c.releases.Update(release("a", "1", 9)))
	if diff := cmp.Diff([]string{"->1@5", "1@5>1@8", "1@8>1@9"}, *got); diff != "" {
		t.Errorf("handlers were told (-want +got):\n%s", diff)
	}
}

func TestAWriteThatTheWatchHasPassedDoesNotBringAnObjectBack(t *testing.T) {
	c := New(Options{})
	must(t, c.releases.Replace([]any{release("a", "1", 5)}, "6"))
	must(t, c.releases.Delete(release("a", "1", 10)))
	c.PutRelease(release("a", "1", 9))
	if _, ok := c.Release(types.NamespacedName{Namespace: "team", Name: "a"}); ok {
		t.Error("a deleted Release is in the cache again")
	}
	if got := c.ReleasesByCluster(types.NamespacedName{Namespace: "team", Name: "edge"}); len(got) != 0 {
		t.Errorf("the index still has %d", len(got))
	}
}

func TestADeletionThatIsOlderThanTheObjectIsIgnored(t *testing.T) {
	c := New(Options{})
	got := told(c)
	must(t, c.releases.Replace(nil, "4"))
	c.PutRelease(release("a", "2", 12))
	must(t, c.releases.Delete(release("a", "1", 10)))
	if _, ok := c.ReleaseByUID("2"); !ok {
		t.Error("the newer object is gone")
	}
	if diff := cmp.Diff([]string{"->2@12"}, *got); diff != "" {
		t.Errorf("handlers were told (-want +got):\n%s", diff)
	}
}

func TestAnObjectMadeAnewIsToldAsGoneAndNew(t *testing.T) {
	c := New(Options{})
	got := told(c)
	must(t, c.releases.Replace([]any{release("a", "1", 5)}, "6"))
	must(t, c.releases.Update(release("a", "2", 9)))
	if _, ok := c.ReleaseByUID("1"); ok {
		t.Error("the old UID is still known")
	}
	if diff := cmp.Diff([]string{"->1@5", "1@5>-", "->2@9"}, *got); diff != "" {
		t.Errorf("handlers were told (-want +got):\n%s", diff)
	}
}

func TestANewListDropsWhatIsGoneAndKeepsWhatIsNewer(t *testing.T) {
	c := New(Options{})
	must(t, c.releases.Replace([]any{release("a", "1", 5), release("b", "2", 5)}, "6"))
	c.PutRelease(release("c", "3", 30))
	must(t, c.releases.Replace([]any{release("a", "1", 5)}, "20"))
	var names []string
	for _, r := range c.ReleasesBySource("GitRepository", types.NamespacedName{Namespace: "team", Name: "apps"}) {
		names = append(names, r.Name)
	}
	sort.Strings(names)
	if diff := cmp.Diff([]string{"a", "c"}, names); diff != "" {
		t.Errorf("Releases (-want +got):\n%s", diff)
	}
}

func TestObjectsLoseWhatNoReaderNeedsAndTheOriginalKeepsIt(t *testing.T) {
	c := New(Options{})
	in := release("a", "1", 5)
	in.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	in.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "x"}
	must(t, c.releases.Replace([]any{in}, "6"))
	out, _ := c.ReleaseByUID("1")
	if out.ManagedFields != nil {
		t.Error("managedFields are in the cache")
	}
	if diff := cmp.Diff(map[string]string{"team": "x"}, out.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if len(in.ManagedFields) != 1 || len(in.Annotations) != 2 {
		t.Error("the registry's object was changed")
	}
}

// registry has one list and one watch.
func registry(list runtime.Object, events watch.Interface) *clientcache.ListWatch {
	return &clientcache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
	}
}

func TestRunFollowsTheRegistry(t *testing.T) {
	events, artifacts := watch.NewFake(), watch.NewFake()
	c := New(Options{
		Releases: registry(&corev1alpha1.ReleaseList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1alpha1.Release{*release("a", "1", 5)}}, events),
		Clusters: registry(&corev1alpha1.ClusterList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, watch.NewFake()),
		Sources: map[string]clientcache.ListerWatcher{
			"GitRepository": registry(&sourcev1alpha1.GitRepositoryList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []sourcev1alpha1.GitRepository{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "apps", UID: "g", ResourceVersion: "6"}},
			}}, watch.NewFake()),
			"OCIRegistry": registry(&sourcev1alpha1.OCIRegistryList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, artifacts),
		},
	})
	changed := make(chan string, 10)
	told := make(chan string, 10)
	c.OnSource(func(old, next sourcev1alpha1.Source) {
		if next == nil {
			told <- "no " + old.SourceKind() + " " + old.GetName()
			return
		}
		told <- next.SourceKind() + " " + next.GetName()
	})
	c.OnRelease(func(_, next *corev1alpha1.Release) { changed <- next.Name + "@" + next.ResourceVersion })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	select {
	case <-c.Ready():
	case <-ctx.Done():
		t.Fatal("the cache was never complete")
	}
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-changed:
			if got != want {
				t.Errorf("told of %s, want %s", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("not told of %s", want)
		}
	}
	expect("a@5")
	events.Add(release("b", "2", 8))
	expect("b@8")
	events.Modify(release("b", "2", 9))
	expect("b@9")
	if len(c.Releases()) != 2 {
		t.Errorf("%d Releases, want 2", len(c.Releases()))
	}
	artifact := &sourcev1alpha1.OCIRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "o", ResourceVersion: "8"}}
	artifacts.Add(artifact)
	gone := artifact.DeepCopy()
	gone.ResourceVersion = "9"
	artifacts.Delete(gone)
	for _, want := range []string{"GitRepository apps", "OCIRegistry app", "no OCIRegistry app"} {
		select {
		case got := <-told:
			if got != want {
				t.Errorf("told of %s, want %s", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("not told of %s", want)
		}
	}
	if _, ok := c.Source("GitRepository", types.NamespacedName{Namespace: "team", Name: "apps"}); !ok {
		t.Error("the GitRepository is not held")
	}
	if found, ok := c.Source("HelmRegistry", types.NamespacedName{Namespace: "team", Name: "apps"}); ok || found != nil {
		t.Error("a source of a kind that is not held was found")
	}
	cancel()
	must(t, <-ended)
}
