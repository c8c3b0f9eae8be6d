// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/oci"
	"kumodo.io/convoy/hub/source/registrytest"
)

const (
	flux  = "application/vnd.cncf.flux.content.v1.tar+gzip"
	plain = "application/vnd.oci.image.layer.v1.tar+gzip"
	chart = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	prov  = "application/vnd.cncf.helm.chart.provenance.v1.prov"
	yaml  = "application/yaml"
)

func titled(name string) map[string]string {
	return map[string]string{ocispec.AnnotationTitle: name}
}

func get(t *testing.T, remote endpoint.Remote, ref oci.Ref) (map[string]string, error) {
	t.Helper()
	resolved, err := oci.Resolve(t.Context(), remote, ref)
	if err != nil {
		return nil, err
	}
	dir := t.TempDir()
	fetched, err := oci.Fetch(t.Context(), remote, resolved, dir)
	if err != nil {
		return nil, err
	}
	files := registrytest.Files(t, dir)
	if fetched.Files != len(files) || fetched.TransferBytes == 0 {
		t.Errorf("fetched %+v of %d files", fetched, len(files))
	}
	return files, nil
}

func TestArtifactsOfManyKindsBecomeTrees(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t, false)
	tgz := registrytest.Tgz(t, registrytest.Entry{Name: "deploy/app.yaml", Data: "a: 1"})
	for _, c := range []struct {
		name   string
		layers []ocispec.Descriptor
		want   map[string]string
	}{
		{"an artifact of Flux", []ocispec.Descriptor{registry.Blob(flux, tgz, nil)}, map[string]string{"deploy/app.yaml": "a: 1"}},
		{"a plain layer", []ocispec.Descriptor{registry.Blob(plain, tgz, nil)}, map[string]string{"deploy/app.yaml": "a: 1"}},
		{"a single YAML file", []ocispec.Descriptor{registry.Blob(yaml, []byte("b: 2"), titled("b.yaml"))}, map[string]string{"b.yaml": "b: 2"}},
		{"YAML without names", []ocispec.Descriptor{registry.Blob(yaml, []byte("b: 2"), nil), registry.Blob(yaml, []byte("c: 3"), nil)}, map[string]string{"manifest.yaml": "b: 2", "manifest-2.yaml": "c: 3"}},
		{"a file that was pushed by its name", []ocispec.Descriptor{registry.Blob("application/vnd.oci.image.layer.v1.tar", []byte("d: 4"), titled("d.yml"))}, map[string]string{"d.yml": "d: 4"}},
		{"a tree and a file", []ocispec.Descriptor{registry.Blob(flux, tgz, nil), registry.Blob(yaml, []byte("b: 2"), titled("b.yaml"))}, map[string]string{"deploy/app.yaml": "a: 1", "b.yaml": "b: 2"}},
		{
			"a chart with its provenance", []ocispec.Descriptor{registry.Blob(chart, registrytest.Tgz(t, registrytest.Entry{Name: "web/Chart.yaml", Data: "name: web"}), nil), registry.Blob(prov, []byte("x"), nil)},
			map[string]string{"web/Chart.yaml": "name: web"},
		},
	} {
		registry.Push(t, "team/app", strings.ReplaceAll(c.name, " ", "-"), registrytest.Manifest(c.layers...))
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := get(t, registry.OCI("team/app"), oci.Ref{Tag: strings.ReplaceAll(c.name, " ", "-")})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestArtifactsThatCannotBeUsedAreRefusedByName(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t, false)
	tgz := registrytest.Tgz(t, registrytest.Entry{Name: "a.yaml", Data: "a: 1"})
	many := make([]ocispec.Descriptor, 65)
	for i := range many {
		many[i] = registry.Blob(yaml, fmt.Append(nil, i), nil)
	}
	huge := registry.Blob(plain, tgz, nil)
	huge.Size = 1 << 40
	for _, c := range []struct {
		name     string
		manifest any
		class    fault.Class
		says     string
	}{
		{"a layer of another kind", registrytest.Manifest(registry.Blob("application/x-executable", tgz, nil)), fault.ClassInvalid, "application/x-executable"},
		{"no layers", registrytest.Manifest(), fault.ClassInvalid, "without layers"},
		{"too many layers", registrytest.Manifest(many...), fault.ClassTooLarge, "64 layers"},
		{"a layer of a tebibyte", registrytest.Manifest(huge), fault.ClassTooLarge, "more than 128 MiB"},
		{"an index of platforms", []byte(`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{}]}`), fault.ClassInvalid, "index of several"},
		{"no JSON", []byte("<html>"), fault.ClassInvalid, "not the JSON"},
		{"a link in the tree", registrytest.Manifest(registry.Blob(plain, registrytest.Tgz(t, registrytest.Entry{Name: "evil", Type: tar.TypeSymlink, Link: "/etc"}), nil)), fault.ClassInvalid, "evil"},
		{"two layers with one name", registrytest.Manifest(registry.Blob(plain, tgz, nil), registry.Blob(flux, tgz, nil)), fault.ClassInvalid, "a.yaml: the name is there twice"},
		{"a title that climbs out", registrytest.Manifest(registry.Blob(yaml, []byte("x"), titled("../../x.yaml"))), fault.ClassInvalid, "leads out"},
	} {
		registry.Push(t, "team/app", strings.ReplaceAll(c.name, " ", "-"), c.manifest)
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := get(t, registry.OCI("team/app"), oci.Ref{Tag: strings.ReplaceAll(c.name, " ", "-")})
			if err == nil || fault.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v of class %s, want %s with %q", err, fault.ClassOf(err), c.class, c.says)
			}
		})
	}
}

func TestALayerWithOtherBytesThanItsDigestIsRefused(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t, false)
	good := registrytest.Tgz(t, registrytest.Entry{Name: "a.yaml", Data: "a: 1"})
	layer := registry.Blob(plain, good, nil)
	registry.Push(t, "app", "latest", registrytest.Manifest(layer))
	bad := registrytest.Tgz(t, registrytest.Entry{Name: "a.yaml", Data: "a: 2"})
	if len(bad) != len(good) {
		t.Fatalf("the archives have %d and %d bytes", len(good), len(bad))
	}
	registry.Corrupt(layer.Digest, bad)
	if _, err := get(t, registry.OCI("app"), oci.Ref{}); fault.ClassOf(err) != fault.ClassInvalid || !strings.Contains(fmt.Sprint(err), "not what its digest says") {
		t.Errorf("got %v of class %s", err, fault.ClassOf(err))
	}
}

func TestARefLeadsToADigest(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t, false)
	registry.PageSize = 2
	digests := map[string]string{}
	for _, tag := range []string{"latest", "v1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "nightly", "1.10.0_b"} {
		pushed := registry.Push(t, "app", tag, registrytest.Manifest(registry.Blob(yaml, []byte("tag: "+tag), nil)))
		digests[tag] = pushed.Digest.String()
	}
	for _, c := range []struct {
		name string
		ref  oci.Ref
		tag  string
	}{
		{"nothing means latest", oci.Ref{}, "latest"},
		{"a tag", oci.Ref{Tag: "nightly"}, "nightly"},
		{"the highest of a range, over many pages", oci.Ref{Semver: ">=1.0.0 <1.10.0"}, "1.2.0"},
		{"equal versions: the greater text", oci.Ref{Semver: "1.x"}, "1.10.0_b"},
		{"a v in front", oci.Ref{Semver: "~1.0"}, "v1.0.0"},
		{"pre-releases are named", oci.Ref{Semver: ">=2.0.0-0"}, "2.0.0-rc.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := oci.Resolve(t.Context(), registry.OCI("app"), c.ref)
			want := oci.Resolved{Display: c.tag + "@" + digests[c.tag], Tag: c.tag, Digest: digests[c.tag]}
			if err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
	t.Run("a digest", func(t *testing.T) {
		t.Parallel()
		got, err := oci.Resolve(t.Context(), registry.OCI("app"), oci.Ref{Digest: digests["nightly"]})
		if err != nil || got.Display != digests["nightly"] {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	for name, ref := range map[string]oci.Ref{"no such tag": {Tag: "nope"}, "nothing in the range": {Semver: "^7"}, "no such digest": {Digest: "sha256:" + strings.Repeat("0", 64)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := oci.Resolve(t.Context(), registry.OCI("app"), ref); err == nil || fault.ClassOf(err) != fault.ClassNotFound {
				t.Errorf("got %v of class %s", err, fault.ClassOf(err))
			}
		})
	}
}

func TestARegistryGetsItsCredentials(t *testing.T) {
	t.Parallel()
	for _, token := range []bool{false, true} {
		for _, noTLS := range []bool{false, true} {
			registry := registrytest.New(t, noTLS)
			registry.User, registry.Password, registry.Token = "user", "secret", token
			registry.Push(t, "app", "latest", registrytest.Manifest(registry.Blob(yaml, []byte("a: 1"), nil)))
			remote := registry.OCI("app")
			docker := remote
			docker.Docker = fmt.Appendf(nil, `{"auths":{%q:{"username":"user","password":"secret"}}}`, registry.Host())
			named := remote
			named.Username, named.Password = "user", "secret"
			wrong := remote
			wrong.Username, wrong.Password = "user", "wrong"
			elsewhere := remote
			elsewhere.Docker = []byte(`{"auths":{"other.test":{"username":"user","password":"secret"}}}`)
			for _, c := range []struct {
				name   string
				remote endpoint.Remote
				class  fault.Class
			}{
				{"a user name and a password", named, ""},
				{"a docker configuration", docker, ""},
				{"none", remote, fault.ClassAuth},
				{"wrong ones", wrong, fault.ClassAuth},
				{"those of another registry", elsewhere, fault.ClassAuth},
			} {
				t.Run(fmt.Sprintf("%s, token service %t, without TLS %t", c.name, token, noTLS), func(t *testing.T) {
					t.Parallel()
					_, err := get(t, c.remote, oci.Ref{})
					if (err != nil) != (c.class != "") || err != nil && fault.ClassOf(err) != c.class {
						t.Errorf("got %v of class %s, want %q", err, fault.ClassOf(err), c.class)
					}
				})
			}
		}
	}
}

func TestARegistryIsThereIfItAnswersAndTakesTheCredentials(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t, false)
	registry.User, registry.Password = "user", "secret"
	remote := registry.OCI("folder")
	with := func(password string) endpoint.Remote {
		remote := remote
		remote.Username, remote.Password = "user", password
		return remote
	}
	gone := remote
	gone.URL = "oci://127.0.0.1:1/folder"
	for _, c := range []struct {
		name   string
		remote endpoint.Remote
		class  fault.Class
	}{
		{"with credentials", with("secret"), ""},
		{"with wrong ones", with("wrong"), fault.ClassAuth},
		{"without any: what is public can be had", remote, ""},
		{"nobody answers", gone, fault.ClassUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := oci.Ping(t.Context(), c.remote)
			if (err != nil) != (c.class != "") || err != nil && fault.ClassOf(err) != c.class {
				t.Errorf("got %v of class %s, want %q", err, fault.ClassOf(err), c.class)
			}
		})
	}
}

func TestTokenServicesAndBlobsAreInsideThePolicy(t *testing.T) {
	t.Parallel()
	realm := registrytest.Serve(t, false, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Www-Authenticate", `Bearer realm="https://169.254.169.254/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	if _, err := oci.Resolve(t.Context(), realm.OCI("app"), oci.Ref{}); fault.ClassOf(err) != fault.ClassDenied {
		t.Errorf("a token service at a metadata service: %v of class %s", err, fault.ClassOf(err))
	}
	registry := registrytest.New(t, false)
	registry.Push(t, "app", "latest", registrytest.Manifest(registry.Blob(yaml, []byte("a: 1"), nil)))
	registry.Blobs = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://169.254.169.254/blob", http.StatusTemporaryRedirect)
	}
	if _, err := get(t, registry.OCI("app"), oci.Ref{}); fault.ClassOf(err) != fault.ClassDenied {
		t.Errorf("a blob at a metadata service: %v of class %s", err, fault.ClassOf(err))
	}
}

func TestARegistryWithoutTLSNeedsAnOpenedRange(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t, true)
	registry.Push(t, "app", "latest", registrytest.Manifest(registry.Blob(yaml, []byte("a: 1"), nil)))
	closed := registry.OCI("app")
	closed.Policy = address.Policy{}
	if _, err := get(t, closed, oci.Ref{}); fault.ClassOf(err) != fault.ClassDenied {
		t.Errorf("got %v of class %s", err, fault.ClassOf(err))
	}
	if got := registry.Requests(); len(got) != 0 {
		t.Errorf("the registry saw %+v", got)
	}
}

// Servers of other makes answer a handshake with a page, which is no http either.
func TestARegistryWithoutTLSIsKnownByWhatIsNoHandshake(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t, true)
	registry.Push(t, "app", "latest", registrytest.Manifest(registry.Blob(yaml, []byte("a: 1"), nil)))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			group.Go(func() { pass(t, conn, registry.Host(), client) })
		}
	})
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		group.Wait()
	})
	remote := registry.OCI("app")
	remote.URL = "oci://" + listener.Addr().String() + "/app"
	files, err := get(t, remote, oci.Ref{})
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}

// pass answers a handshake with a page and passes all else on.
func pass(t *testing.T, conn net.Conn, to string, client *http.Client) {
	in := bufio.NewReader(conn)
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	first, err := in.Peek(1)
	if err != nil {
		return // nobody wants anything
	}
	if first[0] == 0x16 {
		if _, err := io.WriteString(conn, "<html>Bad request version</html>\n"); err != nil {
			t.Error(err)
		}
		return
	}
	request, err := http.ReadRequest(in)
	if err != nil {
		t.Error(err)
		return
	}
	request.URL.Scheme, request.URL.Host, request.RequestURI = "http", to, ""
	response, err := client.Transport.RoundTrip(request.WithContext(t.Context()))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() {
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	response.Close = true
	if err := response.Write(conn); err != nil {
		t.Error(err)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[{"mediaType":"application/yaml","digest":"sha256:` + strings.Repeat("0", 64) + `","size":1}]}`))
	f.Add([]byte(`{"manifests":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		layers, err := oci.ParseManifest(text)
		for _, layer := range layers {
			if err != nil || !oci.IsDigest(layer.Digest.String()) || layer.Size < 0 {
				t.Errorf("got %+v, %v", layer, err)
			}
		}
	})
}
