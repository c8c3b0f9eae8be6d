// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/e2e/install"
)

// TestNobodyIsAnonymousWhileTheHubStarts: who asks through the host while the hub starts is
// told to come back, never forbidden what is theirs.
func TestNobodyIsAnonymousWhileTheHubStarts(t *testing.T) {
	a := newApp(t, "starting", 1, 12*time.Minute)
	if err := shared.hub.Kill9(a.ctx); err != nil {
		t.Fatal(err)
	}
	up := make(chan error, 1)
	go func() { up <- shared.hub.Up(a.ctx) }()
	for asked := 0; ; asked++ {
		_, err := shared.host.Dynamic().Resource(install.Releases).Namespace(team).Get(a.ctx, a.name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			t.Errorf("after %d questions: %v", asked, err)
		case err == nil:
			if err := <-up; err != nil {
				t.Fatal(err)
			}
			t.Logf("%d questions before the first answer", asked)
			return
		}
		a.pass(20*time.Millisecond, err)
	}
}
