// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// manyObjectsName is that of the Release with many objects.
const manyObjectsName = "many-objects"

// objectsChart renders to so many ConfigMaps with so many bytes each, out of so many
// templates: a small source, a large render.
func objectsChart(name string, templates, count, size int) map[string]string {
	files := map[string]string{name + "/Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"}
	for t := range templates {
		files[fmt.Sprintf("%s/templates/objects-%d.yaml", name, t)] = fmt.Sprintf(`{{- range $i, $e := until %d }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %s-%d-{{ printf "%%05d" $i }}}
data: {value: {{ repeat %d "x" | quote }}}
{{- end }}
`, count/templates, name, t, size)
	}
	return files
}

// manyObjects: one Release of as many objects as one may have, and one whose render is
// large, each made, settled and deleted again, on an edge that has nothing else.
func manyObjects(ctx context.Context, b *bed) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	if err := b.needPlanes(ctx); err != nil {
		return err
	}
	plane, err := harness.Start(ctx, harness.Options{Name: "edge-2"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	edge, err := b.hub.Join(ctx, plane, namespace, "edge-2")
	if err != nil {
		return err
	}
	if _, err := plane.Kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	repo, err := b.git.Repository(ctx, "objects")
	if err != nil {
		return err
	}
	files := objectsChart(manyObjectsName, 1, 10000, 300)
	for name, text := range objectsChart("large-render", 5, 500, 100000) {
		files[name] = text
	}
	if _, err := repo.Commit(ctx, "content", files); err != nil {
		return err
	}
	if err := b.hub.Source(ctx, b.git, namespace, "objects", metav1.Duration{Duration: time.Hour}); err != nil {
		return err
	}
	if _, err := harness.WaitFor(ctx, b.hub.Plane.Dynamic(), install.GitRepositories, namespace, "objects", harness.HasCondition("Ready", "True", "")); err != nil {
		return err
	}
	for _, c := range []struct{ name, what, goal string }{
		{"large-render", "a render of 50 MB, 500 objects of 100 KB", "it works"},
		{manyObjectsName, "10,000 objects in one Release", "it works"},
	} {
		if err := oneLarge(ctx, b, edge, c.name, c.what, c.goal); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func oneLarge(ctx context.Context, b *bed, edge *install.Edge, name, what, goal string) error {
	agent, hub := edge.Pod.PID(), b.hub.Pod.PID()
	for _, pid := range []int{agent, hub} {
		if err := forgetPeak(pid); err != nil {
			return err
		}
	}
	before, err := cpu(agent)
	if err != nil {
		return err
	}
	// Workers end when they have nothing to do, so that they are looked at meanwhile.
	watch := watchMemory(ctx, func() (int64, error) { return childrenMemory(strconv.Itoa(hub)) })
	start := time.Now()
	release := install.Release(namespace, name, edge.Name, "objects", name, func(r *corev1alpha1.Release) {
		r.Spec.SyncPolicy.Timeout = &metav1.Duration{Duration: 20 * time.Minute}
	})
	err = b.hub.Create(ctx, release)
	if err == nil {
		_, err = harness.WaitFor(ctx, b.hub.Plane.Dynamic(), install.Releases, namespace, name, harness.HasCondition("Ready", "True", ""))
	}
	took := time.Since(start)
	workers, watched := watch()
	if err = errors.Join(err, watched); err != nil {
		return err
	}
	after, err := cpu(agent)
	if err != nil {
		return err
	}
	ready, err := residentOf(agent)
	if err != nil {
		return err
	}
	hubPeak, err := memory(hub, "VmHWM")
	if err != nil {
		return err
	}
	objects, rest := 0, resident{}
	if name == manyObjectsName {
		if objects, err = ownedObjects(ctx, edge); err != nil {
			return err
		}
		if _, rest, err = b.settled(ctx, edge); err != nil {
			return err
		}
	}
	start = time.Now()
	if _, err := b.hub.Plane.Kubectl(ctx, "-n", namespace, "delete", "release", name, "--wait=false"); err != nil {
		return err
	}
	if err := harness.WaitGone(ctx, b.hub.Plane.Dynamic(), install.Releases, namespace, name); err != nil {
		return err
	}
	b.out.add(what, goal, "Ready after %.0f s; CPU of the agent %.0f s, its peak RSS %.0f MiB, the hub's %.0f MiB, its render workers' %d MiB; deleted in %.0f s",
		took.Seconds(), (after - before).Seconds(), mib(ready.peak), mib(hubPeak), workers>>20, time.Since(start).Seconds())
	if objects > 0 {
		b.out.add(fmt.Sprintf("agent memory with these %s objects: private / RSS / peak", thousands(objects)), "-",
			"%.0f / %.0f / %.0f MiB when it is Ready; %.0f / %.0f at rest", mib(ready.private), mib(ready.rss), mib(ready.peak), mib(rest.private), mib(rest.rss))
	}
	return nil
}

// forgetPeak has the kernel measure a process's peak RSS from now on.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200)
}
