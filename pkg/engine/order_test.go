// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// idle is a State and Blobs that nothing calls.
type idle struct{}

func (idle) LoadRecords(context.Context, func(*Record) error) error    { return nil }
func (idle) SaveRecord(context.Context, *Record) error                 { return nil }
func (idle) DeleteRecord(context.Context, string) error                { return nil }
func (idle) PutRender(context.Context, string, io.Reader) error        { return nil }
func (idle) OpenRender(context.Context, string) (io.ReadCloser, error) { return nil, ErrNotStored }
func (idle) RetainRenders(context.Context, func(string) bool) error    { return nil }
func (idle) Open(context.Context, tunnel.Layer, bool, string) (io.ReadCloser, error) {
	return nil, ErrNotStored
}

// unstarted makes a Runner that is not run.
func unstarted(t *testing.T, now time.Time) (*Runner, *[]tunnel.Report) {
	t.Helper()
	reports := &[]tunnel.Report{}
	rn, err := New(Options{
		Config: &rest.Config{Host: "https://localhost:1"}, HubID: "hub", ClusterUID: "cluster", State: idle{}, Blobs: idle{},
		Report: func(r tunnel.Report) { *reports = append(*reports, r) }, Clock: clocktesting.NewFakeClock(now),
	})
	if err != nil {
		t.Fatal(err)
	}
	return rn, reports
}

func TestOrdersAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	layer := &tunnel.Layer{Digest: "sha256:" + strings.Repeat("0a", 32), Size: 10}
	good := tunnel.Order{
		Verb: tunnel.VerbApply, Hub: "hub", ClusterUID: "cluster", Sequence: now.UnixMilli(),
		Release: tunnel.ReleaseRef{UID: "r", Namespace: "ns", Name: "n"}, Objects: layer, Requires: []string{tunnel.FeatureApply},
	}
	for name, c := range map[string]struct {
		change func(*tunnel.Order)
		want   error
		reason string
	}{
		"another hub":                   {func(o *tunnel.Order) { o.Hub = "other" }, ErrOtherHub, v1alpha1.ReasonOrderRefused},
		"another cluster":               {func(o *tunnel.Order) { o.ClusterUID = "other" }, ErrOtherCluster, v1alpha1.ReasonOrderRefused},
		"an older sequence":             {func(o *tunnel.Order) { o.Sequence -= 1000 }, ErrOlderSequence, v1alpha1.ReasonOrderRefused},
		"two days ahead":                {func(o *tunnel.Order) { o.Sequence += (48 * time.Hour).Milliseconds() }, ErrAheadOfTime, v1alpha1.ReasonOrderRefused},
		"a feature that is missing":     {func(o *tunnel.Order) { o.Requires = append(o.Requires, "protect.v9") }, ErrFeatureMissing, v1alpha1.ReasonAgentTooOld},
		"a verb that is not known":      {func(o *tunnel.Order) { o.Verb = "shrink" }, ErrFeatureMissing, v1alpha1.ReasonAgentTooOld},
		"no layer":                      {func(o *tunnel.Order) { o.Objects = nil }, ErrMalformed, v1alpha1.ReasonOrderRefused},
		"a digest that is none":         {func(o *tunnel.Order) { o.Objects = &tunnel.Layer{Digest: "../../x", Size: 1} }, ErrMalformed, v1alpha1.ReasonOrderRefused},
		"a layer that is too large":     {func(o *tunnel.Order) { o.Sealed = &tunnel.Layer{Digest: layer.Digest, Size: maxLayer + 1} }, ErrMalformed, v1alpha1.ReasonOrderRefused},
		"nothing wrong":                 {func(*tunnel.Order) {}, nil, ""},
		"the same order again":          {func(o *tunnel.Order) { o.Sequence-- }, nil, ""},
		"a remove order without layers": {func(o *tunnel.Order) { o.Verb, o.Objects = tunnel.VerbRemove, nil }, nil, ""},
		"less than a day ahead":         {func(o *tunnel.Order) { o.Sequence += (23 * time.Hour).Milliseconds() }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rn, reports := unstarted(t, now)
			if err := rn.Accept(good, tunnel.Signed{}); err != nil {
				t.Fatal(err)
			}
			o := good
			o.Requires = append([]string(nil), good.Requires...)
			o.Sequence++
			c.change(&o)
			err := rn.Accept(o, tunnel.Signed{})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			held := good.Sequence
			if c.want == nil {
				held = o.Sequence
			}
			if diff := cmp.Diff(map[string]int64{"r": held}, rn.Have()); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if c.want == nil {
				return
			}
			rn.releases["r"].report()
			if len(*reports) != 1 || (*reports)[0].Refused == nil || (*reports)[0].Refused.Reason != c.reason || (*reports)[0].RefusedSequence != o.Sequence {
				t.Errorf("reports are %+v", *reports)
			}
		})
	}
}

func TestARefusedOrderOfAnUnknownReleaseIsReportedToo(t *testing.T) {
	t.Parallel()
	rn, reports := unstarted(t, time.Now())
	err := rn.Accept(tunnel.Order{Verb: tunnel.VerbApply, Hub: "hub", ClusterUID: "other", Sequence: 1, Release: tunnel.ReleaseRef{UID: "r"}}, tunnel.Signed{})
	var refusal *Refusal
	if !errors.As(err, &refusal) || len(*reports) != 1 || (*reports)[0].Refused == nil || (*reports)[0].Counter == 0 {
		t.Errorf("%v, reports %+v", err, *reports)
	}
	if len(rn.Have()) != 0 {
		t.Errorf("held: %v", rn.Have())
	}
}

func TestALayerMustBeWhatWasOrdered(t *testing.T) {
	t.Parallel()
	content := "the content of a layer"
	layer := tunnel.Layer{Digest: "sha256:bf4bb3f1f5b7c1b3c0c9d0b3c1c6d1e1e3c0b0f0e0a0b0c0d0e0f0a0b0c0d0e0", Size: int64(len(content))}
	sum := newVerified(strings.NewReader(content))
	if _, err := io.Copy(io.Discard, sum); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		digest string
		size   int64
		text   string
		fine   bool
	}{
		"as ordered":    {sum.digest(), layer.Size, content, true},
		"another bit":   {sum.digest(), layer.Size, "The content of a layer", false},
		"too short":     {sum.digest(), layer.Size, content[1:], false},
		"too long":      {sum.digest(), layer.Size, content + "x", false},
		"another size":  {sum.digest(), layer.Size + 1, content, false},
		"other content": {layer.Digest, layer.Size, content, false},
	} {
		got, err := io.ReadAll(newExact(strings.NewReader(c.text), tunnel.Layer{Digest: c.digest, Size: c.size}))
		var refused *renderError
		if c.fine != (err == nil) || (!c.fine && !errors.As(err, &refused)) || (c.fine && string(got) != content) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestKindsAreAppliedInFewSteps(t *testing.T) {
	t.Parallel()
	last := -1
	for _, kind := range [][2]string{
		{"", "Namespace"}, {"apiextensions.k8s.io", "CustomResourceDefinition"}, {"", "Secret"}, {"rbac.authorization.k8s.io", "Role"},
		{"rbac.authorization.k8s.io", "RoleBinding"}, {"apps", "Deployment"}, {"admissionregistration.k8s.io", "ValidatingWebhookConfiguration"},
	} {
		tier := tierOf(kind[0], kind[1])
		if tier <= last {
			t.Errorf("%s is in step %d, not after %d", kind[1], tier, last)
		}
		last = tier
	}
	if tierOf("", "ConfigMap") != tierOf("", "Secret") || tierOf("example.test", "Widget") != tierOf("apps", "Deployment") {
		t.Error("kinds that do not need each other are in different steps")
	}
	// A step is a stretch of apply order: what a render has in order stays in order.
	tiers := map[int]int{}
	for _, kind := range [][2]string{{"", "Namespace"}, {"storage.k8s.io", "StorageClass"}, {"", "ConfigMap"}, {"rbac.authorization.k8s.io", "ClusterRole"}, {"", "Service"}, {"batch", "Job"}} {
		order := manifest.KindOrder(kind[0], kind[1])
		for o, tier := range tiers {
			if (o < order) != (tier <= tierOf(kind[0], kind[1])) && o != order {
				t.Errorf("%v is out of order", kind)
			}
		}
		tiers[order] = tierOf(kind[0], kind[1])
	}
}

func TestTheWorstExceptionsComeFirstAndTheRestIsCounted(t *testing.T) {
	t.Parallel()
	var all []tunnel.Exception
	for range 40 {
		all = append(all, tunnel.Exception{Reason: exceptionProgressing, Name: "p"}, tunnel.Exception{Reason: exceptionDegraded, Name: "d"})
	}
	all = append(all, tunnel.Exception{Reason: exceptionRejected, Name: "r"})
	got, more := sortExceptions(all)
	if len(got) != maxExceptions || more != 17 || got[0].Reason != exceptionRejected || got[1].Reason != exceptionDegraded {
		t.Errorf("%d exceptions, %d more, first %+v", len(got), more, got[0])
	}
}

func TestAFightIsSlowedDownAndForgottenInPeace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := newContest(now)
	for range healBurst {
		now = now.Add(20 * time.Millisecond)
		if c.allow(now); c.fought(now) {
			t.Fatal("contested too early")
		}
	}
	var pauses []time.Duration
	for range 4 {
		c.allow(now)
		pauses = append(pauses, c.next.Sub(now))
	}
	if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, pauses); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A rival that comes back after each pause does not win quicker repairs by it.
	for range 10 {
		now = c.next.Add(50 * time.Millisecond)
		if !c.fought(now) {
			t.Fatal("taken for over while it goes on")
		}
		c.allow(now)
	}
	if pause := c.next.Sub(now); pause != contestMax {
		t.Errorf("the pause is %s, want %s", pause, contestMax)
	}
	if c.fought(c.until) {
		t.Error("it is not over when nothing has happened for a while")
	}
	now = now.Add(contestForget + time.Second)
	if c.allow(now); c.fought(now) {
		t.Error("not forgotten")
	}
}

func TestOddStatusesAreNoReasonToGiveUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		object string
		want   health
	}{
		"no status":               {`{"apiVersion":"x.test/v1","kind":"Plain","metadata":{"name":"p","generation":1},"spec":{"a":1}}`, healthy},
		"empty status":            {`{"apiVersion":"x.test/v1","kind":"Plain","metadata":{"name":"p","generation":1},"status":{}}`, healthy},
		"status is text":          {`{"apiVersion":"x.test/v1","kind":"Odd","metadata":{"name":"p"},"status":"running"}`, healthy},
		"conditions is a map":     {`{"apiVersion":"x.test/v1","kind":"Odd","metadata":{"name":"p"},"status":{"conditions":{"Ready":true}}}`, healthy},
		"conditions is null":      {`{"apiVersion":"x.test/v1","kind":"Odd","metadata":{"name":"p"},"status":{"conditions":null,"observedGeneration":"7"}}`, healthy},
		"conditions are odd":      {`{"apiVersion":"x.test/v1","kind":"Odd","metadata":{"name":"p"},"status":{"conditions":[{"type":"Ready","status":true},"text",{},null]}}`, healthy},
		"not ready":               {`{"apiVersion":"x.test/v1","kind":"Good","metadata":{"name":"p","generation":1},"status":{"conditions":[{"type":"Ready","status":"False","reason":"Waiting"}]}}`, progressing},
		"older generation":        {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","generation":5},"spec":{"replicas":2},"status":{"observedGeneration":4,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}}`, progressing},
		"being deleted":           {`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n","deletionTimestamp":"2024-01-31T00:00:00Z"},"status":{"phase":"Terminating"}}`, terminating},
		"deadline of a rollout":   {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","generation":4},"spec":{"replicas":1},"status":{"observedGeneration":4,"replicas":2,"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"timed out"}]}}`, degraded},
		"a claim that is pending": {`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"status":{"phase":"Pending"}}`, progressing},
	} {
		if got, why := judge(parsed(t, c.object)); got != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got, why, c.want)
		}
	}
	if blocksWave("PersistentVolumeClaim", "") || !blocksWave("Deployment", "apps") {
		t.Error("a claim must not hold up the wave of the pod that uses it")
	}
}

func TestTheBodyOfAnApplyCarriesOurMarksAndNothingOfAServer(t *testing.T) {
	t.Parallel()
	content := parsed(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","aggregationRule":{"x":1},"rules":[],
	 "metadata":{"name":"r","uid":"stale","resourceVersion":"1","creationTimestamp":null,"managedFields":[],"generation":7,"selfLink":"x","labels":{"a":"b"}},
	 "status":{"replicas":9}}`)
	id := manifest.Identity{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "r"}
	body, err := newMarks("hub", "uid").body(content, id, precondition{uid: "live", resourceVersion: "9"})
	if err != nil {
		t.Fatal(err)
	}
	want := parsed(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","aggregationRule":{"x":1},
	 "metadata":{"name":"r","uid":"live","resourceVersion":"9","labels":{"a":"b","convoy.kumodo.io/managed":"hub"},
	 "annotations":{"convoy.kumodo.io/owner":"hub/uid"}}}`)
	if diff := cmp.Diff(want, parsed(t, string(body))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
