// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// podOf makes the pod of a Deployment, as its ReplicaSet would.
func podOf(deployment *appsv1.Deployment) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: deployment.Name + "-", Namespace: deployment.Namespace, Labels: deployment.Spec.Template.Labels},
		Spec:       *deployment.Spec.Template.Spec.DeepCopy(),
	}
}

func TestRestrictedPodSecurityTakesThePodsAndNoLooserOnes(t *testing.T) {
	looser := map[string]func(*corev1.PodSpec){
		"network of the host": func(pod *corev1.PodSpec) { pod.HostNetwork = true },
		"root":                func(pod *corev1.PodSpec) { pod.SecurityContext.RunAsNonRoot, pod.SecurityContext.RunAsUser = nil, nil },
		"any system call":     func(pod *corev1.PodSpec) { pod.SecurityContext.SeccompProfile = nil },
		"more privileges": func(pod *corev1.PodSpec) {
			pod.Containers[0].SecurityContext.AllowPrivilegeEscalation = ptr.To(true)
		},
		"a folder of the node": func(pod *corev1.PodSpec) {
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		},
	}
	for name, at := range map[string]struct {
		plane                 *harness.Plane
		namespace, deployment string
	}{
		"hub":   {world.hub.Plane, install.HubNamespace, install.HubDeployment},
		"agent": {world.edge.Plane, install.AgentNamespace, install.AgentName},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := deadline(t)
			client := at.plane.Client()
			namespace, err := client.CoreV1().Namespaces().Get(ctx, at.namespace, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := namespace.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
				t.Fatalf("namespace %s enforces %q", at.namespace, got)
			}
			deployment, err := client.AppsV1().Deployments(at.namespace).Get(ctx, at.deployment, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			if _, err := client.CoreV1().Pods(at.namespace).Create(ctx, podOf(deployment), dry); err != nil {
				t.Errorf("the pod is refused: %v", err)
			}
			for how, loosen := range looser {
				pod := podOf(deployment)
				loosen(&pod.Spec)
				_, err := client.CoreV1().Pods(at.namespace).Create(ctx, pod, dry)
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
					t.Errorf("a pod with %s gets %v: admission does not look", how, err)
				}
			}
		})
	}
}
