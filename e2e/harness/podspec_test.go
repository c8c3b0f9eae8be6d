// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func TestCheckPod(t *testing.T) {
	opts := PodOptions{Images: map[string]string{"image": "/program"}}
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		ok     bool
	}{
		"a plain container is fine":     {change: func(*corev1.PodSpec) {}, ok: true},
		"init containers are refused":   {change: func(s *corev1.PodSpec) { s.InitContainers = s.Containers }},
		"a second container is refused": {change: func(s *corev1.PodSpec) { s.Containers = append(s.Containers, s.Containers[0]) }},
		"hostPath is refused": {change: func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}
		}},
		"envFrom is refused":         {change: func(s *corev1.PodSpec) { s.Containers[0].EnvFrom = []corev1.EnvFromSource{{}} }},
		"a pod that ends is refused": {change: func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever }},
		"a projected source that is none": {change: func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}}}}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "image"}}}}
			c.change(&pod.Spec)
			_, err := checkPod(pod, opts)
			if c.ok != (err == nil) || err != nil && !errors.Is(err, ErrUnsupported) {
				t.Errorf("error %v, want none: %t", err, c.ok)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"NAME": "x", "A.B": "y"}
	for in, want := range map[string]string{
		"--name=$(NAME)":   "--name=x",
		"$(NAME)-$(NAME)":  "x-x",
		"$(A.B)":           "y",
		"$(UNKNOWN)":       "$(UNKNOWN)",
		"$$(NAME)":         "$(NAME)",
		"$NAME ${NAME} $(": "$NAME ${NAME} $(",
	} {
		t.Run("as a kubelet does: "+in, func(t *testing.T) {
			if got := expand(in, env); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	c := &corev1.Container{Resources: corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
	}}
	for name, tc := range map[string]struct {
		ref  corev1.ResourceFieldSelector
		want string
	}{
		"memory is in bytes":                     {ref: corev1.ResourceFieldSelector{Resource: "limits.memory"}, want: "268435456"},
		"memory in the unit of the divisor":      {ref: corev1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}, want: "256"},
		"cores are rounded up":                   {ref: corev1.ResourceFieldSelector{Resource: "requests.cpu"}, want: "1"},
		"cores in the unit of the divisor":       {ref: corev1.ResourceFieldSelector{Resource: "requests.cpu", Divisor: resource.MustParse("1m")}, want: "250"},
		"a limit that is not set is not guessed": {ref: corev1.ResourceFieldSelector{Resource: "limits.cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := limit(c, &tc.ref)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, error %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestSecurity(t *testing.T) {
	t.Run("a container that must not be root is not run as root", func(t *testing.T) {
		run := &Pod{}
		object := &corev1.Pod{Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)},
			Containers:      []corev1.Container{{Name: "c"}},
		}}
		if err := run.security(object, &object.Spec.Containers[0], nil); err == nil {
			t.Error("no error")
		}
	})
}
