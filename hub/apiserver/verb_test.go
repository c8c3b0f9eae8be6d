// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

func publicKey(t *testing.T, seed byte) string {
	t.Helper()
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize)))
	return base64.StdEncoding.EncodeToString(private[ed25519.SeedSize:])
}

func TestJoinRegistersATokenAndTellsWhatAnInstallerNeeds(t *testing.T) {
	t.Parallel()
	now := time.Now().Add(-time.Minute).Truncate(time.Second) // of a clock that stands still
	s := apiservertest.Start(t, func(c *apiserver.Config) {
		c.Clock = clocktesting.NewFakePassiveClock(now)
		c.Join = apiserver.JoinInfo{GatewayURL: "wss://hub.example:443", HubID: "hub", HubCA: "PEM", CAPin: "sha256:00", OrderKeys: []string{"key"}, AgentImage: "agent:1"}
	})
	c := newClient(t, s)
	cl := newCluster("team", "edge-1")
	create(t, c, cl)
	join := func(request *corev1alpha1.JoinRequest, options ...client.SubResourceCreateOption) error {
		return c.SubResource("join").Create(t.Context(), newCluster("team", "edge-1"), request, options...)
	}

	dry := &corev1alpha1.JoinRequest{Spec: corev1alpha1.JoinRequestSpec{PublicKey: publicKey(t, 1)}}
	if err := join(dry, client.DryRunAll); err != nil {
		t.Fatalf("dry run: %v", err)
	}
	if got := get(t, c, &corev1alpha1.Cluster{}, "team", "edge-1"); got.Status.Join != nil {
		t.Fatal("a dry run registered a token")
	}

	request := &corev1alpha1.JoinRequest{Spec: corev1alpha1.JoinRequestSpec{PublicKey: publicKey(t, 1), TTL: &metav1.Duration{Duration: 10 * time.Minute}}}
	if err := join(request); err != nil {
		t.Fatalf("join: %v", err)
	}
	expires := metav1.NewTime(now.Add(10 * time.Minute))
	want := corev1alpha1.JoinRequestStatus{
		ExpiresAt: &expires, GatewayURL: "wss://hub.example:443", HubID: "hub", ClusterUID: string(cl.UID), HubCA: "PEM", CAPin: "sha256:00", OrderKeys: []string{"key"}, AgentImage: "agent:1",
	}
	if diff := cmp.Diff(want, request.Status); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	got := get(t, c, &corev1alpha1.Cluster{}, "team", "edge-1")
	if got.Status.Join == nil || got.Status.Join.PublicKey != publicKey(t, 1) || !got.Status.Join.ExpiresAt.Time.Equal(expires.Time) {
		t.Errorf("recorded %+v", got.Status.Join)
	}
	if got.Generation != 1 {
		t.Errorf("generation %d: a token is no change of the spec", got.Generation)
	}

	_, err := s.Storage().Clusters.UpdateStatus(t.Context(), types.NamespacedName{Namespace: "team", Name: "edge-1"}, "", func(c *corev1alpha1.Cluster) error {
		c.Status.Join, c.Status.Agent = nil, &corev1alpha1.ClusterAgentStatus{JoinKey: publicKey(t, 1)}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := join(&corev1alpha1.JoinRequest{Spec: corev1alpha1.JoinRequestSpec{PublicKey: publicKey(t, 1)}}); !apierrors.IsConflict(err) {
		t.Errorf("a token that was used: %v, want a conflict", err)
	}
}

func TestWhatJoinRefuses(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	create(t, newClient(t, s), newCluster("team", "edge-1"))
	body := func(spec string) string {
		return `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"JoinRequest","spec":` + spec + `}`
	}
	key := publicKey(t, 1)
	for name, c := range map[string]struct {
		cluster, body string
		code          int
		want          string
	}{
		"no public key: the hub makes no secrets for others": {"edge-1", body(`{}`), http.StatusUnprocessableEntity, "spec.publicKey: Required"},
		"a key that is none":                         {"edge-1", body(`{"publicKey":"abc"}`), http.StatusUnprocessableEntity, "spec.publicKey"},
		"a key of another size":                      {"edge-1", body(`{"publicKey":"YWJj"}`), http.StatusUnprocessableEntity, "32 bytes"},
		"a token that is good for more than an hour": {"edge-1", body(`{"publicKey":"` + key + `","ttl":"61m"}`), http.StatusUnprocessableEntity, "spec.ttl"},
		"a seed, which must not be sent":             {"edge-1", body(`{"publicKey":"` + key + `","seed":"x"}`), http.StatusBadRequest, "unknown field"},
		"a Cluster that is not there":                {"none", body(`{"publicKey":"` + key + `"}`), http.StatusNotFound, "none"},
		"another Cluster's name in the body":         {"edge-1", `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"JoinRequest","metadata":{"name":"other"},"spec":{"publicKey":"` + key + `"}}`, http.StatusUnprocessableEntity, "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			a := raw(t, s, http.MethodPost, corePath+"/namespaces/team/clusters/"+c.cluster+"/join?fieldValidation=Strict", c.body)
			if a.code != c.code || !strings.Contains(a.body, c.want) {
				t.Errorf("%d %s\nwant %d with %q", a.code, a.body, c.code, c.want)
			}
		})
	}
}

func TestSyncSetsTheAnnotationsThatAskForIt(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	create(t, c, newRelease("team", "web", "edge"))
	sync := func(force bool, options ...client.SubResourceCreateOption) *corev1alpha1.SyncRequest {
		t.Helper()
		request := &corev1alpha1.SyncRequest{Force: force}
		if err := c.SubResource("sync").Create(t.Context(), newRelease("team", "web", "edge"), request, options...); err != nil {
			t.Fatal(err)
		}
		return request
	}
	sync(true, client.DryRunAll)
	if got := get(t, c, &corev1alpha1.Release{}, "team", "web"); len(got.Annotations) > 0 {
		t.Fatalf("a dry run wrote %v", got.Annotations)
	}

	first := sync(false)
	got := get(t, c, &corev1alpha1.Release{}, "team", "web")
	want := map[string]string{corev1alpha1.AnnotationSyncRequestedAt: first.RequestedAt}
	if diff := cmp.Diff(want, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if _, err := time.Parse(time.RFC3339Nano, first.RequestedAt); err != nil {
		t.Errorf("requestedAt: %v", err)
	}

	second := sync(true)
	got = get(t, c, &corev1alpha1.Release{}, "team", "web")
	want = map[string]string{corev1alpha1.AnnotationSyncRequestedAt: second.RequestedAt, corev1alpha1.AnnotationSyncForceRequestedAt: second.RequestedAt}
	if diff := cmp.Diff(want, got.Annotations); diff != "" {
		t.Errorf("annotations of a forced sync (-want +got):\n%s", diff)
	}
	if got.Generation != 1 {
		t.Errorf("generation %d: a sync is no change of the spec", got.Generation)
	}
	if a := raw(t, s, http.MethodPost, corePath+"/namespaces/team/releases/web/sync", ""); a.code < 400 {
		t.Errorf("an empty body: %d", a.code)
	}
	if a := raw(t, s, http.MethodGet, corePath+"/namespaces/team/releases/web/pin", ""); a.code != http.StatusNotFound {
		t.Errorf("a subresource that is not built: %d, want 404", a.code)
	}
}

func TestNobodyCanHaveTheHubUseASecretThatHeMayNotGet(t *testing.T) {
	t.Parallel()
	// The host's answers to the question who may get which Secret.
	var asked []string
	mayGet := map[string]bool{"tester team/mine": true}
	host := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetResource() != "secrets" {
			return authorizer.DecisionAllow, "", nil
		}
		asked = append(asked, fmt.Sprintf("%s %s %s/%s", a.GetUser().GetName(), a.GetVerb(), a.GetNamespace(), a.GetName()))
		if mayGet[a.GetUser().GetName()+" "+a.GetNamespace()+"/"+a.GetName()] {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "no rule allows it", nil
	})
	s := apiservertest.Start(t, func(c *apiserver.Config) { c.Authorizer = host })
	c := newClient(t, s)

	theirs := newGitRepository("team", "theirs")
	theirs.Spec.SecretRef = &sourcev1alpha1.SecretReference{Name: "theirs"}
	err := c.Create(t.Context(), theirs)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.secretRef.name") || !strings.Contains(err.Error(), `cannot get Secret "theirs" in namespace "team"`) {
		t.Errorf("create: %v, want Forbidden with field, Secret and namespace", err)
	}

	g := newGitRepository("team", "app")
	g.Spec.SecretRef = &sourcev1alpha1.SecretReference{Name: "mine"}
	create(t, c, g)
	if diff := cmp.Diff([]string{"mine"}, g.Status.CheckedSecrets); diff != "" {
		t.Errorf("recorded at create (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"tester get team/theirs", "tester get team/mine"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}

	t.Run("a second reference is checked too", func(t *testing.T) {
		g := get(t, c, &sourcev1alpha1.GitRepository{}, "team", "app")
		g.Spec.CASecretRef = &sourcev1alpha1.SecretReference{Name: "theirs"}
		if err := c.Update(t.Context(), g); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.caSecretRef.name") {
			t.Errorf("got %v, want Forbidden", err)
		}
	})
	t.Run("nobody adds a checked reference through the status", func(t *testing.T) {
		g := get(t, c, &sourcev1alpha1.GitRepository{}, "team", "app")
		g.Status.CheckedSecrets = []string{"mine", "theirs"}
		if err := c.Status().Update(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"mine"}, g.Status.CheckedSecrets); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
	})
	t.Run("a label may be written by somebody who may not get the Secret", func(t *testing.T) {
		delete(mayGet, "tester team/mine")
		g := get(t, c, &sourcev1alpha1.GitRepository{}, "team", "app")
		g.Labels["a"] = "b"
		if err := c.Update(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"mine"}, g.Status.CheckedSecrets); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
	})
	t.Run("the URL may not: the Secret would go to a host of his own", func(t *testing.T) {
		g := get(t, c, &sourcev1alpha1.GitRepository{}, "team", "app")
		g.Spec.URL = "https://evil.example/x.git"
		if err := c.Update(t.Context(), g); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want Forbidden", err)
		}
	})
	t.Run("a reference that goes is no longer recorded", func(t *testing.T) {
		g := get(t, c, &sourcev1alpha1.GitRepository{}, "team", "app")
		g.Spec.SecretRef = nil
		if err := c.Update(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		if len(g.Status.CheckedSecrets) > 0 {
			t.Errorf("recorded %v", g.Status.CheckedSecrets)
		}
	})
	t.Run("credentials over http are warned about", func(t *testing.T) {
		mayGet["tester team/mine"] = true
		a := raw(t, s, http.MethodPost, sourcePath+"/namespaces/team/gitrepositories", `{"apiVersion":"source.convoy.kumodo.io/v1alpha1","kind":"GitRepository","metadata":{"name":"plain"},"spec":{"url":"http://git.example/app","secretRef":{"name":"mine"}}}`)
		if a.code != http.StatusCreated || !strings.Contains(strings.Join(a.warning, " "), "unencrypted") {
			t.Errorf("%d, warnings %v", a.code, a.warning)
		}
	})
}

func TestRevokeRefusesTheIdentityThatJoinedAndVoidsATokenThatIsOut(t *testing.T) {
	t.Parallel()
	now := time.Now().Add(-time.Minute).Truncate(time.Second)
	clock := clocktesting.NewFakePassiveClock(now)
	s := apiservertest.Start(t, func(c *apiserver.Config) { c.Clock = clock })
	c := newClient(t, s)
	create(t, c, newCluster("team", "edge-1"))
	revoke := func(request *corev1alpha1.RevokeRequest, options ...client.SubResourceCreateOption) error {
		return c.SubResource("revoke").Create(t.Context(), newCluster("team", "edge-1"), request, options...)
	}
	if err := revoke(&corev1alpha1.RevokeRequest{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "nothing to revoke") {
		t.Errorf("nobody joined: %v, want a conflict that says so", err)
	}
	_, err := s.Storage().Clusters.UpdateStatus(t.Context(), types.NamespacedName{Namespace: "team", Name: "edge-1"}, "", func(c *corev1alpha1.Cluster) error {
		c.Status.Agent = &corev1alpha1.ClusterAgentStatus{BoundKey: publicKey(t, 2)}
		c.Status.Join = &corev1alpha1.ClusterJoinStatus{PublicKey: publicKey(t, 1), ExpiresAt: metav1.NewTime(now.Add(time.Hour))}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	dry := &corev1alpha1.RevokeRequest{}
	if err := revoke(dry, client.DryRunAll); err != nil || dry.RevokedAt == nil {
		t.Errorf("dry run: %v, answered %v", err, dry.RevokedAt)
	}
	if got := get(t, c, &corev1alpha1.Cluster{}, "team", "edge-1"); got.Status.Agent.RevokedAt != nil || got.Status.Join == nil {
		t.Error("a dry run revoked")
	}
	first := &corev1alpha1.RevokeRequest{}
	if err := revoke(first); err != nil {
		t.Fatal(err)
	}
	got := get(t, c, &corev1alpha1.Cluster{}, "team", "edge-1")
	if !got.Status.Agent.RevokedAt.Time.Equal(now) || got.Status.Join != nil || got.Generation != 1 {
		t.Errorf("revoked at %v, token %v, generation %d", got.Status.Agent.RevokedAt, got.Status.Join, got.Generation)
	}
	clock.SetTime(now.Add(time.Second))
	again := &corev1alpha1.RevokeRequest{}
	if err := revoke(again); err != nil || !again.RevokedAt.Equal(first.RevokedAt) {
		t.Errorf("again: %v, at %v, want %v", err, again.RevokedAt, first.RevokedAt)
	}
	if a := raw(t, s, http.MethodPost, corePath+"/namespaces/team/clusters/edge-1/revoke", `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"RevokeRequest","metadata":{"name":"other"}}`); a.code != http.StatusUnprocessableEntity {
		t.Errorf("another Cluster's name in the body: %d %s", a.code, a.body)
	}
}

func TestAClusterThatTheHubDialsHasNoAgentToJoinOrRevoke(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	create(t, c, dialled("team", "edge-1", "edge-1", ""))
	err := c.SubResource("join").Create(t.Context(), newCluster("team", "edge-1"), &corev1alpha1.JoinRequest{Spec: corev1alpha1.JoinRequestSpec{PublicKey: publicKey(t, 1)}})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "has no agent") {
		t.Errorf("join: %v, want a conflict that says so", err)
	}
	if err := c.SubResource("revoke").Create(t.Context(), newCluster("team", "edge-1"), &corev1alpha1.RevokeRequest{}); !apierrors.IsConflict(err) {
		t.Errorf("revoke: %v, want a conflict", err)
	}
}
