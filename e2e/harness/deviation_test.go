// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestDeviations(t *testing.T) {
	t.Run("the list of what may differ from the manifests is exactly this", func(t *testing.T) {
		want := []string{
			"--bind-address", "--cluster-allow-cidr", "--gateway-addr", "--gateway-drain-timeout", "--gateway-plain", "--gateway-url",
			"--metrics-addr", "--observer-url", "--redial-within", "--secure-port", "--serve-addr", "--source-allow-cidr",
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(permittedFlags))); diff != "" {
			t.Errorf("flags (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}, permittedEnv); diff != "" {
			t.Errorf("variables (-want +got):\n%s", diff)
		}
		service := corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
		if diff := cmp.Diff(service, permittedService); diff != "" {
			t.Errorf("service (-want +got):\n%s", diff)
		}
	})

	for name, c := range map[string]struct {
		args []string
		dev  map[string]string
		want []string
		err  error
	}{
		"nothing asked, nothing changed": {
			args: []string{"--embedded-etcd", "--secure-port=10250"},
			want: []string{"--embedded-etcd", "--secure-port=10250"},
		},
		"a flag with its value in one word is replaced": {
			args: []string{"--secure-port=10250", "--shards=1"},
			dev:  map[string]string{"--secure-port": "20001"},
			want: []string{"--secure-port=20001", "--shards=1"},
		},
		"a flag with its value in the next word is replaced": {
			args: []string{"--secure-port", "10250", "--shards=1"},
			dev:  map[string]string{"--secure-port": "20001"},
			want: []string{"--secure-port", "20001", "--shards=1"},
		},
		"a flag that the manifest has not is added at the end": {
			args: []string{"--shards=1"},
			dev:  map[string]string{"--source-allow-cidr": "127.0.0.0/8"},
			want: []string{"--shards=1", "--source-allow-cidr=127.0.0.0/8"},
		},
		"a flag that begins like another one is left alone": {
			args: []string{"--secure-port-file=x"},
			dev:  map[string]string{"--secure-port": "20001"},
			want: []string{"--secure-port-file=x", "--secure-port=20001"},
		},
		"a flag that is not in the list is refused": {
			args: []string{"--shards=1"},
			dev:  map[string]string{"--shards": "2"},
			err:  ErrNotPermitted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Deviations{Args: c.dev}.apply(c.args)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}
