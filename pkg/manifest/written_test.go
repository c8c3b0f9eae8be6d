// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/manifest"
)

func TestYA07WhatControllersWriteOnAnObjectIsNoPartOfARender(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		document string
		want     map[string]any
	}{
		"the revision of a Deployment": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: "4", kubectl.kubernetes.io/last-applied-configuration: "{}", mine: x}}}`,
			map[string]any{"mine": "x"},
		},
		"all that there is": {
			`{apiVersion: extensions/v1beta1, kind: DaemonSet, metadata: {name: a, annotations: {deprecated.daemonset.template.generation: "2"}}}`,
			nil,
		},
		"an autoscaler of version v1 keeps what it wishes": {
			`{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: a, annotations: {autoscaling.alpha.kubernetes.io/conditions: "[]", autoscaling.alpha.kubernetes.io/metrics: "[]", autoscaling.alpha.kubernetes.io/behavior: "{}"}}}`,
			map[string]any{"autoscaling.alpha.kubernetes.io/metrics": "[]", "autoscaling.alpha.kubernetes.io/behavior": "{}"},
		},
		"a claim keeps its class": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {pv.kubernetes.io/bind-completed: "yes", volume.kubernetes.io/storage-provisioner: p, volume.beta.kubernetes.io/storage-class: fast}}}`,
			map[string]any{"volume.beta.kubernetes.io/storage-class": "fast"},
		},
		"a volume keeps who made it, by which it is deleted": {
			`{apiVersion: v1, kind: PersistentVolume, metadata: {name: a, annotations: {pv.kubernetes.io/bound-by-controller: "yes", pv.kubernetes.io/provisioned-by: p}}}`,
			map[string]any{"pv.kubernetes.io/provisioned-by": "p"},
		},
		"another kind": {
			`{apiVersion: v1, kind: Service, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: "4"}}}`,
			map[string]any{"deployment.kubernetes.io/revision": "4"},
		},
		"a custom kind of that name": {
			`{apiVersion: example.test/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: "4"}}}`,
			map[string]any{"deployment.kubernetes.io/revision": "4"},
		},
	} {
		objects, err := manifest.Parse("a.yaml", []byte(c.document))
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s: %v, %v", name, objects, err)
		}
		metadata, ok := objects[0].Content["metadata"].(map[string]any)
		if !ok {
			t.Fatalf("%s: %v", name, objects[0].Content)
		}
		var got map[string]any
		if annotations, there := metadata["annotations"]; there {
			if got, ok = annotations.(map[string]any); !ok {
				t.Fatalf("%s: %v", name, annotations)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
