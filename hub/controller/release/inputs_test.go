// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/controller/release"
)

// texts are the ConfigMaps and Secrets of a host: kind/name/key -> text.
type texts struct {
	mu    sync.Mutex
	all   map[string]string
	reads int
}

func (x *texts) read(kind, name string) (map[string]string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reads++
	data := map[string]string{}
	for key, text := range x.all {
		if rest, ok := strings.CutPrefix(key, kind+"/"+name+"/"); ok {
			data[rest] = text
		}
	}
	if len(data) == 0 {
		return nil, release.ErrNotThere
	}
	return data, nil
}

func (x *texts) ConfigMap(_ context.Context, _, name string) (map[string]string, error) {
	return x.read("ConfigMap", name)
}

func (x *texts) Secret(_ context.Context, _, name string) (map[string]string, error) {
	return x.read("Secret", name)
}

func (x *texts) set(key, text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[key] = text
}

func withTexts(x *texts) func(*stage) { return func(s *stage) { s.texts = x } }

func valuesFrom(kind, name string) func(*corev1alpha1.Release) {
	return func(r *corev1alpha1.Release) {
		r.Spec.Content.Manifests = nil
		r.Spec.Content.Helm = &corev1alpha1.HelmContent{ValuesFrom: []corev1alpha1.ValuesReference{{Kind: kind, Name: name, Key: "values.yaml"}}}
	}
}

// editCluster writes to the Cluster's metadata, as its owner does.
func (s *stage) editCluster(change func(*corev1alpha1.Cluster)) {
	s.t.Helper()
	_, err := s.server.Storage().Clusters.Update(s.t.Context(), key("edge"), "", func(c *corev1alpha1.Cluster) error { change(c); return nil })
	if err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the Cluster in the cache", func() bool {
		c, ok := s.cache.Cluster(key("edge"))
		want := &corev1alpha1.Cluster{Spec: *c.Spec.DeepCopy()}
		change(want)
		return ok && len(want.Spec.Metadata) == len(c.Spec.Metadata) && want.Spec.Metadata["region"] == c.Spec.Metadata["region"]
	})
}

// sync asks for a sync, and waits until it was acted on.
func (s *stage) sync(name, value string) *corev1alpha1.Release {
	s.t.Helper()
	s.edit(name, func(r *corev1alpha1.Release) {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, corev1alpha1.AnnotationSyncRequestedAt, value)
	})
	return s.until(name, "the sync "+value, func(r *corev1alpha1.Release) bool { return r.Status.LastSyncRequest == value })
}

func TestOnlyFactsThatWereReadMakeANewRender(t *testing.T) {
	s := newStage(t)
	s.git.push("1", map[string]string{"app": "one reads cluster.region self.labels.tier"})
	s.editCluster(func(c *corev1alpha1.Cluster) { c.Spec.Metadata = map[string]string{"region": "eu", "rack": "1"} })
	s.reachable(true)
	first := s.ready("web")
	if got := first.Status.Render.Reads; len(got) != 2 || got[0] != "cluster.region" {
		t.Errorf("reads %v", got)
	}
	made := s.renderer.made()

	s.editCluster(func(c *corev1alpha1.Cluster) { c.Spec.Metadata["rack"] = "2" })
	if r := s.sync("web", "1"); r.Status.RenderRef != first.Status.RenderRef || s.renderer.made() != made {
		t.Errorf("a key that nobody reads made render %s of %s", r.Status.RenderRef, first.Status.RenderRef)
	}
	s.editCluster(func(c *corev1alpha1.Cluster) { c.Spec.Metadata["region"] = "us" })
	r, ok := s.cache.Release(key("web"))
	if !ok || r.Status.RenderRef != first.Status.RenderRef || s.renderer.made() != made {
		t.Error("a write to a Cluster started a reconcile of its Releases")
	}
	if r := s.sync("web", "2"); r.Status.RenderRef == first.Status.RenderRef || r.Status.InputsHash == first.Status.InputsHash {
		t.Error("a key that is read made no new render at the next reconcile")
	}
}

func TestAnotherVersionOfTheHubRendersNothingAgainAndOrdersNothing(t *testing.T) {
	s := newStage(t)
	// As a chart with a generated certificate: another render would have other bytes.
	s.git.push("1", map[string]string{"app": "one reads random self.releaseName capabilities.kubeVersion"})
	s.reachable(true)
	first := s.ready("web")
	if first.Status.Render.Renderer != "v1" {
		t.Errorf("renderer %q", first.Status.Render.Renderer)
	}
	s.stop()
	s.hubVersion = "v2"
	s.start()
	s.connects(map[string]int64{string(first.UID): first.Status.Sequence})
	r := s.sync("web", "1")
	if r.Status.RenderRef != first.Status.RenderRef || r.Status.InputsHash != first.Status.InputsHash || r.Status.Render.Renderer != "v1" || s.renderer.made() != 0 {
		t.Errorf("%d renders: %+v, was %+v", s.renderer.made(), r.Status.Render, first.Status.Render)
	}
	if r.Status.Order.Payload == first.Status.Order.Payload {
		t.Error("a sync that was asked for is a new order, and there is none")
	}
}

func TestARestartOfAnotherVersionAloneChangesNothing(t *testing.T) {
	s := newStage(t)
	s.git.push("1", map[string]string{"app": "one reads random"})
	s.reachable(true)
	first := s.ready("web")
	s.stop()
	s.hubVersion = "v2"
	s.start()
	s.connects(map[string]int64{string(first.UID): first.Status.Sequence})
	// Another Release that comes after shows that this one was looked at.
	s.ready("later")
	r, _ := s.cache.Release(key("web"))
	if r.ResourceVersion != first.ResourceVersion || s.renderer.made() != 1 {
		t.Errorf("%d renders; was written: %s, %s", s.renderer.made(), first.ResourceVersion, r.ResourceVersion)
	}
}

func TestAChangedTargetNamespaceIsAnotherRenderForAnotherPlace(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	first := s.ready("web")
	if first.Status.Render.TargetNamespace != "team" {
		t.Errorf("target %q", first.Status.Render.TargetNamespace)
	}
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.TargetNamespace = "shop" })
	moved := s.until("web", "the move", func(r *corev1alpha1.Release) bool {
		return r.Status.Render.TargetNamespace == "shop" && r.Status.Sequence != first.Status.Sequence
	})
	if moved.Status.InputsHash == first.Status.InputsHash {
		t.Error("the inputs are said to be the same")
	}
	// The orders hear of the write when the watch tells them.
	s.eventually("an order for the other place", func() bool {
		order, ok := s.orders.Ordered(moved.UID)
		return ok && order.Policy.Namespace == "shop"
	})
}

func TestARenderOfAnotherPlaceThatFailsLeavesTheOrderWhereItIs(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	first := s.ready("web")
	s.git.push("2", map[string]string{"app": "bad"})
	s.edit("web", func(r *corev1alpha1.Release) {
		r.Spec.TargetNamespace = "shop"
		r.Spec.SyncPolicy.Prune.AllowEmpty = true // the policy of now goes out with an order
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, corev1alpha1.AnnotationSyncRequestedAt, "1")
	})
	failed := s.untilCondition("web", "Rendered", "False RenderFailed")
	order, ok := s.orders.Ordered(failed.UID)
	if !ok || order.Policy.Namespace != "team" || order.Objects.Digest != first.Status.RenderRef {
		t.Errorf("order %+v of %s", order.Policy, order.Objects.Digest)
	}
}

func TestValuesComeFromConfigMaps(t *testing.T) {
	host := &texts{all: map[string]string{"ConfigMap/web/values.yaml": "a: 1"}}
	s := newStage(t, withTexts(host))
	s.reachable(true)
	first := s.ready("web", valuesFrom("ConfigMap", "web"))
	host.set("ConfigMap/web/values.yaml", "a: 2")
	if r := s.sync("web", "1"); r.Status.RenderRef == first.Status.RenderRef {
		t.Error("a changed ConfigMap made no new render")
	}
	s.create("missing", valuesFrom("ConfigMap", "none"))
	missing := s.untilCondition("missing", "Rendered", "False ValuesNotFound")
	for i := range missing.Status.Conditions {
		if c := &missing.Status.Conditions[i]; c.Type == "Rendered" && !strings.Contains(c.Message, "ConfigMap none") {
			t.Errorf("message %q", c.Message)
		}
	}
	host.set("ConfigMap/none/values.yaml", "c: 3")
	s.untilCondition("missing", "Rendered", "True Rendered")
	s.ready("optional", valuesFrom("ConfigMap", "never"), func(r *corev1alpha1.Release) { r.Spec.Content.Helm.ValuesFrom[0].Optional = true })
}

func TestWithoutAHostThereIsNobodyToAskForValues(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.create("web", valuesFrom("ConfigMap", "web"))
	s.untilCondition("web", "Rendered", "False NoHostCluster")
}

func TestAPreviewRendersAndWritesNothing(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	first := s.ready("web")
	unsaved := first.DeepCopy()
	unsaved.Name, unsaved.Spec.TargetNamespace = "unsaved", "shop"
	unsaved.Spec.Content.Helm, unsaved.Spec.Content.Manifests = &corev1alpha1.HelmContent{Values: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}}, nil
	seen, err := s.releases.Preview(t.Context(), unsaved, "")
	if err != nil || seen.TargetNamespace != "shop" || seen.SourceRevision != "main@sha1:1" || seen.Objects.Digest == first.Status.RenderRef {
		t.Errorf("%+v, %v", seen, err)
	}
	if seen.Provenance.URL != "https://git.example/apps" {
		t.Errorf("provenance %+v", seen.Provenance)
	}
	unsaved.Spec.ClusterRef.Name = "none"
	if _, err := s.releases.Preview(t.Context(), unsaved, ""); err == nil {
		t.Error("a Cluster that does not exist was no fault")
	}
	r, _ := s.cache.Release(key("web"))
	if r.ResourceVersion != first.ResourceVersion {
		t.Error("a preview wrote a status")
	}
}

func TestHE10AWarningOfARenderStandsInTheStatusAsLongAsTheRender(t *testing.T) {
	s := newStage(t)
	s.git.push("1", map[string]string{"app": "one warns a.yaml calls randAlphaNum"})
	s.reachable(true)
	first := s.ready("web")
	warned := func(r *corev1alpha1.Release) bool {
		rendered := meta.FindStatusCondition(r.Status.Conditions, corev1alpha1.ConditionRendered)
		return len(r.Status.Render.Warnings) == 1 && r.Status.Render.Warnings[0] == "a.yaml calls randAlphaNum" &&
			rendered != nil && strings.HasSuffix(rendered.Message, "; warning: a.yaml calls randAlphaNum")
	}
	if !warned(first) {
		t.Errorf("warned of %q in %v", first.Status.Render.Warnings, first.Status.Conditions)
	}
	made := s.renderer.made()
	if r := s.sync("web", "1"); !warned(r) || s.renderer.made() != made {
		t.Errorf("after a sync without a new render: warned of %q in %v", r.Status.Render.Warnings, r.Status.Conditions)
	}
	s.git.push("2", map[string]string{"app": "two"})
	s.sync("web", "2")
	s.until("web", "the next render without a warning", func(r *corev1alpha1.Release) bool {
		rendered := meta.FindStatusCondition(r.Status.Conditions, corev1alpha1.ConditionRendered)
		return r.Status.RenderRef != first.Status.RenderRef && len(r.Status.Render.Warnings) == 0 && rendered != nil && !strings.Contains(rendered.Message, "warning")
	})
}
