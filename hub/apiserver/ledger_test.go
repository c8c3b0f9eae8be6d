// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

const collector = "system:serviceaccount:kube-system:generic-garbage-collector"

// ledger is a server with a budget of five deletions, or of twenty percent.
type ledger struct {
	*apiservertest.Server
	client.Client
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	host  *rights
	// going are namespaces that are being deleted.
	going map[string]bool
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	l := &ledger{t: t, clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second)), host: &rights{denied: map[string]bool{}}, going: map[string]bool{}}
	l.Server = apiservertest.Start(t, func(c *apiserver.Config) {
		c.Clock, c.Options.Budget = l.clock, apiserver.Budget{Count: 5, Percent: 20, Window: 10 * time.Minute}
		c.Authorizer = authorizer.AuthorizerFunc(l.host.authorize)
		c.Terminating = func(_ context.Context, namespace string) (bool, error) { return l.going[namespace], nil }
	})
	l.Client = newClient(t, l.Server)
	create(t, l, newCluster("team", "edge"))
	return l
}

// as gives the client of another user.
func (l *ledger) as(user string) client.Client {
	l.t.Helper()
	raw, err := l.Kubeconfig(l.Keyring.HubCA, l.Keyring.ServingCA.PEM, user, apiserver.GroupAdmin)
	if err != nil {
		l.t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		l.t.Fatal(err)
	}
	config.QPS, config.NextProtos = -1, []string{"http/1.1"}
	c, err := client.New(config, client.Options{Scheme: l.Scheme()})
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// release makes one that runs on its cluster.
func (l *ledger) release(namespace, name, cluster string, mods ...func(*corev1alpha1.Release)) *corev1alpha1.Release {
	l.t.Helper()
	r := newRelease(namespace, name, cluster)
	for _, mod := range mods {
		mod(r)
	}
	create(l.t, l, r)
	l.order(r, 7)
	return r
}

func (l *ledger) order(r *corev1alpha1.Release, sequence int64) {
	l.t.Helper()
	_, err := l.Storage().Releases.UpdateStatus(l.t.Context(), client.ObjectKeyFromObject(r), r.UID, func(r *corev1alpha1.Release) error {
		r.Status.Sequence, r.Status.RenderRef = sequence, "sha256:00"
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *ledger) releases(namespace, cluster string, count int) []*corev1alpha1.Release {
	l.t.Helper()
	out := make([]*corev1alpha1.Release, count)
	for i := range out {
		out[i] = l.release(namespace, fmt.Sprintf("%s-%02d", cluster, i), cluster)
	}
	return out
}

// isHeld says whether a deletion was refused as it should be.
func isHeld(err error) bool {
	return apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, metav1.CauseType(corev1alpha1.ReasonDeletionHeld))
}

// deletes counts those that passed and those that were held.
func (l *ledger) deletes(c client.Client, list []*corev1alpha1.Release) (passed, held int, last error) {
	l.t.Helper()
	for _, r := range list {
		switch err := c.Delete(l.t.Context(), r); {
		case err == nil:
			passed++
		case isHeld(err):
			held++
			last = err
		default:
			l.t.Fatalf("delete %s: %v", r.Name, err)
		}
	}
	return passed, held, last
}

func (l *ledger) held(r *corev1alpha1.Release) *corev1alpha1.HeldDeletion {
	l.t.Helper()
	return get(l.t, l, &corev1alpha1.Release{}, r.Namespace, r.Name).Status.HeldDeletion
}

// confirm asks for a confirmation of what is recorded.
func (l *ledger) confirm(o client.Object, h *corev1alpha1.HeldDeletion, options ...client.SubResourceCreateOption) (*corev1alpha1.ConfirmRequest, error) {
	request := &corev1alpha1.ConfirmRequest{Sequence: h.Sequence, Digest: h.Digest}
	return request, l.SubResource("confirm").Create(l.t.Context(), o, request, options...)
}
