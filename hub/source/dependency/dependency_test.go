// SPDX-License-Identifier: Apache-2.0

package dependency_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/registry"
	"kumodo.io/convoy/hub/source/registrytest"
)

// repository serves the versions 1.0.0 and 1.1.0 of a chart named db.
func repository(t *testing.T, user string) *registrytest.Server {
	t.Helper()
	charts := map[string][]byte{}
	index := "entries:\n  db:\n"
	for _, version := range []string{"1.0.0", "1.1.0"} {
		data := registrytest.Chart(t, "db", version)
		charts["/db-"+version+".tgz"] = data
		index += fmt.Sprintf("  - {name: db, version: %s, digest: %x, urls: [db-%s.tgz]}\n", version, sha256.Sum256(data), version)
	}
	charts["/index.yaml"] = []byte(index)
	return registrytest.Serve(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, _ := r.BasicAuth(); name != user {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		data, ok := charts[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if _, err := w.Write(data); err != nil {
			return // the client went away
		}
	}))
}

func collect(t *testing.T, path string, files map[string]string, remotes ...endpoint.Remote) (registry.Done, map[string]string, error) {
	t.Helper()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
	dir := t.TempDir()
	done, err := registry.Fetch(t.Context(), registry.Job{
		Remote:       endpoint.Remote{Policy: registrytest.Loopback},
		Dependencies: &registry.Dependencies{Snapshot: registrytest.Snapshot(t, names, files), Path: path, Remotes: remotes},
		Dir:          dir,
	})
	if err != nil {
		return done, nil, err
	}
	return done, registrytest.Files(t, dir), nil
}

func chart(dependencies ...string) string {
	return "apiVersion: v2\nname: app\nversion: 0.1.0\ndependencies:\n" + strings.Join(dependencies, "")
}

func dep(name, version, repository string) string {
	return fmt.Sprintf("- {name: %s, version: %q, repository: %q}\n", name, version, repository)
}

func TestDependenciesThatAreMissingAreBroughtIn(t *testing.T) {
	t.Parallel()
	server := repository(t, "")
	known := endpoint.Remote{URL: server.Server.URL, CA: server.CA()}
	oci := registrytest.New(t, false)
	layer := oci.Blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", registrytest.Chart(t, "cache", "3.0.0"), nil)
	oci.Push(t, "charts/cache", "3.0.0", registrytest.Manifest(layer))
	inOCI := endpoint.Remote{URL: "oci://" + oci.Host() + "/elsewhere", CA: oci.CA()}
	plain := registrytest.New(t, true)
	plain.Push(t, "charts/cache", "3.0.0", registrytest.Manifest(plain.Blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", registrytest.Chart(t, "cache", "3.0.0"), nil)))
	common := map[string]string{"common/Chart.yaml": "name: common\nversion: 0.5.0\n", "common/templates/a.yaml": "a: 1"}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"a chart repository, the highest of the range", map[string]string{"app/Chart.yaml": chart(dep("db", "^1", server.Server.URL))}, []string{"app/charts/db-1.1.0.tgz"}},
		{
			"the version of the lock", map[string]string{"app/Chart.yaml": chart(dep("db", "^1", server.Server.URL)), "app/Chart.lock": "dependencies:\n" + dep("db", "1.0.0", server.Server.URL)},
			[]string{"app/charts/db-1.0.0.tgz"},
		},
		{"a registry", map[string]string{"app/Chart.yaml": chart(dep("cache", "3.x", "oci://"+oci.Host()+"/charts"))}, []string{"app/charts/cache-3.0.0.tgz"}},
		{"a registry without TLS, in a range that is opened", map[string]string{"app/Chart.yaml": chart(dep("cache", "3.x", "oci://"+plain.Host()+"/charts"))}, []string{"app/charts/cache-3.0.0.tgz"}},
		{"a folder of the source", merge(common, map[string]string{"app/Chart.yaml": chart(dep("common", "", "file://../common"))}), []string{"app/charts/common-0.5.0/Chart.yaml", "app/charts/common-0.5.0/templates/a.yaml"}},
		{"vendored as a folder: nobody is asked", map[string]string{"app/Chart.yaml": chart(dep("db", "^1", "https://nobody.test")), "app/charts/db/Chart.yaml": "name: db\nversion: 1.0.0\n"}, nil},
		{"vendored as an archive: nobody is asked", map[string]string{"app/Chart.yaml": chart(dep("db", "^1", "https://nobody.test")), "app/charts/db-1.0.0.tgz": string(registrytest.Chart(t, "db", "1.0.0"))}, nil},
		{"a chart of the older form", map[string]string{"app/Chart.yaml": "apiVersion: v1\nname: app\nversion: 1.0.0\n", "app/requirements.yaml": "dependencies:\n" + dep("db", "1.0.0", server.Server.URL)}, []string{"app/charts/db-1.0.0.tgz"}},
		{"no chart at all", map[string]string{"app/a.yaml": "a: 1"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			done, files, err := collect(t, "app", c.files, known, inOCI)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for name := range files {
				got = append(got, name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, found := range done.Charts {
				if !strings.HasPrefix(found.Digest, "sha256:") || found.Version == "" {
					t.Errorf("recorded %+v", found)
				}
			}
		})
	}
}

func merge(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range maps {
		for name, text := range m {
			all[name] = text
		}
	}
	return all
}

func TestDependenciesThatCannotBeHadAreNamed(t *testing.T) {
	t.Parallel()
	server := repository(t, "")
	known := endpoint.Remote{URL: server.Server.URL, CA: server.CA()}
	for _, c := range []struct {
		name  string
		files map[string]string
		says  string
	}{
		{"a folder outside the source", map[string]string{"app/Chart.yaml": chart(dep("etc", "", "file://../../etc"))}, "leads out of the source"},
		{"an absolute folder", map[string]string{"app/Chart.yaml": chart(dep("etc", "", "file:///etc"))}, "leads out of the source"},
		{"the folder that it is in", map[string]string{"app/Chart.yaml": chart(dep("app", "", "file://../app"))}, "holds the chart that wants it"},
		{"a name that only somebody's computer knows", map[string]string{"app/Chart.yaml": chart(dep("db", "1", "@stable"))}, "write the URL"},
		{
			"a folder with a chart of another name", map[string]string{"app/Chart.yaml": chart(dep("d", "1", "file://../rec")), "rec/Chart.yaml": "name: rec\nversion: 0.1.0\n"},
			"the chart at rec is rec 0.1.0, the dependency asks for d 1",
		},
		{
			"a folder with a chart of another version", map[string]string{"app/Chart.yaml": chart(dep("rec", "^1", "file://../rec")), "rec/Chart.yaml": "name: rec\nversion: 0.1.0\n"},
			"the chart at rec is rec 0.1.0, the dependency asks for rec ^1",
		},
		{"no repository", map[string]string{"app/Chart.yaml": chart(dep("db", "1", ""))}, "no repository is named"},
		{"no such version", map[string]string{"app/Chart.yaml": chart(dep("db", "^9", server.Server.URL))}, "none that is in the range ^9"},
		{"a lock that does not fit", map[string]string{"app/Chart.yaml": chart(dep("db", "^2", server.Server.URL)), "app/Chart.lock": "dependencies:\n" + dep("db", "1.0.0", server.Server.URL)}, "out of step"},
		{"a name that climbs", map[string]string{"app/Chart.yaml": chart(dep("../db", "1", server.Server.URL))}, "no name of a chart"},
		{"another scheme", map[string]string{"app/Chart.yaml": chart(dep("db", "1", "git+https://host.test/x"))}, "only https and oci"},
		{"a Chart.yaml that is no YAML", map[string]string{"app/Chart.yaml": "name: ["}, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := collect(t, "app", c.files, known)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestADependencyGetsTheCredentialsOfItsOwnHostAndNoOthers(t *testing.T) {
	t.Parallel()
	own, other := repository(t, "own"), repository(t, "")
	remotes := []endpoint.Remote{
		{URL: own.Server.URL + "/anything", CA: own.CA(), Auth: endpoint.Auth{Username: "own", Password: "secret"}},
		{URL: other.Server.URL, CA: other.CA()},
	}
	files := map[string]string{"Chart.yaml": chart(dep("db", "1.0.0", own.Server.URL), dep("db", "1.1.0", other.Server.URL))}
	_, got, err := collect(t, "", files, remotes...)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got["charts/db-1.0.0.tgz"] == "" || got["charts/db-1.1.0.tgz"] == "" {
		t.Errorf("%d files", len(got))
	}
	for _, request := range other.Requests() {
		if request.Authorization != "" {
			t.Errorf("the other host was shown %q at %s", request.Authorization, request.Path)
		}
	}
	if _, _, err := collect(t, "", files, remotes[1]); fault.ClassOf(err) != fault.ClassCertificate && fault.ClassOf(err) != fault.ClassAuth {
		t.Errorf("without the credentials: %v of class %s", err, fault.ClassOf(err))
	}
}

func TestADependencyOnLoopbackMakesNoConnection(t *testing.T) {
	t.Parallel()
	server := repository(t, "")
	dir := t.TempDir()
	files := map[string]string{"Chart.yaml": chart(dep("db", "1.0.0", server.Server.URL))}
	_, err := registry.Fetch(t.Context(), registry.Job{
		Dependencies: &registry.Dependencies{Snapshot: registrytest.Snapshot(t, []string{"Chart.yaml"}, files), Remotes: []endpoint.Remote{{URL: server.Server.URL, CA: server.CA()}}},
		Dir:          dir,
	})
	if fault.ClassOf(err) != fault.ClassDenied {
		t.Errorf("got %v of class %s", err, fault.ClassOf(err))
	}
	if got := server.Requests(); len(got) != 0 {
		t.Errorf("the server saw %+v", got)
	}
}
