// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/source/registrytest"
)

const mediaTree = "application/vnd.cncf.flux.content.v1.tar+gzip"

func pushTree(t *testing.T, r *registrytest.Registry, tag, text string) string {
	t.Helper()
	layer := r.Blob(mediaTree, registrytest.Tgz(t, registrytest.Entry{Name: "app/cm.yaml", Data: text}), nil)
	return r.Push(t, "team/app", tag, registrytest.Manifest(layer)).Digest.String()
}

func artifact(r *registrytest.Registry) *v1alpha1.OCIRegistry {
	o := &v1alpha1.OCIRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "o1"}}
	o.Spec.URL = "oci://" + r.Host() + "/team/app"
	return o
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestAnArtifactIsFetchedOnceHoweverManyWantIt(t *testing.T) {
	r := registrytest.New(t, true)
	digest := pushTree(t, r, "latest", "a: b\n")
	w := newWorld(t)
	object := artifact(r)
	var group sync.WaitGroup
	for range 30 {
		group.Go(func() {
			revision, err := w.Resolve(deadline(t), source.Want{Object: object}, time.Minute)
			if err != nil || revision.Key != digest || revision.Display != "latest@"+digest {
				t.Errorf("got %+v, %v", revision, err)
				return
			}
			snapshot, err := w.Snapshot(deadline(t), source.Want{Object: object}, revision)
			if err != nil {
				t.Error(err)
				return
			}
			files, err := untar(snapshot, ".")
			if diff := cmp.Diff(map[string]string{"app/cm.yaml": "a: b\n"}, files); diff != "" || err != nil {
				t.Errorf("files (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
	group.Wait()
	blobs := 0
	for _, request := range r.Requests() {
		if strings.Contains(request.Path, "/blobs/") {
			blobs++
		}
	}
	if blobs != 1 {
		t.Errorf("%d blobs were fetched, want 1", blobs)
	}

	// A tag that moves is followed; a digest asks nobody.
	moved := pushTree(t, r, "latest", "a: c\n")
	if revision, err := w.Resolve(deadline(t), source.Want{Object: object}, 0); err != nil || revision.Key != moved {
		t.Errorf("after the tag moved: %+v, %v", revision, err)
	}
	asked := len(r.Requests())
	revision, err := w.Resolve(deadline(t), source.Want{Object: object, Revision: digest}, 0)
	if err != nil || revision.Key != digest || len(r.Requests()) != asked {
		t.Errorf("a digest: %+v, %v, %d requests", revision, err, len(r.Requests())-asked)
	}
}

func TestAnArtifactWithoutTheSignatureThatItsSourceRequiresIsNotUsed(t *testing.T) {
	r := registrytest.New(t, true)
	digest := pushTree(t, r, "latest", "a: b\n")
	w := newWorld(t)
	open := artifact(r)
	revision, err := w.Resolve(deadline(t), source.Want{Object: open}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Snapshot(deadline(t), source.Want{Object: open}, revision); err != nil {
		t.Fatal(err)
	}
	strict := open.DeepCopy()
	strict.Spec.Verify = &v1alpha1.SourceVerify{Provider: "cosign", SecretRef: v1alpha1.SecretReference{Name: "keys"}}
	strict.Status.CheckedSecrets = []string{"keys"}
	_, err = w.Resolve(deadline(t), source.Want{Object: strict}, time.Hour)
	wantFailure(t, err, v1alpha1.ReasonSecretMissing, "keys")
	w.secrets.set("keys", "team.txt", "x")
	_, err = w.Resolve(deadline(t), source.Want{Object: strict}, 0)
	wantFailure(t, err, v1alpha1.ReasonSecretMissing, "ends in .pub")
	w.secrets.set("keys", "team.pub", publicKey)
	for _, want := range []source.Want{{Object: strict}, {Object: strict, Revision: digest}} {
		_, err = w.Resolve(deadline(t), want, 0)
		wantFailure(t, err, v1alpha1.ReasonSignatureInvalid, "")
	}
	// What was fetched while none was required is not given out.
	if _, err := w.Snapshot(deadline(t), source.Want{Object: strict}, revision); reason(err) != v1alpha1.ReasonSignatureInvalid {
		t.Errorf("the snapshot of before: %v", err)
	}
}

// publicKey is of a key that nobody has any more.
const publicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE2t94SDbNlxZ6w9eah/QnxLmzXPNx
qIZQaefSbhwJD5FcwIJ2v+nfwjGXiSMiRtNzDwNmk+0OwC7PCGjZ1WWXvw==
-----END PUBLIC KEY-----
`

// charts is a repository with an index.
type charts struct {
	*registrytest.Server
	mu       sync.Mutex
	archives map[string][]byte
	indexes  atomic.Int32
}

func newCharts(t *testing.T) *charts {
	t.Helper()
	c := &charts{archives: map[string][]byte{}}
	c.Server = registrytest.Serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.URL.Path == "/index.yaml" {
			c.indexes.Add(1)
			fmt.Fprint(w, c.index())
			return
		}
		if data := c.archives[strings.TrimPrefix(r.URL.Path, "/")]; data != nil {
			if _, err := w.Write(data); err != nil {
				t.Error(err)
			}
			return
		}
		http.NotFound(w, r)
	}))
	return c
}

func (c *charts) add(t *testing.T, name, version string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.archives[name+"-"+version+".tgz"] = registrytest.Chart(t, name, version)
}

func (c *charts) index() string {
	text := "apiVersion: v1\nentries:\n"
	for _, name := range []string{"api", "web"} {
		text += "  " + name + ":\n"
		for _, version := range []string{"2.0.0", "1.1.0", "1.0.0"} {
			if data := c.archives[name+"-"+version+".tgz"]; data != nil {
				sum := sha256.Sum256(data)
				text += fmt.Sprintf("  - name: %s\n    version: %s\n    digest: %s\n    urls: [%s-%s.tgz]\n", name, version, hex.EncodeToString(sum[:]), name, version)
			}
		}
	}
	return text
}

func TestOneDownloadOfAnIndexServesAllWhoWantAChartOfIt(t *testing.T) {
	server := newCharts(t)
	server.add(t, "web", "1.0.0")
	server.add(t, "api", "1.0.0")
	w := newWorld(t)
	object := &v1alpha1.HelmRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "charts", UID: "h1"}}
	object.Spec.URL = server.URL
	web := source.Want{Object: object, Chart: "web", Version: "1.x"}
	resolve := func(want source.Want) source.Revision {
		t.Helper()
		revision, err := w.Resolve(deadline(t), want, 5*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	if _, err := w.Check(deadline(t), object); err != nil {
		t.Fatal(err)
	}
	first := resolve(web)
	resolve(source.Want{Object: object, Chart: "api"})
	if first.Version != "1.0.0" || !strings.HasPrefix(first.Display, "1.0.0@sha256:") {
		t.Errorf("revision %+v", first)
	}
	asked := server.indexes.Load()
	// Ten minutes later the source was checked, and its index is the same.
	w.clock.Step(10 * time.Minute)
	if _, err := w.Check(deadline(t), object); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		resolve(web)
		resolve(source.Want{Object: object, Chart: "api"})
	}
	if n := server.indexes.Load() - asked; n != 1 {
		t.Errorf("the index was downloaded %d times, want once, by the check", n)
	}
	// A new version in the index is found after the next check.
	server.add(t, "web", "1.1.0")
	server.add(t, "web", "2.0.0")
	w.clock.Step(10 * time.Minute)
	if _, err := w.Check(deadline(t), object); err != nil {
		t.Fatal(err)
	}
	second := resolve(web)
	if second.Version != "1.1.0" {
		t.Errorf("version %s, want the highest in the range", second.Version)
	}
	snapshot, err := w.Snapshot(deadline(t), web, second)
	if err != nil {
		t.Fatal(err)
	}
	files, err := untar(snapshot, "web")
	if err != nil || !strings.Contains(files["web/Chart.yaml"], "version: 1.1.0") {
		t.Errorf("files %v, %v", files, err)
	}
	_, err = w.Resolve(deadline(t), source.Want{Object: object, Chart: "db"}, 0)
	wantFailure(t, err, v1alpha1.ReasonRefNotFound, "db")
	_, err = w.Resolve(deadline(t), source.Want{Object: object, Version: "1.0.0"}, 0)
	wantFailure(t, err, v1alpha1.ReasonInvalid, "content.helm.chart")
}

func TestAHostThatWantsToBeLeftAloneIsNotAskedByAnySource(t *testing.T) {
	var asked atomic.Int32
	limited := registrytest.Serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	w := newWorld(t)
	source1, source2 := gitRepository(limited.URL+"/a.git"), gitRepository(limited.URL+"/b.git")
	source2.Name = "other"
	_, err := w.Resolve(deadline(t), source.Want{Object: source1}, 0)
	wantFailure(t, err, v1alpha1.ReasonRateLimited, "429")
	before := asked.Load()
	_, err = w.Resolve(deadline(t), source.Want{Object: source2}, 0)
	wantFailure(t, err, v1alpha1.ReasonRateLimited, "asked to be left alone")
	if asked.Load() != before {
		t.Error("another source of the host asked it all the same")
	}
	w.clock.Step(121 * time.Second)
	_, err = w.Resolve(deadline(t), source.Want{Object: source2}, 0)
	wantFailure(t, err, v1alpha1.ReasonRateLimited, "429")
	if asked.Load() == before {
		t.Error("it was not asked again after the time")
	}
}

func TestWhatASourceTellsIsNotAnsweredFromMemory(t *testing.T) {
	r := registrytest.New(t, true)
	pushTree(t, r, "latest", "a: b\n")
	w := newWorld(t)
	object := artifact(r)
	if _, err := w.Resolve(deadline(t), source.Want{Object: object}, time.Hour); err != nil {
		t.Fatal(err)
	}
	moved := pushTree(t, r, "latest", "a: c\n")
	if revision, err := w.Resolve(deadline(t), source.Want{Object: object}, time.Hour); err != nil || revision.Key == moved {
		t.Fatalf("before it was told: %+v, %v", revision, err)
	}
	w.Forget(object)
	if revision, err := w.Resolve(deadline(t), source.Want{Object: object}, time.Hour); err != nil || revision.Key != moved {
		t.Errorf("after it was told: %+v, %v", revision, err)
	}
}
