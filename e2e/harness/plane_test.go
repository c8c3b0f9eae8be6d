// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestPlane(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	began := time.Now()
	p := T(t, Options{UnsafeNoFsync: true})
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))

	t.Run("kubectl can create and delete a namespace", func(t *testing.T) {
		if _, err := p.Kubectl(ctx, "create", "namespace", "empty"); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Kubectl(ctx, "delete", "namespace", "empty", "--timeout=60s"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("every program says which version it is", func(t *testing.T) {
		out, err := p.Kubectl(ctx, "version")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Client Version: " + kubeVersion, "Server Version: " + kubeVersion} {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl version gives %q, want %q in it", out, want)
			}
		}
	})
}
