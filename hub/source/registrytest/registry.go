// SPDX-License-Identifier: Apache-2.0

// Package registrytest has servers for tests of the clients of registries: the first
// step of the flow source -> render -> store -> deliver -> apply -> observe ->
// report. They are small and in process; e2e/registry runs the same clients against
// a registry as it is deployed.
package registrytest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/endpoint"
)

// Loopback is a policy that opens it.
var Loopback = address.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// Server answers requests and remembers them.
type Server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []Request
}

// Request that came.
type Request struct {
	Path, User, Password, Authorization string
}

// Serve starts a server over TLS, or without it.
func Serve(t *testing.T, plain bool, handler http.Handler) *Server {
	t.Helper()
	s := &Server{}
	noted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		s.mu.Lock()
		s.requests = append(s.requests, Request{Path: r.URL.Path, User: user, Password: password, Authorization: r.Header.Get("Authorization")})
		s.mu.Unlock()
		handler.ServeHTTP(w, r)
	})
	if plain {
		s.Server = httptest.NewServer(noted)
	} else {
		s.Server = httptest.NewTLSServer(noted)
	}
	t.Cleanup(s.Close)
	return s
}

// Requests that came so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// CA to trust the server by, PEM; nil without TLS.
func (s *Server) CA() []byte {
	if s.Certificate() == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// Host and port.
func (s *Server) Host() string {
	_, host, _ := strings.Cut(s.Server.URL, "://")
	return host
}

// Remote that is allowed to reach the server, over https.
func (s *Server) Remote(path string) endpoint.Remote {
	return endpoint.Remote{URL: s.Server.URL + path, CA: s.CA(), Policy: Loopback}
}

// OCI is a Remote of a repository.
func (s *Server) OCI(repository string) endpoint.Remote {
	return endpoint.Remote{URL: "oci://" + s.Host() + "/" + repository, CA: s.CA(), Policy: Loopback}
}

// Registry is an OCI registry in memory, for reading.
type Registry struct {
	*Server
	// User and Password that it wants, if they are set; with Token it sends clients to
	// its token service for them.
	User, Password string
	Token          bool
	// PageSize of tags; 0 gives all at once.
	PageSize int
	// Blobs, if set, answers requests for blobs in place of the registry.
	Blobs http.HandlerFunc

	store sync.Mutex
	blobs map[string][]byte
	media map[string]string            // of manifests
	tags  map[string]map[string]string // repository -> tag -> digest
	about map[string][]ocispec.Descriptor
}

// New starts a registry.
func New(t *testing.T, plain bool) *Registry {
	t.Helper()
	r := &Registry{blobs: map[string][]byte{}, media: map[string]string{}, tags: map[string]map[string]string{}, about: map[string][]ocispec.Descriptor{}}
	r.Server = Serve(t, plain, r)
	return r
}

// Blob keeps bytes, and gives them a descriptor.
func (r *Registry) Blob(mediaType string, data []byte, annotations map[string]string) ocispec.Descriptor {
	sum := sha256.Sum256(data)
	found := digest.Digest("sha256:" + hex.EncodeToString(sum[:]))
	r.store.Lock()
	defer r.store.Unlock()
	r.blobs[found.String()] = data
	return ocispec.Descriptor{MediaType: mediaType, Digest: found, Size: int64(len(data)), Annotations: annotations}
}

// Corrupt puts other bytes in place of those of a digest.
func (r *Registry) Corrupt(found digest.Digest, data []byte) {
	r.store.Lock()
	defer r.store.Unlock()
	r.blobs[found.String()] = data
}

// Push keeps a manifest under a tag (empty: none), and gives its descriptor.
func (r *Registry) Push(t *testing.T, repository, tag string, manifest any) ocispec.Descriptor {
	t.Helper()
	text, ok := manifest.([]byte)
	if !ok {
		var err error
		if text, err = json.Marshal(manifest); err != nil {
			t.Fatal(err)
		}
	}
	var read ocispec.Manifest
	// What is no manifest is pushed too, by tests of how it is refused.
	_ = json.Unmarshal(text, &read)
	if read.MediaType == "" {
		read.MediaType = ocispec.MediaTypeImageManifest
	}
	pushed := r.Blob(read.MediaType, text, nil)
	r.store.Lock()
	defer r.store.Unlock()
	r.media[pushed.Digest.String()] = read.MediaType
	if read.Subject != nil {
		pushed.ArtifactType = read.ArtifactType
		r.about[read.Subject.Digest.String()] = append(r.about[read.Subject.Digest.String()], pushed)
	}
	if r.tags[repository] == nil {
		r.tags[repository] = map[string]string{}
	}
	if tag != "" {
		r.tags[repository][tag] = pushed.Digest.String()
	}
	return pushed
}

// Manifest with some layers.
func Manifest(layers ...ocispec.Descriptor) ocispec.Manifest {
	manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: ocispec.DescriptorEmptyJSON, Layers: layers}
	manifest.SchemaVersion = 2
	return manifest
}

const (
	tokenPath  = "/token"
	tokenValue = "a-token-of-the-test"
)

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	user, password, _ := request.BasicAuth()
	known := user == r.User && password == r.Password
	if request.URL.Path == tokenPath {
		if !known {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"token":%q}`, tokenValue)
		return
	}
	if r.Token {
		known = request.Header.Get("Authorization") == "Bearer "+tokenValue
	}
	if r.User != "" && !known {
		challenge := `Basic realm="test"`
		if r.Token {
			challenge = fmt.Sprintf(`Bearer realm="%s%s",service="test"`, r.URL, tokenPath)
		}
		w.Header().Set("Www-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	path := strings.TrimPrefix(request.URL.Path, "/v2/")
	for _, one := range []struct {
		word  string
		serve func(w http.ResponseWriter, request *http.Request, repository, reference string)
	}{{"/manifests/", r.manifest}, {"/blobs/", r.blob}, {"/tags/list", r.list}, {"/referrers/", r.referrers}} {
		if repository, reference, ok := strings.Cut(path, one.word); ok {
			one.serve(w, request, repository, reference)
			return
		}
	}
	if path != "" {
		w.WriteHeader(http.StatusNotFound)
	}
}

func (r *Registry) manifest(w http.ResponseWriter, _ *http.Request, repository, reference string) {
	r.store.Lock()
	defer r.store.Unlock()
	if found, ok := r.tags[repository][reference]; ok {
		reference = found
	}
	text, ok := r.blobs[reference]
	media := r.media[reference]
	if !ok || media == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Docker-Content-Digest", reference)
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	if _, err := w.Write(text); err != nil {
		return // the client went away
	}
}

func (r *Registry) blob(w http.ResponseWriter, request *http.Request, _, reference string) {
	if r.Blobs != nil {
		r.Blobs(w, request)
		return
	}
	r.store.Lock()
	defer r.store.Unlock()
	data, ok := r.blobs[reference]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if _, err := w.Write(data); err != nil {
		return // the client went away
	}
}

func (r *Registry) list(w http.ResponseWriter, request *http.Request, repository, _ string) {
	r.store.Lock()
	defer r.store.Unlock()
	var names []string
	for tag := range r.tags[repository] {
		names = append(names, tag)
	}
	slices.Sort(names)
	if last := request.URL.Query().Get("last"); last != "" {
		at, _ := slices.BinarySearch(names, last+"\x00")
		names = names[at:]
	}
	if r.PageSize > 0 && len(names) > r.PageSize {
		names = names[:r.PageSize]
		w.Header().Set("Link", fmt.Sprintf(`</v2/%s/tags/list?last=%s>; rel="next"`, repository, url.QueryEscape(names[len(names)-1])))
	}
	writeJSON(w, map[string]any{"name": repository, "tags": names})
}

func (r *Registry) referrers(w http.ResponseWriter, _ *http.Request, _, reference string) {
	r.store.Lock()
	defer r.store.Unlock()
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: r.about[reference]}
	index.SchemaVersion = 2
	w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
	writeJSON(w, index)
}

func writeJSON(w http.ResponseWriter, value any) {
	if err := json.NewEncoder(w).Encode(value); err != nil {
		return // the client went away
	}
}
