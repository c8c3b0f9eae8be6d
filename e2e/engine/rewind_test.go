// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/e2e/harness"
)

// Whoever restores a cluster from a snapshot of its etcd puts its versions back too, and a
// watch that goes on from where it was hears nothing of it. It is on a cluster of its own,
// and the same for all modes: the watch is the engine's.
func TestAClusterThatIsRestoredFromASnapshotIsReadAnewAndRepaired(t *testing.T) {
	t.Parallel()
	plane := harness.T(t, harness.Options{
		Name: "restored", UnsafeNoFsync: true,
		Without: []harness.Component{harness.ControllerManager, harness.Scheduler, harness.Kwok},
	})
	b := newIdleBench(t)
	b.plane, b.config = plane, plane.RESTConfig()
	b.config.UserAgent = "convoy-engine-test"
	b.start()
	ns := b.namespace("restored")
	b.apply("restored", ns, configMap(ns, "one", "k", "first"))

	content, saved := filepath.Join(plane.Dir(), "etcd"), filepath.Join(t.TempDir(), "etcd")
	asleep := func(do func() error) {
		t.Helper()
		for _, step := range []func() error{
			func() error { return plane.StopAPIServer(b.ctx) },
			func() error { return plane.StopEtcd(b.ctx) },
			do,
			func() error { return plane.StartEtcd(b.ctx) },
			func() error { return plane.StartAPIServer(b.ctx) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	asleep(func() error { return os.CopyFS(saved, os.DirFS(content)) })

	b.apply("restored", ns, configMap(ns, "one", "k", "second")+configMap(ns, "two", "k", "v"))
	asleep(func() error {
		if err := os.RemoveAll(content); err != nil {
			return err
		}
		return os.CopyFS(content, os.DirFS(saved))
	})
	b.live(configmaps, ns, "one", "as the render has it", func(u *unstructured.Unstructured) bool { return data(u, "k") == "second" })
	b.live(configmaps, ns, "two", "made again", func(u *unstructured.Unstructured) bool { return u.GetDeletionTimestamp() == nil })
}
