// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// agents answer with objects, and then with an error or an end.
type agents struct {
	objects []tunnel.LiveObject
	end     tunnel.LiveEnd
	err     error
	hangs   bool
}

func (a agents) Live(ctx context.Context, clusterUID, releaseUID string, _ tunnel.LiveView, yield func(tunnel.LiveObject) error) (tunnel.LiveEnd, error) {
	if clusterUID != "c-edge" || releaseUID != "r" {
		return tunnel.LiveEnd{}, ErrAway
	}
	if a.hangs {
		<-ctx.Done()
		return tunnel.LiveEnd{}, ctx.Err()
	}
	for _, object := range a.objects {
		if err := yield(object); err != nil {
			return tunnel.LiveEnd{}, err
		}
	}
	return a.end, a.err
}

type inventories map[string]*v1alpha1.ReleaseInventory

func (i inventories) Get(_ context.Context, key types.NamespacedName) (*v1alpha1.ReleaseInventory, error) {
	if found, ok := i[key.String()]; ok {
		return found, nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("releaseinventories"), key.Name)
}

// stored are renders by digest, as lines of objects.
type stored map[string][]string

func (s stored) Open(_ context.Context, digest string) (io.ReadCloser, error) {
	lines, ok := s[digest]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrNoRender, digest)
	}
	head := fmt.Sprintf(`{"format":%q,"count":%d}`, manifest.FormatObjects, len(lines))
	return io.NopCloser(strings.NewReader(head + "\n" + strings.Join(append(lines, ""), "\n"))), nil
}

func line(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","data":{"a":%q},"kind":"ConfigMap","metadata":{"name":%q}}`, value, name)
}

var reported = metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))

// running is Release shop on Cluster edge.
func running(change ...func(*v1alpha1.Release)) *v1alpha1.Release {
	r := release("shop", "stored")
	r.UID, r.Spec.ClusterRef.Name = "r", "edge"
	r.Status = v1alpha1.ReleaseStatus{RenderRef: "sha256:1", AppliedRef: "sha256:1", Sequence: 7, LastReportedAt: &reported}
	for _, f := range change {
		f(r)
	}
	return r
}

// answered asks about Release shop and decodes the answer.
func answered[T any](t *testing.T, s *Server, r *v1alpha1.Release, url string) T {
	t.Helper()
	s.Releases.(releases)["team/shop"] = r
	code, raw := ask(s, http.MethodGet, url, nil)
	var out T
	if err := json.Unmarshal(raw, &out); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s: %v", code, raw, err)
	}
	return out
}

func web(change ...func(*tunnel.LiveObject)) tunnel.LiveObject {
	o := tunnel.LiveObject{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "team", Name: "web", Wave: 2, State: "Healthy", InSync: tunnel.True}
	for _, f := range change {
		f(&o)
	}
	return o
}

func TestHealthIsWhatTheAgentSays(t *testing.T) {
	t.Parallel()
	s := newServer(t, echo, believe)
	s.Agents = agents{
		objects: []tunnel.LiveObject{web(func(o *tunnel.LiveObject) { o.State, o.Message, o.Since = "Degraded", "no pods", reported.Time }), web()},
		end:     tunnel.LiveEnd{Sequence: 8, Objects: 2, Left: 3, At: reported.Add(time.Minute)},
	}
	got := answered[v1alpha1.ReleaseHealth](t, s, running(), "/health/team/shop")
	if got.Kind != "ReleaseHealth" || got.Name != "shop" || got.MoreObjects != 3 || len(got.Objects) != 2 {
		t.Errorf("got %+v", got)
	}
	if o := got.Observation; !o.Live || o.Sequence != 8 || !o.At.Equal(&metav1.Time{Time: reported.Add(time.Minute)}) || o.Message != "" {
		t.Errorf("observed %+v", o)
	}
	if o := got.Objects[0]; o.State != "Degraded" || o.Message != "no pods" || o.InSync != "True" || !o.Since.Equal(&reported) || o.Wave != 2 {
		t.Errorf("object %+v", o)
	}
}

func TestHealthOfWhatCannotBeAskedIsWhatWasKnownLast(t *testing.T) {
	t.Parallel()
	gone := running(func(r *v1alpha1.Release) { r.Spec.ClusterRef.Name = "none" })
	for name, test := range map[string]struct {
		agents  agents
		release *v1alpha1.Release
		says    string
	}{
		"a Cluster that is away":           {agents{err: ErrAway}, running(), "Cluster edge is not connected"},
		"a Cluster that is not there":      {agents{}, gone, "there is no Cluster none"},
		"an agent that is too old":         {agents{err: tunnel.ErrNoLive}, running(), "too old"},
		"a Release that the agent lacks":   {agents{err: tunnel.ErrNoRelease}, running(), "does not know the Release"},
		"an answer that broke off":         {agents{objects: []tunnel.LiveObject{web()}, err: io.ErrUnexpectedEOF}, running(), "broke off"},
		"more objects than there can be":   {agents{objects: make([]tunnel.LiveObject, maxLiveObjects+1)}, running(), "broke off"},
		"an agent that does not come back": {agents{hangs: true}, running(), "did not answer within 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, echo, believe)
				s.Agents = test.agents
				s.Inventories = inventories{"team/shop": {Entries: []v1alpha1.InventoryEntry{
					{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "team", Name: "web", Wave: 2, Health: "Healthy"},
					{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "settings"},
				}}}
				test.release.Status.Exceptions = []v1alpha1.ObjectException{
					{Group: "apps", Kind: "Deployment", Namespace: "team", Name: "web", Reason: "Degraded", Message: "no pods"},
					{Kind: "Service", Namespace: "team", Name: "web", Reason: "Conflict", Message: "of another"},
				}
				got := answered[v1alpha1.ReleaseHealth](t, s, test.release, "/health/team/shop")
				if o := got.Observation; o.Live || !o.At.Equal(&reported) || o.Sequence != 7 || !strings.Contains(o.Message, test.says) {
					t.Errorf("observed %+v", o)
				}
				want := []v1alpha1.ObjectHealth{
					{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "team", Name: "web", Wave: 2, State: "Degraded", Message: "no pods", Reason: "Degraded", Problem: "no pods"},
					{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "settings", State: "Unknown"},
					{Kind: "Service", Namespace: "team", Name: "web", State: "Unknown", Reason: "Conflict", Problem: "of another"},
				}
				if diff := cmp.Diff(want, got.Objects); diff != "" {
					t.Errorf("objects (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestDiffIsWhatDriftedAndWhatWaits(t *testing.T) {
	t.Parallel()
	drifted := web(func(o *tunnel.LiveObject) {
		o.InSync, o.Reason = tunnel.False, "Drifted"
		o.Drift, o.MoreDrift = []tunnel.Difference{{Path: "spec.replicas", Wanted: "2", Live: "5", Manager: "kubectl-scale"}}, 1
	})
	renders := stored{
		"sha256:1": {line("a", "1"), line("b", "1"), line("c", "1")},
		"sha256:2": {line("a", "2"), line("c", "1"), line("d", "1")},
	}
	waits := func(r *v1alpha1.Release) { r.Status.RenderRef = "sha256:2" }
	change := func(kind v1alpha1.ChangeType, before, after string) string {
		return fmt.Sprint(kind, " ", before, " ", after)
	}
	for name, test := range map[string]struct {
		agents    agents
		release   *v1alpha1.Release
		different bool
		drift     int
		more      int32
		pending   []string
		problem   string
	}{
		"nothing differs":                  {agents{objects: []tunnel.LiveObject{web()}, end: tunnel.LiveEnd{Left: 9}}, running(), false, 0, 0, nil, ""},
		"an object was changed":            {agents{objects: []tunnel.LiveObject{drifted, web()}, end: tunnel.LiveEnd{Left: 9}}, running(), true, 1, 0, nil, ""},
		"more were than there is room for": {agents{objects: []tunnel.LiveObject{drifted}, end: tunnel.LiveEnd{Left: 9}}, running(), true, 1, 9, nil, ""},
		"one could not be compared":        {agents{objects: []tunnel.LiveObject{web(func(o *tunnel.LiveObject) { o.InSync = tunnel.Unknown })}}, running(), false, 1, 0, nil, ""},
		"a render waits":                   {agents{}, running(waits), true, 0, 0, []string{change("Changed", line("a", "1"), line("a", "2")), change("Added", "", line("d", "1")), change("Removed", line("b", "1"), "")}, ""},
		"nothing was applied yet":          {agents{}, running(waits, func(r *v1alpha1.Release) { r.Status.AppliedRef = "" }), true, 0, 0, []string{change("Added", "", line("a", "2")), change("Added", "", line("c", "1")), change("Added", "", line("d", "1"))}, ""},
		"the applied render is gone":       {agents{}, running(waits, func(r *v1alpha1.Release) { r.Status.AppliedRef = "sha256:3" }), true, 0, 0, nil, "not in the store any more: no such render: sha256:3"},
		"the agent is away, and drift known": {agents{err: ErrAway}, running(func(r *v1alpha1.Release) {
			r.Status.Exceptions = []v1alpha1.ObjectException{{Kind: "Service", Name: "web", Reason: "Drifted"}, {Kind: "Pod", Name: "p", Reason: "Degraded"}}
		}), true, 1, 0, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, echo, believe)
			s.Agents, s.Renders = test.agents, renders
			got := answered[v1alpha1.ReleaseDiff](t, s, test.release, "/diff/team/shop")
			if got.Different != test.different || len(got.Drift) != test.drift || got.MoreDrift != test.more || !strings.Contains(got.PendingProblem, test.problem) || test.problem == "" && got.PendingProblem != "" {
				t.Errorf("got %+v", got)
			}
			if live := !errors.Is(test.agents.err, ErrAway); got.Observation.Live != live {
				t.Errorf("live %t", got.Observation.Live)
			}
			var pending []string
			for _, c := range got.Pending {
				before, after := "", ""
				if c.Applied != nil {
					before = string(c.Applied.Raw)
				}
				if c.Wanted != nil {
					after = string(c.Wanted.Raw)
				}
				pending = append(pending, change(c.Change, before, after))
			}
			if diff := cmp.Diff(test.pending, pending); diff != "" {
				t.Errorf("pending (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiffOfAFileIsWithWhatWasApplied(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(context.Context, *v1alpha1.Release, string) (Result, error) {
		return Result{Digest: "sha256:2"}, nil
	}, believe)
	s.Renders = stored{"sha256:1": {line("a", "1")}, "sha256:2": {line("a", "2")}}
	s.Releases.(releases)["team/shop"] = running()
	for name, pending := range map[string]v1alpha1.ChangeType{"shop": v1alpha1.ChangeChanged, "new": v1alpha1.ChangeAdded} {
		unsaved := release(name, "x")
		unsaved.Status.AppliedRef = "sha256:9" // nobody's word
		code, raw := ask(s, http.MethodPost, "/diff/team/"+name, text(t, unsaved))
		var got v1alpha1.ReleaseDiff
		if err := json.Unmarshal(raw, &got); err != nil || code != http.StatusOK {
			t.Fatalf("%d %s: %v", code, raw, err)
		}
		if !got.Different || len(got.Pending) != 1 || got.Pending[0].Change != pending || got.Observation.Live || got.RenderRef != "sha256:2" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestDifferencesThatAreTooLargeAreCutAndSaid(t *testing.T) {
	t.Parallel()
	s := newServer(t, echo, believe)
	large := strings.Repeat("x", MaxAnswer/2-200)
	s.Renders = stored{
		"sha256:1": {line("a", "1")},
		"sha256:2": {line("a", large), line("b", large), line("c", large)},
		"sha256:3": {line("a", large), line("b", large), line("c", large), line("d", large), line("e", large)},
	}
	got := answered[v1alpha1.ReleaseDiff](t, s, running(func(r *v1alpha1.Release) { r.Status.RenderRef = "sha256:2" }), "/diff/team/shop")
	if !got.Different || len(got.Pending) != 2 || !strings.Contains(got.PendingProblem, "more than 8 MiB; these are the first") {
		t.Errorf("%d differences, %s", len(got.Pending), got.PendingProblem)
	}
	got = answered[v1alpha1.ReleaseDiff](t, s, running(func(r *v1alpha1.Release) { r.Status.RenderRef, r.Status.AppliedRef = "sha256:1", "sha256:3" }), "/diff/team/shop")
	if !got.Different || len(got.Pending) != 0 || !strings.Contains(got.PendingProblem, "the applied render has more than 16 MiB") {
		t.Errorf("%d differences, %s", len(got.Pending), got.PendingProblem)
	}
}

func TestHistorySaysWhatIsLeftOfWhatWasApplied(t *testing.T) {
	t.Parallel()
	s := newServer(t, echo, believe)
	s.Renders = stored{"sha256:1": {line("a", "1"), line("b", "1")}}
	got := answered[v1alpha1.ReleaseHistory](t, s, running(func(r *v1alpha1.Release) {
		r.Status.History = []v1alpha1.HistoryEntry{{RenderRef: "sha256:1", Sequence: 7}, {RenderRef: "sha256:0", Sequence: 5}}
	}), "/history/team/shop")
	want := []v1alpha1.HistoryDetail{
		{HistoryEntry: v1alpha1.HistoryEntry{RenderRef: "sha256:1", Sequence: 7}, Current: true, Applied: true, Stored: true, Count: 2},
		{HistoryEntry: v1alpha1.HistoryEntry{RenderRef: "sha256:0", Sequence: 5}},
	}
	if diff := cmp.Diff(want, got.Entries); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
