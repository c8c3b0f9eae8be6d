// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/helmrepo"
	"kumodo.io/convoy/hub/source/oci"
	"kumodo.io/convoy/hub/source/registry"
	"kumodo.io/convoy/hub/source/registrytest"
)

func TestWhatHasToBeSignedAndIsNotLeavesNoSnapshot(t *testing.T) {
	t.Parallel()
	server := registrytest.New(t, false)
	pushed := server.Push(t, "charts/web", "1.0.0", registrytest.Manifest(server.Blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", registrytest.Chart(t, "web", "1.0.0"), nil)))
	remote := server.OCI("charts")
	artifact := server.OCI("charts/web")
	key := []byte("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n")
	chart := helmrepo.Resolved{Chart: "web", Version: "1.0.0", URL: artifact.URL, Digest: pushed.Digest.String()}
	for _, c := range []struct {
		name string
		job  registry.Job
		want fault.Class
	}{
		{"a chart that is not signed", registry.Job{Remote: remote, Chart: &chart, Verify: true, Keys: [][]byte{key}}, fault.ClassSignature},
		{"an artifact that is not signed", registry.Job{Remote: artifact, Artifact: &oci.Resolved{Digest: pushed.Digest.String()}, Verify: true, Keys: [][]byte{key}}, fault.ClassSignature},
		{"without a key nothing is signed", registry.Job{Remote: artifact, Artifact: &oci.Resolved{Digest: pushed.Digest.String()}, Verify: true}, fault.ClassInvalid},
		{"a chart of an index has no signature", registry.Job{Remote: endpoint.Remote{URL: "https://charts.test"}, Chart: &chart, Verify: true, Keys: [][]byte{key}}, fault.ClassSignature},
		{"a job that says nothing", registry.Job{}, fault.ClassInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.job.Dir = t.TempDir()
			if _, err := registry.Fetch(t.Context(), c.job); err == nil || fault.ClassOf(err) != c.want {
				t.Errorf("got %v of class %s, want %s", err, fault.ClassOf(err), c.want)
			}
			if _, err := os.Stat(filepath.Join(c.job.Dir, "index")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a snapshot is there: %v", err)
			}
		})
	}
	done, err := registry.Fetch(t.Context(), registry.Job{Remote: remote, Chart: &chart, Dir: t.TempDir()})
	if err != nil || done.Files != 2 || done.Digest != chart.Digest {
		t.Errorf("not asked for a signature: %+v, %v", done, err)
	}
}
