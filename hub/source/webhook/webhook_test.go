// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/api/source/v1alpha1"
)

// world has sources, Secrets, and what was told.
type world struct {
	sources map[string]v1alpha1.Source
	secrets map[string]string
	read    int
	told    []string
	clock   *clocktesting.FakePassiveClock
	handler http.Handler
}

func (w *world) Source(kind string, key types.NamespacedName) (v1alpha1.Source, bool) {
	found, ok := w.sources[kind+"/"+key.String()]
	return found, ok
}

func (w *world) GetSecret(_ context.Context, namespace, name string) (map[string][]byte, error) {
	w.read++
	token, ok := w.secrets[namespace+"/"+name]
	if !ok {
		return nil, errors.New("there is none")
	}
	return map[string][]byte{"token": []byte(token)}, nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{sources: map[string]v1alpha1.Source{}, secrets: map[string]string{"team/hook": "s3cret\n"}, clock: clocktesting.NewFakePassiveClock(time.Now())}
	add := func(name, form string, checked ...string) {
		o := &v1alpha1.OCIRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		if form != "" {
			o.Spec.Webhook = &v1alpha1.SourceWebhook{Type: form, SecretRef: v1alpha1.SecretReference{Name: "hook"}}
		}
		o.Status.CheckedSecrets = checked
		w.sources["OCIRegistry/team/"+name] = o
	}
	add("generic", v1alpha1.WebhookGeneric, "hook")
	add("github", v1alpha1.WebhookGitHub, "hook")
	add("silent", "")
	add("unchecked", v1alpha1.WebhookGeneric)
	h, err := New(Options{Sources: w, Secrets: w, Clock: w.clock, Told: func(s v1alpha1.Source) { w.told = append(w.told, s.GetName()) }})
	if err != nil {
		t.Fatal(err)
	}
	w.handler = h.Mux()
	return w
}

func sign(key, body string) string {
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(sum.Sum(nil))
}

func (w *world) call(path, body string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/v1/hooks/"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, request)
	return answer
}

func TestCalls(t *testing.T) {
	const body = `{"ref":"refs/heads/main"}`
	good := sign("s3cret", body)
	for name, c := range map[string]struct {
		path    string
		headers []string
		code    int
		told    bool
	}{
		"a signed one in the generic form is taken":       {"team/ociregistry/generic", []string{"X-Convoy-Signature", good}, 202, true},
		"a signed one in GitHub's form is taken":          {"team/OCIRegistry/github", []string{"X-Hub-Signature-256", good, "X-GitHub-Event", "push"}, 202, true},
		"GitHub's ping is answered and tells nothing":     {"team/OCIRegistry/github", []string{"X-Hub-Signature-256", good, "X-GitHub-Event", "ping"}, 202, false},
		"one signed with another key is refused":          {"team/ociregistry/generic", []string{"X-Convoy-Signature", sign("other", body)}, 404, false},
		"one signed over another body is refused":         {"team/ociregistry/generic", []string{"X-Convoy-Signature", sign("s3cret", "x")}, 404, false},
		"one with the header of the other form, too":      {"team/ociregistry/generic", []string{"X-Hub-Signature-256", good}, 404, false},
		"one with no signature, too":                      {"team/ociregistry/generic", nil, 404, false},
		"one with half a signature, too":                  {"team/ociregistry/generic", []string{"X-Convoy-Signature", good[:40]}, 404, false},
		"one signed with SHA-1's name, too":               {"team/ociregistry/generic", []string{"X-Convoy-Signature", strings.Replace(good, "sha256", "sha1", 1)}, 404, false},
		"one about a source that has no webhook, too":     {"team/ociregistry/silent", []string{"X-Convoy-Signature", good}, 404, false},
		"one about a source whose Secret was not checked": {"team/ociregistry/unchecked", []string{"X-Convoy-Signature", good}, 404, false},
		"one about a source that is not there":            {"team/ociregistry/none", []string{"X-Convoy-Signature", good}, 404, false},
		"one about a kind that is not there":              {"team/bucket/generic", []string{"X-Convoy-Signature", good}, 404, false},
		"one whose path has two slashes in a row":         {"team//ociregistry/generic", []string{"X-Convoy-Signature", good}, 404, false},
		"one whose path has dots":                         {"team/./ociregistry/generic", []string{"X-Convoy-Signature", good}, 404, false},
		"one whose path ends with a slash":                {"team/ociregistry/generic/", []string{"X-Convoy-Signature", good}, 404, false},
		"one about another namespace's source":            {"other/ociregistry/generic", []string{"X-Convoy-Signature", good}, 404, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			answer := w.call(c.path, body, c.headers...)
			if answer.Code != c.code || (len(w.told) == 1) != c.told {
				t.Errorf("code %d, want %d; told %v", answer.Code, c.code, w.told)
			}
			if c.code == http.StatusNotFound && answer.Body.String() != "Not Found\n" {
				t.Errorf("the answer says %q: more than that it was refused", answer.Body)
			}
		})
	}
}

func TestABodyThatIsTooLargeIsRefusedBeforeItsSignatureIsLookedAt(t *testing.T) {
	w := newWorld(t)
	large := strings.Repeat("x", MaxBodyBytes+1)
	if answer := w.call("team/ociregistry/generic", large, "X-Convoy-Signature", sign("s3cret", large)); answer.Code != http.StatusRequestEntityTooLarge || w.read != 0 {
		t.Errorf("code %d, %d Secrets read", answer.Code, w.read)
	}
	// One that does not say how large it is is cut off.
	request := httptest.NewRequest(http.MethodPost, "/v1/hooks/team/ociregistry/generic", strings.NewReader(large))
	request.ContentLength = -1
	request.Header.Set("X-Convoy-Signature", sign("s3cret", large))
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, request)
	if answer.Code != http.StatusRequestEntityTooLarge || len(w.told) != 0 {
		t.Errorf("code %d, told %v", answer.Code, w.told)
	}
}

func TestACallerWithWrongSignaturesIsBoundedAndHoldsUpNobodyBehindHisAddress(t *testing.T) {
	w := newWorld(t)
	good, bad := sign("s3cret", "x"), sign("other", "x")
	codes := map[int]int{}
	for range 50 {
		codes[w.call("team/ociregistry/generic", "x", "X-Convoy-Signature", bad).Code]++
	}
	if codes[http.StatusNotFound] != oneBurst || codes[http.StatusTooManyRequests] != 50-oneBurst {
		t.Errorf("answers to wrong signatures: %v", codes)
	}
	if w.read != 1 {
		t.Errorf("%d Secrets were read for 50 calls at once", w.read)
	}
	if answer := w.call("team/ociregistry/generic", "x", "X-Convoy-Signature", bad); answer.Header().Get("Retry-After") == "" {
		t.Error("who called too often is not told when to come back")
	}
	for range 50 {
		if answer := w.call("team/ociregistry/generic", "x", "X-Convoy-Signature", good); answer.Code != http.StatusAccepted {
			t.Fatalf("a right signature from the same address: code %d", answer.Code)
		}
	}
	for range 2 * allBurst {
		w.call("team/ociregistry/none", "x", "X-Convoy-Signature", bad)
	}
	if answer := w.call("team/ociregistry/github", "x", "X-Hub-Signature-256", good); answer.Code != http.StatusAccepted {
		t.Errorf("another source: code %d", answer.Code)
	}
	w.clock.SetTime(w.clock.Now().Add(5 * time.Second))
	if answer := w.call("team/ociregistry/generic", "x", "X-Convoy-Signature", bad); answer.Code != http.StatusNotFound {
		t.Errorf("five seconds later: code %d", answer.Code)
	}
}

func TestWhatCannotBeASignatureCostsNoReadOfASecret(t *testing.T) {
	w := newWorld(t)
	if answer := w.call("team/ociregistry/generic", "x", "X-Convoy-Signature", "sha256=00"); answer.Code != http.StatusNotFound || w.read != 0 {
		t.Errorf("code %d, %d Secrets read", answer.Code, w.read)
	}
}

func TestANewKeyCountsAfterSeconds(t *testing.T) {
	w := newWorld(t)
	call := func(key string) int {
		return w.call("team/ociregistry/generic", "x", "X-Convoy-Signature", sign(key, "x")).Code
	}
	if code := call("s3cret"); code != http.StatusAccepted {
		t.Fatalf("code %d", code)
	}
	w.secrets["team/hook"] = "new"
	w.clock.SetTime(w.clock.Now().Add(keyAge))
	if code := call("new"); code != http.StatusAccepted {
		t.Errorf("the new key: code %d", code)
	}
	if code := call("s3cret"); code != http.StatusNotFound {
		t.Errorf("the old key: code %d", code)
	}
}

// A body that never ends.
func TestSlowBodiesForOneSourceLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		good := sign("s3cret", "x")
		var writers []*io.PipeWriter
		codes := make(chan int, maxCalls)
		for range maxCalls - 1 {
			reader, writer := io.Pipe()
			writers = append(writers, writer)
			go func() {
				request := httptest.NewRequest(http.MethodPost, "/v1/hooks/team/ociregistry/none", reader)
				request.Header.Set("X-Convoy-Signature", good)
				answer := httptest.NewRecorder()
				w.handler.ServeHTTP(answer, request)
				codes <- answer.Code
			}()
		}
		synctest.Wait()
		if answer := w.call("team/ociregistry/generic", "x", "X-Convoy-Signature", good); answer.Code != http.StatusAccepted {
			t.Errorf("another source: code %d", answer.Code)
		}
		// Those that found no place are told to come back.
		<-time.After(placeTimeout + time.Second) // of the bubble: no time passes
		for range maxCalls - 1 - maxChecksPerPath {
			if code := <-codes; code != http.StatusTooManyRequests {
				t.Errorf("code %d", code)
			}
		}
		for _, writer := range writers {
			if err := writer.Close(); err != nil {
				t.Error(err)
			}
		}
		for range maxChecksPerPath {
			<-codes
		}
	})
}

func TestOtherPathsAndMethodsAreNotServed(t *testing.T) {
	w := newWorld(t)
	for path, method := range map[string]string{
		"/v1/hooks/team/ociregistry/generic": http.MethodGet, "/v1/hooks/team/ociregistry/github": http.MethodDelete,
		"/v1/hooks/team/generic": http.MethodPost, "/metrics": http.MethodGet, "/": http.MethodPut,
	} {
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, httptest.NewRequest(method, path, nil))
		if answer.Code != http.StatusNotFound || answer.Body.String() != "Not Found\n" || answer.Header().Get("Allow") != "" {
			t.Errorf("%s %s: code %d %q", method, path, answer.Code, answer.Body)
		}
	}
}
