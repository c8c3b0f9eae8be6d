// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	testclock "k8s.io/utils/clock/testing"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	layout "oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"kumodo.io/convoy/e2e/registry"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/file"
	"kumodo.io/convoy/hub/store/oci"
	"kumodo.io/convoy/hub/store/storetest"
)

var repositories atomic.Int64

// open makes a backend on a repository of its own.
func open(t *testing.T, r *registry.Registry, change func(*oci.Options)) (*oci.Backend, string) {
	t.Helper()
	name := fmt.Sprintf("convoy/renders-%d", repositories.Add(1))
	options := oci.Options{URL: "oci://" + r.Host + "/" + name, DockerConfig: r.DockerConfig, CAFile: r.CAFile, Dir: t.TempDir()}
	if change != nil {
		change(&options)
	}
	backend, err := oci.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	return backend, name
}

// client is that of somebody else: oras, not ours.
func client(t *testing.T, r *registry.Registry, name string) *remote.Repository {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	repository, err := remote.NewRepository(r.Host + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	repository.Client = &auth.Client{
		Client:     &http.Client{Transport: transport},
		Credential: auth.StaticCredential(r.Host, auth.Credential{Username: registry.User, Password: registry.Password}),
	}
	return repository
}

func sealer(backend store.Backend) *store.Sealer {
	return store.NewSealer(backend, store.Keys{Current: store.Key{ID: "k", Key: [32]byte{1}}})
}

func TestTheStoreOnARegistryConforms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		at   *registry.Registry
	}{{"one that lets delete", deleting}, {"one that keeps all", keeping}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Run("objects layers", func(t *testing.T) {
				t.Parallel()
				storetest.Run(t, func(t *testing.T) storetest.Store {
					backend, _ := open(t, c.at, nil)
					return store.NewPlain(backend)
				})
			})
			t.Run("sealed layers", func(t *testing.T) {
				t.Parallel()
				storetest.Run(t, func(t *testing.T) storetest.Store {
					backend, _ := open(t, c.at, nil)
					return sealer(backend)
				})
			})
		})
	}
}

func TestOtherClientsListAndPullRenders(t *testing.T) {
	t.Parallel()
	backend, name := open(t, deleting, nil)
	want := []byte(`{"kind":"header"}` + "\n")
	objects, err := store.NewPlain(backend).Put(t.Context(), bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := sealer(backend).Put(t.Context(), strings.NewReader("secret"))
	if err != nil {
		t.Fatal(err)
	}
	repository := client(t, deleting, name)
	var tags []string
	if err := repository.Tags(t.Context(), "", func(some []string) error { tags = append(tags, some...); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(tags)
	tag := strings.Replace(objects.Digest, "sha256:", "objects-", 1)
	if !slices.Equal(tags, []string{tag, strings.Replace(sealed.Digest, "sha256:", "sealed-", 1)}) {
		t.Fatalf("tags %v", tags)
	}
	pulled := memory.New()
	manifest, err := oras.Copy(t.Context(), repository, tag, pulled, "", oras.DefaultCopyOptions)
	if err != nil {
		t.Fatal(err)
	}
	text := fetchAll(t, pulled, manifest.Digest.String(), tag)
	var read struct {
		ArtifactType string
		Layers       []struct {
			Digest      string
			Annotations map[string]string
		}
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if read.ArtifactType != "application/vnd.convoy.render.v1" || len(read.Layers) != 1 || read.Layers[0].Digest != objects.Digest || read.Layers[0].Annotations["org.opencontainers.image.title"] != "objects.jsonl" {
		t.Errorf("manifest %s", text)
	}
	_, got, err := oras.FetchBytes(t.Context(), repository.Blobs(), objects.Digest, oras.DefaultFetchBytesOptions)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("pulled %q, %v", got, err)
	}
}

func fetchAll(t *testing.T, from *memory.Store, digest, tag string) []byte {
	t.Helper()
	found, err := from.Resolve(t.Context(), tag)
	if err != nil || found.Digest.String() != digest {
		t.Fatalf("resolve %s: %v, %v", tag, found, err)
	}
	body, err := from.Fetch(t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestUnusedRendersAreCollected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		at      *registry.Registry
		refused float64
	}{{"where the registry lets delete", deleting, 0}, {"where it does not, that is counted", keeping, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := testclock.NewFakePassiveClock(time.Now().Add(-48 * time.Hour))
			metrics := prometheus.NewRegistry()
			change := func(o *oci.Options) { o.Clock, o.Registerer = clock, metrics }
			backend, name := open(t, c.at, change)
			plain := store.NewPlain(backend)
			put := func(text string) string {
				stored, err := plain.Put(t.Context(), strings.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				return stored.Digest
			}
			old, used, again := put("old"), put("used"), put("put again")
			clock.SetTime(time.Now())
			put("put again")

			// Another process, which remembers nothing.
			other, err := oci.New(oci.Options{URL: "oci://" + c.at.Host + "/" + name, DockerConfig: c.at.DockerConfig, CAFile: c.at.CAFile, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(other.Close)
			stores, err := store.NewMetrics(prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			collector := store.NewCollector(store.CollectorOptions{
				Stores: map[string]store.Swept{"objects": store.NewPlain(backend)}, Metrics: stores, Interval: time.Hour,
				Roots: func(context.Context) (store.Roots, error) { return store.Roots{used: {}}, nil },
			})
			if err := collector.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			for digest, want := range map[string]error{old: store.ErrNotFound, used: nil, again: nil} {
				for _, at := range []store.Backend{backend, other} {
					if _, _, err := storetest.ReadAll(t.Context(), store.NewPlain(at), digest); !errors.Is(err, want) {
						t.Errorf("%s: %v, want %v", digest, err, want)
					}
				}
			}
			listed := 0
			if err := store.NewPlain(other).List(t.Context(), func(store.Info) error { listed++; return nil }); err != nil || listed != 2 {
				t.Errorf("%d blobs are listed, %v", listed, err)
			}
			counted := counter(t, metrics)
			if (counted > 0) != (c.refused > 0) {
				t.Errorf("%v refused deletions", counted)
			}
		})
	}
}

// counter gives the value of the one metric of a registry.
func counter(t *testing.T, metrics *prometheus.Registry) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d metrics, %v", len(families), err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

func TestATornBlobIsSetAside(t *testing.T) {
	t.Parallel()
	for _, at := range []*registry.Registry{deleting, keeping} {
		backend, name := open(t, at, nil)
		plain := store.NewPlain(backend)
		put, err := plain.Put(t.Context(), strings.NewReader("torn"))
		if err != nil {
			t.Fatal(err)
		}
		where, err := plain.SetAside(t.Context(), put.Digest)
		if err != nil || !strings.Contains(where, name+":aside-") {
			t.Errorf("aside at %q, %v", where, err)
		}
		if _, _, err := plain.Open(t.Context(), put.Digest); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("it is still there: %v", err)
		}
		if _, err := plain.SetAside(t.Context(), put.Digest); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("set aside twice: %v", err)
		}
		if _, err := plain.Put(t.Context(), strings.NewReader("torn")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := storetest.ReadAll(t.Context(), plain, put.Digest); err != nil {
			t.Errorf("put again: %v", err)
		}
	}
}

func TestCredentialsAndCertificatesAreNeeded(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*oci.Options){
		"without credentials":   func(o *oci.Options) { o.DockerConfig = "" },
		"without the authority": func(o *oci.Options) { o.CAFile = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			backend, _ := open(t, deleting, change)
			if _, err := store.NewPlain(backend).Put(ctx, strings.NewReader("x")); err == nil || errors.Is(err, store.ErrNotFound) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheFileStoreIsExportedAsALayout(t *testing.T) {
	t.Parallel()
	backend, err := file.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put, err := store.NewPlain(backend).Put(t.Context(), strings.NewReader("render"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sealer(backend).Put(t.Context(), strings.NewReader("secret")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 2 { // again, onto what is there
		done, err := oci.Export(t.Context(), backend, dir)
		if err != nil || done.Renders != 1 || done.Bytes != 6 {
			t.Fatalf("exported %+v, %v", done, err)
		}
	}
	read, err := layout.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	if err := read.Tags(t.Context(), "", func(some []string) error { tags = append(tags, some...); return nil }); err != nil {
		t.Fatal(err)
	}
	tag := strings.Replace(put.Digest, "sha256:", "objects-", 1)
	if !slices.Equal(tags, []string{tag}) {
		t.Fatalf("tags %v", tags)
	}
	// A layout can be copied into a registry as it is.
	name := fmt.Sprintf("convoy/copied-%d", repositories.Add(1))
	if _, err := oras.Copy(t.Context(), read, tag, client(t, deleting, name), tag, oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	copied, err := oci.New(oci.Options{URL: "oci://" + deleting.Host + "/" + name, DockerConfig: deleting.DockerConfig, CAFile: deleting.CAFile, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(copied.Close)
	if got, _, err := storetest.ReadAll(t.Context(), store.NewPlain(copied), put.Digest); err != nil || string(got) != "render" {
		t.Errorf("read %q, %v", got, err)
	}
}
