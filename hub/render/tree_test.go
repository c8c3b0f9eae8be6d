// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/source/snapshot"
)

// tree is a source of files.
type tree map[string]string

func (f tree) below(place string) []string {
	if place == "." {
		place = ""
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f)), func(name string) bool {
		return place != "" && name != place && !strings.HasPrefix(name, place+"/")
	})
}

func (f tree) Part(paths []string) (io.ReadCloser, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, place := range paths {
		for _, name := range f.below(place) {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(f[name])), Mode: 0o644}); err != nil {
				return nil, err
			}
			if _, err := io.WriteString(w, f[name]); err != nil {
				return nil, err
			}
		}
	}
	return io.NopCloser(&b), w.Close()
}

func (f tree) Kind(place string) (snapshot.Kind, error) {
	if _, file := f[place]; file {
		return snapshot.File, nil
	}
	if len(f.below(place)) > 0 {
		return snapshot.Folder, nil
	}
	return snapshot.Absent, nil
}

func (f tree) InputDigest(place string) (string, error) {
	names := f.below(place)
	if len(names) == 0 {
		return snapshot.AbsentDigest, nil
	}
	sum := sha256.New()
	for _, name := range names {
		fmt.Fprintf(sum, "%q %q\n", name, f[name])
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// job renders the folder app for a Release of a tenant.
func job(tenant string, files render.Source) render.Job {
	return render.Job{Tenant: tenant, Snapshot: files, Content: content.Job{
		Content: v1alpha1.ReleaseContent{Path: "app"}, Namespace: tenant,
		World: facts.World{
			Cluster: map[string]string{"name": "edge"}, KubeVersion: "v1.37.2", APIVersions: []string{"v1", "apps/v1"},
			Self: facts.Self{Name: "shop", Namespace: tenant, TargetNamespace: tenant, UID: "u-1"},
		},
	}}
}
