// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
	"kumodo.io/convoy/hub/keyring"
	"kumodo.io/convoy/hub/observer"
	"kumodo.io/convoy/pkg/tunnel"
)

// previews is an observer's other side: it remembers what it was asked for.
type previews struct {
	server *apiservertest.Server

	mu    sync.Mutex
	asked []*corev1alpha1.Release
	live  []tunnel.LiveObject // nil: the Cluster is away
	at    []string
	err   error
}

// Release implements observer.Releases with what the server has.
func (p *previews) Release(key types.NamespacedName) (*corev1alpha1.Release, bool) {
	found, err := p.server.Storage().Releases.Get(context.Background(), key)
	return found, err == nil
}

// Preview implements observer.Previewer.
func (p *previews) Preview(_ context.Context, release *corev1alpha1.Release, revision string) (observer.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return observer.Result{}, p.err
	}
	p.asked, p.at = append(p.asked, release), append(p.at, revision)
	return observer.Result{
		Digest: "sha256:1", SourceRevision: "main@sha1:1", Warnings: []string{"careful"},
		Objects: [][]byte{[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"<sealed:00>","n":"1.50"}}`)},
	}, nil
}

// Cluster implements observer.Releases: each is there.
func (p *previews) Cluster(key types.NamespacedName) (*corev1alpha1.Cluster, bool) {
	return newCluster(key.Namespace, key.Name), true
}

// Live implements observer.Agents.
func (p *previews) Live(_ context.Context, _, _ string, _ tunnel.LiveView, yield func(tunnel.LiveObject) error) (tunnel.LiveEnd, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live == nil {
		return tunnel.LiveEnd{}, observer.ErrAway
	}
	for _, object := range p.live {
		if err := yield(object); err != nil {
			return tunnel.LiveEnd{}, err
		}
	}
	return tunnel.LiveEnd{Sequence: 7, Objects: int32(len(p.live))}, nil
}

// Get implements observer.Inventories.
func (p *previews) Get(ctx context.Context, key types.NamespacedName) (*corev1alpha1.ReleaseInventory, error) {
	return p.server.Storage().Inventories.Get(ctx, key)
}

// Open implements observer.Renders: each has one object, named by its digest.
func (p *previews) Open(_ context.Context, digest string) (io.ReadCloser, error) {
	if !strings.HasPrefix(digest, "sha256:") {
		return nil, observer.ErrNoRender
	}
	lines := `{"format":"convoy.render/v1","count":1}` + "\n" + `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"<sealed:` + digest[7:] + `>"}}` + "\n"
	return io.NopCloser(strings.NewReader(lines)), nil
}

func (p *previews) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *previews) last(t *testing.T) (*corev1alpha1.Release, string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 0 {
		t.Fatal("nothing was rendered")
	}
	return p.asked[len(p.asked)-1], p.at[len(p.at)-1]
}

func (p *previews) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

// withObserver runs a server and an observer that have the same keys.
func withObserver(t *testing.T, rights *rights, options ...apiservertest.Option) (*apiservertest.Server, *previews) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	prover := (&keyring.Keyring{MACKey: []byte("shared by all roles")}).Prover()
	p := &previews{}
	p.server = apiservertest.Start(t, append([]apiservertest.Option{func(c *apiserver.Config) {
		c.ObserverURL = "http://" + listener.Addr().String()
		c.ProveToObserver = func(r *http.Request, body []byte) { prover.Sign(r, body, time.Now()) }
		if rights != nil {
			c.Authorizer = authorizer.AuthorizerFunc(rights.authorize)
		}
	}}, options...)...)
	s, err := observer.New(observer.Options{Listener: listener, Releases: p, Previewer: p, Agents: p, Inventories: p, Renders: p, Check: func(r *http.Request, body []byte) error {
		return prover.Check(r, body, time.Now())
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p.server, p
}

const previewPath = corePath + "/namespaces/team/releases/shop/preview"

func body(t *testing.T, r *corev1alpha1.Release) string {
	t.Helper()
	r.APIVersion, r.Kind = corev1alpha1.SchemeGroupVersion.String(), "Release"
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withSecret takes values from a Secret.
func withSecret(r *corev1alpha1.Release, name string) *corev1alpha1.Release {
	r.Spec.Content.Helm = &corev1alpha1.HelmContent{ValuesFrom: []corev1alpha1.ValuesReference{{Kind: corev1alpha1.ReferenceSecret, Name: name}}}
	return r
}

func TestPreviewShowsWhatAReleaseRendersTo(t *testing.T) {
	t.Parallel()
	s, p := withObserver(t, nil)
	c := newClient(t, s)
	stored := newRelease("team", "shop", "edge")
	create(t, c, stored)
	shown := func(t *testing.T, a answer, code int) {
		t.Helper()
		var got corev1alpha1.Preview
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.code != code || got.Kind != "Preview" || got.Name != "shop" || got.RenderRef != "sha256:1" || got.Count != 1 {
			t.Fatalf("%d %s: %v", a.code, a.body, err)
		}
		if diff := cmp.Diff([]string{"careful"}, got.Warnings); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
		object := map[string]any{}
		if err := json.Unmarshal(got.Objects[0].Raw, &object); err != nil || object["kind"] != "Secret" || !strings.Contains(string(got.Objects[0].Raw), "sealed:00") {
			t.Errorf("object %s: %v", got.Objects[0].Raw, err)
		}
	}
	t.Run("of what is stored", func(t *testing.T) {
		shown(t, raw(t, s, http.MethodGet, previewPath, ""), http.StatusOK)
		if asked, revision := p.last(t); asked.UID != stored.UID || revision != "" {
			t.Errorf("rendered %s at %q", asked.UID, revision)
		}
	})
	t.Run("of another revision", func(t *testing.T) {
		shown(t, raw(t, s, http.MethodGet, previewPath+"?revision=feature%2Fx", ""), http.StatusOK)
		if _, revision := p.last(t); revision != "feature/x" {
			t.Errorf("rendered %q", revision)
		}
	})
	t.Run("of a file that is not stored, with defaults filled in and nothing written", func(t *testing.T) {
		changed := withSecret(newRelease("team", "shop", "edge"), "mine")
		changed.Status.CheckedSecrets = []string{"somebody's"}
		changed.Status.RenderRef = "sha256:2"
		shown(t, raw(t, s, http.MethodPost, previewPath, body(t, changed)), http.StatusCreated)
		asked, _ := p.last(t)
		if asked.Spec.Content.Helm == nil || asked.Spec.SyncPolicy.Automatic == nil || asked.UID != stored.UID || asked.Status.RenderRef != "" {
			t.Errorf("rendered %+v", asked)
		}
		if diff := cmp.Diff([]string{"mine"}, asked.Status.CheckedSecrets); diff != "" {
			t.Errorf("Secrets that may be read (-want +got):\n%s", diff)
		}
		if now := get(t, c, &corev1alpha1.Release{}, "team", "shop"); now.ResourceVersion != stored.ResourceVersion {
			t.Error("the Release was written")
		}
	})
	t.Run("of a Release that does not exist yet", func(t *testing.T) {
		a := raw(t, s, http.MethodPost, corePath+"/namespaces/team/releases/new/preview", body(t, newRelease("", "new", "edge")))
		if asked, _ := p.last(t); a.code != http.StatusCreated || asked.Name != "new" || asked.Namespace != "team" || asked.UID != "" {
			t.Errorf("%d %s", a.code, a.body)
		}
		if a := raw(t, s, http.MethodGet, corePath+"/namespaces/team/releases/new", ""); a.code != http.StatusNotFound {
			t.Errorf("it was stored: %d %s", a.code, a.body)
		}
	})
	t.Run("and discovery and openapi have it", func(t *testing.T) {
		a := raw(t, s, http.MethodGet, corePath, "")
		if !strings.Contains(a.body, `"name":"releases/preview"`) {
			t.Errorf("discovery: %s", a.body)
		}
		a = raw(t, s, http.MethodGet, "/openapi/v3/apis/core.convoy.kumodo.io/v1alpha1", "")
		if !strings.Contains(a.body, "releases/{name}/preview") || !strings.Contains(a.body, `"revision"`) {
			t.Error("openapi has no path of a preview, or no revision")
		}
	})
}

func TestWhatPreviewRefuses(t *testing.T) {
	t.Parallel()
	s, p := withObserver(t, nil)
	create(t, newClient(t, s), newRelease("team", "shop", "edge"))
	bad := newRelease("team", "shop", "edge")
	bad.Spec.Source.Kind = "Folder"
	tests := map[string]struct {
		method, path, body string
		code               int
		says               string
	}{
		"a Release that is not there":            {http.MethodGet, corePath + "/namespaces/team/releases/none/preview", "", http.StatusNotFound, "none"},
		"a revision that is none":                {http.MethodGet, previewPath + "?revision=a%20b", "", http.StatusBadRequest, "revision"},
		"a revision without an end":              {http.MethodGet, previewPath + "?revision=" + strings.Repeat("x", 300), "", http.StatusBadRequest, "revision"},
		"a Release that create would refuse too": {http.MethodPost, previewPath, body(t, bad), http.StatusUnprocessableEntity, "spec.source.kind"},
		"another Release's name":                 {http.MethodPost, previewPath, body(t, newRelease("team", "other", "edge")), http.StatusUnprocessableEntity, "metadata.name"},
		"another namespace":                      {http.MethodPost, previewPath, body(t, newRelease("else", "shop", "edge")), http.StatusBadRequest, "namespace"},
		"another kind":                           {http.MethodPost, previewPath, `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"Cluster","metadata":{"name":"shop"}}`, http.StatusBadRequest, ""},
		"a field that there is not":              {http.MethodPost, previewPath + "?fieldValidation=Strict", strings.Replace(body(t, newRelease("team", "shop", "edge")), `"spec":{`, `"spec":{"x":1,`, 1), http.StatusBadRequest, "unknown field"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := raw(t, s, test.method, test.path, test.body)
			if a.code != test.code || !strings.Contains(a.body, test.says) {
				t.Errorf("%d %s\nwant %d with %q", a.code, a.body, test.code, test.says)
			}
		})
	}
	if n := p.count(); n != 0 {
		t.Errorf("%d of them were rendered", n)
	}
}

type renderFailed struct{ error }

func (renderFailed) Reason() string { return corev1alpha1.ReasonRenderFailed }

func TestWhatTheObserverSaysReachesTheUser(t *testing.T) {
	t.Parallel()
	s, p := withObserver(t, nil)
	create(t, newClient(t, s), newRelease("team", "shop", "edge"))
	p.fail(renderFailed{errors.New("a.yaml, document 2, line 7: no kind")})
	if a := raw(t, s, http.MethodGet, previewPath, ""); a.code != http.StatusUnprocessableEntity || !strings.Contains(a.body, "RenderFailed: a.yaml, document 2, line 7: no kind") {
		t.Errorf("%d %s", a.code, a.body)
	}
	p.fail(errors.New("disk"))
	if a := raw(t, s, http.MethodGet, previewPath, ""); a.code != http.StatusInternalServerError || strings.Contains(a.body, "disk") {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestWithoutAnObserverAPreviewSaysWhichFlagIsMissing(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	create(t, newClient(t, s), newRelease("team", "shop", "edge"))
	for method, body := range map[string]string{http.MethodGet: "", http.MethodPost: body(t, newRelease("team", "shop", "edge"))} {
		if a := raw(t, s, method, previewPath, body); a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, "--observer-url") {
			t.Errorf("%s: %d %s", method, a.code, a.body)
		}
	}
}

func TestAnObserverWithOtherKeysIsNoRefusalOfTheUser(t *testing.T) {
	t.Parallel()
	s, _ := withObserver(t, nil, func(c *apiserver.Config) { c.ProveToObserver = func(*http.Request, []byte) {} })
	create(t, newClient(t, s), newRelease("team", "shop", "edge"))
	if a := raw(t, s, http.MethodGet, previewPath, ""); a.code != http.StatusInternalServerError || !strings.Contains(a.body, "same keys") {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// Whoever may preview may not thereby read what he may not get.
func TestNobodyPreviewsWithASecretThatHeMayNotGet(t *testing.T) {
	t.Parallel()
	host := &rights{denied: map[string]bool{}}
	s, p := withObserver(t, host)
	create(t, newClient(t, s), withSecret(newRelease("team", "shop", "edge"), "theirs"))
	if a := raw(t, s, http.MethodGet, previewPath, ""); a.code != http.StatusOK {
		t.Fatalf("while he may: %d %s", a.code, a.body)
	}
	host.deny("get secrets theirs")
	before := p.count()
	for name, method := range map[string]string{"of what is stored": http.MethodGet, "of a file": http.MethodPost} {
		t.Run(name, func(t *testing.T) {
			text := ""
			if method == http.MethodPost {
				text = body(t, withSecret(newRelease("team", "shop", "edge"), "theirs"))
			}
			a := raw(t, s, method, previewPath, text)
			if a.code != http.StatusForbidden || !strings.Contains(a.body, "spec.content.helm.valuesFrom[0].name") || !strings.Contains(a.body, `cannot get Secret \"theirs\"`) {
				t.Errorf("%d %s, want Forbidden with field and Secret", a.code, a.body)
			}
		})
	}
	if p.count() != before {
		t.Error("it was rendered")
	}
	host.deny("get releases/preview", "create releases/preview")
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if a := raw(t, s, method, previewPath, body(t, newRelease("team", "shop", "edge"))); a.code != http.StatusForbidden {
			t.Errorf("%s without the right: %d %s", method, a.code, a.body)
		}
	}
}
