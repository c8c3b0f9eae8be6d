// SPDX-License-Identifier: Apache-2.0

package manifest

// controllerAnnotations are annotations that the cluster itself writes on objects of a
// kind, as a status of former times: nobody wishes for one, but `kubectl get -o yaml`
// shows them. In a render each would be a fight, or be taken for true. Kinds are without
// their group, since these annotations are the cluster's own in whatever group the kind
// was at its time. What looks alike and is a wish is not among them, as
// autoscaling.alpha.kubernetes.io/metrics and behavior, which are the specification of an
// autoscaler of version v1.
var controllerAnnotations = map[string][]string{
	// The Deployment controller counts templates in it, and copies the number to ReplicaSets
	// with the sizes that it splits a rollout by.
	"Deployment": {"deployment.kubernetes.io/revision"},
	"ReplicaSet": {
		"deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history",
		"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas",
	},
	// The API server keeps a field in it that only old versions have.
	"DaemonSet": {"deprecated.daemonset.template.generation"},
	// The status of newer versions, shown in old ones.
	"HorizontalPodAutoscaler": {"autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/current-metrics"},
	// Binder, scheduler and provisioner say how far they are. A claim that is made with
	// bind-completed counts as lost.
	"PersistentVolumeClaim": {
		"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node",
		"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-resizer",
	},
	"PersistentVolume": {"pv.kubernetes.io/bound-by-controller"},
	// Who leads an election, and when a change began.
	"Endpoints":     {"control-plane.alpha.kubernetes.io/leader", "endpoints.kubernetes.io/last-change-trigger-time"},
	"EndpointSlice": {"endpoints.kubernetes.io/last-change-trigger-time"},
	"ConfigMap":     {"control-plane.alpha.kubernetes.io/leader"},
	// How Pods were counted while that was new.
	"Job": {"batch.kubernetes.io/job-tracking"},
}

// controllerGroups are the groups that these kinds are of, or were.
var controllerGroups = map[string]bool{"": true, "apps": true, "extensions": true, "autoscaling": true, "batch": true, "discovery.k8s.io": true}

// dropWritten takes such annotations out of an object.
func dropWritten(object Object, annotations map[string]any) {
	delete(annotations, lastApplied)
	if !controllerGroups[object.Group] {
		return
	}
	for _, key := range controllerAnnotations[object.Kind] {
		delete(annotations, key)
	}
}
