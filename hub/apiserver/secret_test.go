// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

// rights are a host's answers: what is not denied is allowed.
type rights struct {
	mu     sync.Mutex
	denied map[string]bool // "verb resource name"
	asked  []string
}

func (r *rights) deny(what ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range what {
		r.denied[w] = true
	}
}

func (r *rights) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	resource := a.GetResource()
	if sub := a.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	what := a.GetVerb() + " " + resource + " " + a.GetName()
	r.asked = append(r.asked, a.GetUser().GetName()+" "+a.GetNamespace()+" "+what)
	if r.denied[what] || r.denied[a.GetVerb()+" "+resource] {
		return authorizer.DecisionNoOpinion, "no rule allows it", nil
	}
	return authorizer.DecisionAllow, "", nil
}

func withRights(t *testing.T, denied ...string) (*apiservertest.Server, client.Client, *rights) {
	t.Helper()
	r := &rights{denied: map[string]bool{}}
	r.deny(denied...)
	s := apiservertest.Start(t, func(c *apiserver.Config) { c.Authorizer = authorizer.AuthorizerFunc(r.authorize) })
	return s, newClient(t, s), r
}

func dialled(namespace, name, kubeconfig, ca string) *corev1alpha1.Cluster {
	c := newCluster(namespace, name)
	c.Spec.ConnectionMode = corev1alpha1.ConnectionModeAgentless
	c.Spec.Agentless = &corev1alpha1.AgentlessConnection{Auth: corev1alpha1.ClusterAuth{
		Type: corev1alpha1.AuthTypeKubeconfig, Kubeconfig: &corev1alpha1.KubeconfigAuth{SecretRef: corev1alpha1.SecretKeyReference{Name: kubeconfig, Key: "kubeconfig"}},
	}}
	if ca != "" {
		c.Spec.Agentless.CAPublicCertRef = &corev1alpha1.SecretKeyReference{Name: ca, Key: "ca.crt"}
	}
	return c
}

func TestNobodyCanHaveTheHubDialAClusterWithASecretThatHeMayNotGet(t *testing.T) {
	t.Parallel()
	_, c, host := withRights(t, "get secrets theirs")
	err := c.Create(t.Context(), dialled("team", "theirs", "theirs", ""))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.agentless.auth.kubeconfig.secretRef.name") || !strings.Contains(err.Error(), `cannot get Secret "theirs" in namespace "team"`) {
		t.Errorf("create: %v, want Forbidden with field, Secret and namespace", err)
	}
	if err := c.Create(t.Context(), dialled("team", "theirs", "mine", "theirs")); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.agentless.caPublicCertRef.name") {
		t.Errorf("create with a CA: %v, want Forbidden with its field", err)
	}
	cl := dialled("team", "edge", "mine", "ca")
	create(t, c, cl)
	if diff := cmp.Diff([]string{"mine", "ca"}, cl.Status.CheckedSecrets); diff != "" {
		t.Errorf("recorded at create (-want +got):\n%s", diff)
	}

	t.Run("another Secret is checked too", func(t *testing.T) {
		cl := get(t, c, &corev1alpha1.Cluster{}, "team", "edge")
		cl.Spec.Agentless.Auth.Kubeconfig.SecretRef.Name = "theirs"
		if err := c.Update(t.Context(), cl); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want Forbidden", err)
		}
	})
	t.Run("nobody adds a checked reference through the status", func(t *testing.T) {
		cl := get(t, c, &corev1alpha1.Cluster{}, "team", "edge")
		cl.Status.CheckedSecrets = []string{"mine", "ca", "theirs"}
		if err := c.Status().Update(t.Context(), cl); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"mine", "ca"}, cl.Status.CheckedSecrets); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
	})
	host.deny("get secrets mine")
	t.Run("what does not redirect the hub may be written by somebody who may not get the Secrets", func(t *testing.T) {
		cl := get(t, c, &corev1alpha1.Cluster{}, "team", "edge")
		cl.Spec.Metadata = map[string]string{"region": "eu"}
		if err := c.Update(t.Context(), cl); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"mine", "ca"}, cl.Status.CheckedSecrets); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
	})
	t.Run("the server may not", func(t *testing.T) {
		cl := get(t, c, &corev1alpha1.Cluster{}, "team", "edge")
		cl.Spec.Agentless.Server = "https://evil.example"
		if err := c.Update(t.Context(), cl); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want Forbidden", err)
		}
	})
	t.Run("another key of the same Secret may not", func(t *testing.T) {
		cl := get(t, c, &corev1alpha1.Cluster{}, "team", "edge")
		cl.Spec.Agentless.Auth.Kubeconfig.SecretRef.Key = "other"
		if err := c.Update(t.Context(), cl); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want Forbidden", err)
		}
	})
	t.Run("a reference that goes is no longer recorded", func(t *testing.T) {
		cl := get(t, c, &corev1alpha1.Cluster{}, "team", "edge")
		cl.Spec.Agentless.Auth = corev1alpha1.ClusterAuth{Type: "oidc"}
		if err := c.Update(t.Context(), cl); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"ca"}, cl.Status.CheckedSecrets); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
	})
}

func TestOnlyWhoHasTheVerbMakesAClusterOfTheHubsOwnHost(t *testing.T) {
	t.Parallel()
	_, c, _ := withRights(t, "incluster clusters theirs")
	theirs := newCluster("team", "theirs")
	theirs.Spec.ConnectionMode = corev1alpha1.ConnectionModeInCluster
	if err := c.Create(t.Context(), theirs.DeepCopy()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "verb incluster on clusters") {
		t.Errorf("got %v, want Forbidden that names the verb", err)
	}
	if err := c.Create(t.Context(), theirs, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("dry run: got %v, want Forbidden", err)
	}
	ours := newCluster("team", "ours")
	ours.Spec.ConnectionMode = corev1alpha1.ConnectionModeInCluster
	create(t, c, ours)
}
