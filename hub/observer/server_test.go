// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type releases map[string]*v1alpha1.Release

func (r releases) Release(key types.NamespacedName) (*v1alpha1.Release, bool) {
	found, ok := r[key.String()]
	return found, ok
}

// Cluster implements Releases: all are on one.
func (releases) Cluster(key types.NamespacedName) (*v1alpha1.Cluster, bool) {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "c-" + types.UID(key.Name)}}, key.Name != "none"
}

type previewFunc func(ctx context.Context, release *v1alpha1.Release, revision string) (Result, error)

func (f previewFunc) Preview(ctx context.Context, release *v1alpha1.Release, revision string) (Result, error) {
	return f(ctx, release, revision)
}

func release(name, path string) *v1alpha1.Release {
	return &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec:       v1alpha1.ReleaseSpec{Content: v1alpha1.ReleaseContent{Path: path}},
	}
}

// echo renders one object that says what was asked for.
func echo(_ context.Context, release *v1alpha1.Release, revision string) (Result, error) {
	return Result{
		Digest: "sha256:1", SourceRevision: "main@" + revision, TargetNamespace: "there", Warnings: []string{"careful"},
		Objects: [][]byte{fmt.Appendf(nil, `{"kind":"ConfigMap","path":%q}`, release.Spec.Content.Path)},
	}, nil
}

func newServer(t *testing.T, previewer previewFunc, check Check) *Server {
	t.Helper()
	// Never accepted from: the tests call the handler.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := New(Options{
		Listener: listener, Releases: releases{"team/shop": release("shop", "stored")}, Previewer: previewer, Check: check,
		Agents: agents{}, Inventories: inventories{}, Renders: stored{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func believe(*http.Request, []byte) error { return nil }

func ask(s *Server, method, url string, body []byte) (int, []byte) {
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, httptest.NewRequest(method, url, bytes.NewReader(body)))
	return answer.Code, answer.Body.Bytes()
}

func text(t *testing.T, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestPreviews(t *testing.T) {
	t.Parallel()
	s := newServer(t, echo, believe)
	tests := map[string]struct {
		method, url string
		body        *v1alpha1.Release
		path        string
		revision    string
	}{
		"of a Release as it is stored":    {http.MethodGet, "/preview/team/shop", nil, "stored", "main@"},
		"of another revision":             {http.MethodGet, "/preview/team/shop?revision=v2", nil, "stored", "main@v2"},
		"of a change that is not stored":  {http.MethodPost, "/preview/team/shop", release("shop", "changed"), "changed", "main@"},
		"of a Release that is not stored": {http.MethodPost, "/preview/team/new", release("new", "new"), "new", "main@"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body []byte
			if test.body != nil {
				body = text(t, test.body)
			}
			code, raw := ask(s, test.method, test.url, body)
			var got v1alpha1.Preview
			if err := json.Unmarshal(raw, &got); err != nil || code != http.StatusOK {
				t.Fatalf("%d %s: %v", code, raw, err)
			}
			if got.Kind != "Preview" || got.Namespace != "team" || got.RenderRef != "sha256:1" || got.SourceRevision != test.revision ||
				got.TargetNamespace != "there" || got.Count != 1 || len(got.Warnings) != 1 || len(got.Objects) != 1 {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(fmt.Sprintf(`{"kind":"ConfigMap","path":%q}`, test.path), string(got.Objects[0].Raw)); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}
}

type reasoned struct{ error }

func (reasoned) Reason() string { return v1alpha1.ReasonRenderFailed }

func TestWhatIsRefusedSaysWhy(t *testing.T) {
	t.Parallel()
	failing := func(err error) previewFunc {
		return func(context.Context, *v1alpha1.Release, string) (Result, error) { return Result{}, err }
	}
	large := func(context.Context, *v1alpha1.Release, string) (Result, error) {
		return Result{Objects: [][]byte{make([]byte, MaxAnswer), []byte("{}")}}, nil
	}
	tests := map[string]struct {
		method, url string
		body        []byte
		previewer   previewFunc
		check       Check
		code        int
		says        string
	}{
		"a Release that is not there":          {url: "/preview/team/none", code: http.StatusNotFound, says: "team/none"},
		"a body that is no Release":            {method: http.MethodPost, url: "/preview/team/shop", body: []byte("{"), code: http.StatusBadRequest, says: "is no Release"},
		"a body that is another Release":       {method: http.MethodPost, url: "/preview/team/shop", body: text(t, release("other", "")), code: http.StatusBadRequest, says: "team/other"},
		"a body without an end":                {method: http.MethodPost, url: "/preview/team/shop", body: make([]byte, MaxBody+1), code: http.StatusRequestEntityTooLarge, says: "3 MiB"},
		"content that does not render":         {previewer: failing(reasoned{errors.New("a.yaml, document 1, line 2: bad")}), url: "/preview/team/shop", code: http.StatusUnprocessableEntity, says: "RenderFailed: a.yaml, document 1, line 2"},
		"a fault of the hub, which is no news": {previewer: failing(errors.New("disk /var/lib")), url: "/preview/team/shop", code: http.StatusInternalServerError, says: "the log of the hub"},
		"more objects than an answer may have": {previewer: large, url: "/preview/team/shop", code: http.StatusRequestEntityTooLarge, says: "kubectl convoy render"},
		"a request of somebody else":           {check: func(*http.Request, []byte) error { return errors.New("no proof") }, url: "/preview/team/shop", code: http.StatusForbidden, says: "only the hub's API server"},
		"the health of one that is not there":  {url: "/health/team/none", code: http.StatusNotFound, says: "team/none"},
		"a question that there is not":         {url: "/secrets/team/shop", code: http.StatusNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.method == "" {
				test.method = http.MethodGet
			}
			if test.previewer == nil {
				test.previewer = echo
			}
			if test.check == nil {
				test.check = believe
			}
			code, raw := ask(newServer(t, test.previewer, test.check), test.method, test.url, test.body)
			if code != test.code || !strings.Contains(string(raw), test.says) || strings.Contains(string(raw), "/var/lib") {
				t.Errorf("%d %s, want %d with %q", code, raw, test.code, test.says)
			}
		})
	}
}

// A chart that takes for ever costs a place until its time is over; who comes meanwhile
// waits, and only so many do.
func TestFewPreviewsAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		s := newServer(t, func(ctx context.Context, _ *v1alpha1.Release, _ string) (Result, error) {
			most.Store(max(most.Load(), running.Add(1)))
			<-ctx.Done()
			running.Add(-1)
			return Result{}, ctx.Err()
		}, believe)
		codes := make(chan int, maxPreviews+maxWaiting)
		for i := range maxPreviews + maxWaiting {
			s.Releases.(releases)[fmt.Sprintf("team%d/shop", i%5)] = &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("team", i%5), Name: "shop"}}
		}
		for i := range maxPreviews + maxWaiting {
			go func() {
				code, _ := ask(s, http.MethodGet, fmt.Sprintf("/preview/team%d/shop", i%5), nil)
				codes <- code
			}()
		}
		synctest.Wait()
		if code, raw := ask(s, http.MethodGet, "/preview/team/shop", nil); code != http.StatusTooManyRequests || !bytes.Contains(raw, []byte("retryAfterSeconds")) {
			t.Errorf("one too many: %d %s", code, raw)
		}
		start := time.Now()
		for range maxPreviews + maxWaiting {
			// Those that have had their turn make room for the others.
			if code := <-codes; code != http.StatusGatewayTimeout && code != http.StatusTooManyRequests {
				t.Errorf("answered %d", code)
			}
		}
		if took := time.Since(start); took != previewTime || most.Load() != maxPreviews {
			t.Errorf("ended after %s with %d at once", took, most.Load())
		}
		if p := s.previews; len(p.queues) != 0 || len(p.waiting) != 0 || len(p.making) != 0 {
			t.Errorf("left: %d queues, %d waiting, %d made", len(p.queues), len(p.waiting), len(p.making))
		}
	})
}

// Charts without an end of as many namespaces as there are places leave one to the next
// who asks, when they have had their time.
func TestNamespacesWithEndlessChartsHoldUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(ctx context.Context, r *v1alpha1.Release, revision string) (Result, error) {
			if r.Namespace != "team" {
				<-ctx.Done()
				return Result{}, ctx.Err()
			}
			return echo(ctx, r, revision)
		}, believe)
		codes := make(chan int, maxPreviews)
		for i := range maxPreviews {
			namespace := fmt.Sprint("endless", i)
			s.Releases.(releases)[namespace+"/shop"] = &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}}
			go func() {
				code, _ := ask(s, http.MethodGet, "/preview/"+namespace+"/shop", nil)
				codes <- code
			}()
		}
		synctest.Wait()
		start := time.Now()
		if code, raw := ask(s, http.MethodGet, "/preview/team/shop", nil); code != http.StatusOK || time.Since(start) != fairTime {
			t.Errorf("the next one: %d %s after %s, want it after %s", code, raw, time.Since(start), fairTime)
		}
		got := map[int]int{}
		for range maxPreviews {
			got[<-codes]++
		}
		// The one that made room is told so; the others go on, since nobody else waits.
		if diff := cmp.Diff(map[int]int{http.StatusTooManyRequests: 1, http.StatusGatewayTimeout: maxPreviews - 1}, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		if len(s.previews.turns) != 0 || s.previews.wanted != 0 {
			t.Errorf("left: %d turns, %d who wait", len(s.previews.turns), s.previews.wanted)
		}
	})
}

// The charts of one namespace that take for ever hold up that namespace alone.
func TestANamespaceHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(ctx context.Context, r *v1alpha1.Release, revision string) (Result, error) {
			if r.Namespace == "endless" {
				<-ctx.Done()
				return Result{}, ctx.Err()
			}
			return echo(ctx, r, revision)
		}, believe)
		s.Releases.(releases)["endless/shop"] = &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "endless", Name: "shop"}}
		codes := make(chan int, maxPreviews+maxWaiting)
		for range maxPreviews + maxWaiting {
			go func() {
				code, _ := ask(s, http.MethodGet, "/preview/endless/shop", nil)
				codes <- code
			}()
		}
		synctest.Wait()
		if n := len(codes); n != maxPreviews+maxWaiting-maxAskedPerNamespace {
			t.Errorf("%d of one namespace are sent away", n)
		}
		start := time.Now()
		if code, raw := ask(s, http.MethodGet, "/preview/team/shop", nil); code != http.StatusOK || time.Since(start) != 0 {
			t.Errorf("another namespace: %d %s after %s", code, raw, time.Since(start))
		}
		got := map[int]int{}
		for range maxPreviews + maxWaiting {
			got[<-codes]++
		}
		if diff := cmp.Diff(map[int]int{http.StatusTooManyRequests: maxPreviews + maxWaiting - maxAskedPerNamespace, http.StatusGatewayTimeout: maxAskedPerNamespace}, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
}

func TestTheServerEndsWhenItIsTold(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Listener: listener, Releases: releases{}, Previewer: previewFunc(echo), Check: believe, Agents: agents{}, Inventories: inventories{}, Renders: stored{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/preview/team/none", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusNotFound {
		t.Errorf("%d, %v", answer.StatusCode, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
