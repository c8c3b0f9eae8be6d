// SPDX-License-Identifier: Apache-2.0

package helmrepo_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/helmrepo"
	"kumodo.io/convoy/hub/source/registrytest"
)

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// repository serves an index of one version of web, whose archive is at a URL.
func repository(t *testing.T, plain bool, digest, target string, archive []byte) *registrytest.Server {
	t.Helper()
	return registrytest.Serve(t, plain, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/charts/index.yaml":
			fmt.Fprintf(w, "entries:\n  web:\n  - name: web\n    version: 1.0.0\n    digest: %s\n    urls: [%q]\n", digest, target)
		case "/charts/web-1.0.0.tgz", "/moved/web-1.0.0.tgz":
			if _, err := w.Write(archive); err != nil {
				return // the client went away
			}
		case "/charts/redirect.tgz":
			http.Redirect(w, r, target[strings.Index(target, "=")+1:], http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
}

func get(t *testing.T, remote endpoint.Remote) (map[string]string, error) {
	t.Helper()
	resolved, err := helmrepo.Resolve(t.Context(), remote, "web", "")
	if err != nil {
		return nil, err
	}
	dir := t.TempDir()
	if _, err := helmrepo.Fetch(t.Context(), remote, resolved, dir); err != nil {
		return nil, err
	}
	return registrytest.Files(t, dir), nil
}

func TestAChartOfAnIndexBecomesAFolderOfItsName(t *testing.T) {
	t.Parallel()
	archive := registrytest.Chart(t, "web", "1.0.0")
	server := repository(t, false, sum(archive), "web-1.0.0.tgz", archive)
	remote := server.Remote("/charts")
	remote.Username, remote.Password = "user", "secret"
	files, err := get(t, remote)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(files["web/Chart.yaml"], "name: web") || len(files) != 2 {
		t.Errorf("files %v", files)
	}
	for _, request := range server.Requests() {
		if request.User != "user" || request.Password != "secret" {
			t.Errorf("%s was asked for by %q", request.Path, request.User)
		}
	}
	digest, err := helmrepo.Check(t.Context(), remote)
	if err != nil || !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("check: %q, %v", digest, err)
	}
}

func TestAnArchiveWithAnotherDigestThanTheIndexSaysIsRefused(t *testing.T) {
	t.Parallel()
	archive := registrytest.Chart(t, "web", "1.0.0")
	server := repository(t, false, digestA, "web-1.0.0.tgz", archive)
	if _, err := get(t, server.Remote("/charts")); fault.ClassOf(err) != fault.ClassInvalid || !strings.Contains(fmt.Sprint(err), "the index says") {
		t.Errorf("got %v", err)
	}
}

func TestCredentialsGoToNoOtherHostUnlessTheyAreToBePassed(t *testing.T) {
	t.Parallel()
	archive := registrytest.Chart(t, "web", "1.0.0")
	for _, c := range []struct {
		name string
		pass bool
		want string
	}{
		{"an archive at another port is asked for without credentials", false, ""},
		{"with passCredentials it gets them", true, "user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			other := repository(t, false, "", "", archive)
			server := repository(t, false, sum(archive), other.Server.URL+"/charts/web-1.0.0.tgz", nil)
			remote := server.Remote("/charts")
			remote.Username, remote.Password, remote.PassCredentials = "user", "secret", c.pass
			remote.CA = append(remote.CA, other.CA()...)
			if _, err := get(t, remote); err != nil {
				t.Fatal(err)
			}
			if got := other.Requests(); len(got) != 1 || got[0].User != c.want {
				t.Errorf("the other host saw %+v", got)
			}
		})
	}
}

func TestARedirectTakesNoCredentialsAlong(t *testing.T) {
	t.Parallel()
	archive := registrytest.Chart(t, "web", "1.0.0")
	other := repository(t, false, "", "", archive)
	server := repository(t, false, sum(archive), "redirect.tgz?to="+other.Server.URL+"/moved/web-1.0.0.tgz", nil)
	remote := server.Remote("/charts")
	remote.Username, remote.Password, remote.PassCredentials = "user", "secret", true
	remote.CA = append(remote.CA, other.CA()...)
	if _, err := get(t, remote); err != nil {
		t.Fatal(err)
	}
	if got := other.Requests(); len(got) != 1 || got[0].Authorization != "" {
		t.Errorf("the other host saw %+v", got)
	}
}

func TestRedirectsStayInsideThePolicy(t *testing.T) {
	t.Parallel()
	archive := registrytest.Chart(t, "web", "1.0.0")
	plain := repository(t, true, "", "", archive)
	for _, c := range []struct {
		name, target string
		class        fault.Class
	}{
		{"not to a metadata service", "https://169.254.169.254/latest", fault.ClassDenied},
		{"not from https to http", plain.Server.URL + "/charts/web-1.0.0.tgz", fault.ClassUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := repository(t, false, sum(archive), "redirect.tgz?to="+c.target, nil)
			if _, err := get(t, server.Remote("/charts")); err == nil || fault.ClassOf(err) != c.class {
				t.Errorf("got %v of class %s, want %s", err, fault.ClassOf(err), c.class)
			}
		})
	}
	if got := plain.Requests(); len(got) > 0 {
		t.Errorf("the plain server saw %+v", got)
	}
}

func TestPlainHTTPNeedsAnOpenedRange(t *testing.T) {
	t.Parallel()
	archive := registrytest.Chart(t, "web", "1.0.0")
	server := repository(t, true, sum(archive), "web-1.0.0.tgz", archive)
	if _, err := get(t, server.Remote("/charts")); err != nil {
		t.Errorf("opened: %v", err)
	}
	closed := server.Remote("/charts")
	closed.Policy = address.Policy{}
	before := len(server.Requests())
	if _, err := get(t, closed); fault.ClassOf(err) != fault.ClassDenied {
		t.Errorf("not opened: %v", err)
	}
	if len(server.Requests()) != before {
		t.Error("the server was asked")
	}
}

func TestAServerThatWantsToBeLeftAloneIs(t *testing.T) {
	t.Parallel()
	server := registrytest.Serve(t, false, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	_, err := helmrepo.Resolve(t.Context(), server.Remote(""), "web", "")
	if fault.ClassOf(err) != fault.ClassRateLimited || !strings.Contains(err.Error(), "2m0s") {
		t.Errorf("got %v of class %s", err, fault.ClassOf(err))
	}
}

func TestWhatIsWrongWithAServerIsSaidInWords(t *testing.T) {
	t.Parallel()
	wants := registrytest.Serve(t, false, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	untrusted := wants.Remote("")
	untrusted.CA = nil
	wrong := wants.Remote("")
	wrong.Username = "user"
	for _, c := range []struct {
		name   string
		remote endpoint.Remote
		class  fault.Class
		says   string
	}{
		{"credentials are missing", wants.Remote(""), fault.ClassAuth, "none are sent"},
		{"credentials are wrong", wrong, fault.ClassAuth, "does not accept"},
		{"the authority is not known", untrusted, fault.ClassCertificate, "caSecretRef"},
		{"a URL with a password", endpoint.Remote{URL: "https://a:secret@host.test"}, fault.ClassInvalid, "belong in a Secret"},
		{"another scheme", endpoint.Remote{URL: "ftp://host.test"}, fault.ClassInvalid, "only https and oci"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := helmrepo.Resolve(t.Context(), c.remote, "web", "")
			if err == nil || fault.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret@") {
				t.Errorf("got %v of class %s, want %s with %q", err, fault.ClassOf(err), c.class, c.says)
			}
		})
	}
}

func TestAChartOfARegistryIsFoundByItsTags(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t, false)
	for _, version := range []string{"1.0.0", "1.1.0_build.5", "2.0.0-rc.1"} {
		layer := registry.Blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", registrytest.Chart(t, "web", strings.ReplaceAll(version, "_", "+")), nil)
		registry.Push(t, "charts/web", version, registrytest.Manifest(layer))
	}
	remote := registry.OCI("charts")
	for version, want := range map[string]string{"": "1.1.0+build.5", "1.0.0": "1.0.0", "1.1.0+build.5": "1.1.0+build.5", ">=2.0.0-0": "2.0.0-rc.1"} {
		got, err := helmrepo.Resolve(t.Context(), remote, "web", version)
		if err != nil || got.Version != want {
			t.Errorf("%q: got %+v, %v, want %s", version, got, err, want)
		}
	}
	files, err := get(t, remote)
	if err != nil || files["web/Chart.yaml"] == "" {
		t.Errorf("files %v, %v", files, err)
	}
	if _, err := helmrepo.Check(t.Context(), remote); err != nil {
		t.Errorf("check: %v", err)
	}
	if diff := cmp.Diff(fault.ClassNotFound, fault.ClassOf(second(helmrepo.Resolve(t.Context(), remote, "nope", "")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func second[T any](_ T, err error) error { return err }
