// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ed25519"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/tunnel"
)

// printedToken finds the token in the printed YAML.
func printedToken(t *testing.T, yaml string) tunnel.Token {
	t.Helper()
	_, rest, found := strings.Cut(yaml, `token: "`)
	if !found {
		t.Fatalf("no token in the output:\n%s", yaml)
	}
	text, _, _ := strings.Cut(rest, `"`)
	token, err := tunnel.ParseToken(text)
	if err != nil {
		t.Fatalf("the printed token does not parse: %v", err)
	}
	return token
}

func TestJoinPrintsATokenOfWhichTheHubKnowsOnlyThePublicHalf(t *testing.T) {
	hub := newFakeHub(t)
	out, note, err := hub.run(t, "join", "edge-1")
	if err != nil {
		t.Fatal(err)
	}
	token := printedToken(t, out)
	want := tunnel.Token{
		Gateway: hub.answer.GatewayURL, Hub: hub.answer.HubID,
		ClusterUID: hub.answer.ClusterUID, CAPin: hub.answer.CAPin, Seed: token.Seed,
	}
	if diff := cmp.Diff(want, token); diff != "" {
		t.Errorf("token (-want +got):\n%s", diff)
	}
	if !ed25519.PublicKey.Equal(publicKey(t, hub.joined[0]), token.PublicKey()) {
		t.Error("the hub was told another key than the printed token's")
	}
	if !strings.Contains(out, "image: \"convoy-agent:from-the-hub\"") {
		t.Error("the agent's image is not the hub's")
	}
	if !strings.Contains(note, "2026-01-01T13:00:00Z") || !strings.Contains(note, "team-a/edge-1") {
		t.Errorf("the note says neither until when nor as whom: %q", note)
	}
}

func TestEachJoinMakesATokenOfItsOwn(t *testing.T) {
	hub := newFakeHub(t)
	first, _, err := hub.run(t, "join", "edge-1")
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := hub.run(t, "join", "edge-1")
	if err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(printedToken(t, first).Seed, printedToken(t, second).Seed) {
		t.Error("two joins printed the same token")
	}
}

func TestJoinWithImageTakesThatImage(t *testing.T) {
	out, _, err := newFakeHub(t).run(t, "join", "edge-1", "--image", "mirror.example/convoy-agent:v1")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, `image: "mirror.example/convoy-agent:v1"`) {
		t.Errorf("--image is not in the output:\n%s", out)
	}
}

func TestJoinForSomeNamespacesPrintsASharedAgent(t *testing.T) {
	out, _, err := newFakeHub(t).run(t, "join", "edge-1", "--profile", "shared", "--namespaces", "shop,shop-jobs")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, "cluster-admin") || !strings.Contains(out, "--target-namespaces=shop,shop-jobs") {
		t.Errorf("this is not an agent for two namespaces:\n%s", out)
	}
}

func TestJoinPrintsValuesForTheChart(t *testing.T) {
	out, _, err := newFakeHub(t).run(t, "join", "edge-1", "-o", "values")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Image, Profile string
		Join           struct{ Token string }
	}
	if err := yaml.Unmarshal([]byte(out), &values); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if _, err := tunnel.ParseToken(values.Join.Token); err != nil || values.Image != "convoy-agent:from-the-hub" || values.Profile != "platform" {
		t.Errorf("values are %+v (%v)", values, err)
	}
}

func TestJoinMakesNoTokenForAnInstallationThatCannotBe(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"namespaces of a platform agent": {[]string{"--namespaces", "shop"}, "add --profile shared"},
		"a shared agent without any":     {[]string{"--profile", "shared"}, "profile shared needs the namespaces of its cluster that the agent may apply to, as in --namespaces shop,shop-jobs"},
		"an unknown profile":             {[]string{"--profile", "tenant"}, `not "tenant"`},
		"an unknown output":              {[]string{"-o", "json"}, "--output is yaml or values"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := newFakeHub(t)
			out, _, err := hub.run(t, append([]string{"join", "edge-2", "--create"}, test.args...)...)
			if err == nil || !strings.Contains(err.Error(), test.says) || out != "" || len(hub.joined) > 0 || hub.clusters["edge-2"] {
				t.Errorf("error %v, printed %q, %d tokens, Cluster made: %v", err, out, len(hub.joined), hub.clusters["edge-2"])
			}
		})
	}
}

func TestJoinWithCreateMakesTheClusterOnceAndJoinsItEachTime(t *testing.T) {
	hub := newFakeHub(t)
	for range 2 {
		if _, _, err := hub.run(t, "join", "edge-2", "--create"); err != nil {
			t.Fatal(err)
		}
	}
	if !hub.clusters["edge-2"] || len(hub.joined) != 2 {
		t.Errorf("Cluster made: %v, joins: %d; want true and 2", hub.clusters["edge-2"], len(hub.joined))
	}
}

func TestJoinSaysWhatToDoNext(t *testing.T) {
	tests := map[string]struct {
		args    []string
		prepare func(*fakeHub)
		want    []string
	}{
		"no such Cluster": {
			args: []string{"join", "edge-9"},
			want: []string{`no Cluster "edge-9" in namespace "team-a"`, "--create", "-n"},
		},
		"the hub is not installed": {
			args:    []string{"join", "edge-1"},
			prepare: func(h *fakeHub) { h.answerAll(http.NotFound) },
			want:    []string{"does not serve core.convoy.kumodo.io", "kubectl get apiservices"},
		},
		"the hub does not answer": {
			args: []string{"join", "edge-1"},
			prepare: func(h *fakeHub) {
				h.answerAll(func(w http.ResponseWriter, _ *http.Request) {
					http.Error(w, "service unavailable", http.StatusServiceUnavailable)
				})
			},
			want: []string{"does not answer", "kubectl -n convoy-system get pods"},
		},
		"not allowed": {
			args:    []string{"join", "edge-1"},
			prepare: func(h *fakeHub) { h.answerAll(forbidden) },
			want:    []string{"team-a/edge-1", "not for you"},
		},
		"the namespace does not exist": {
			args: []string{"join", "edge-1", "--create"},
			prepare: func(h *fakeHub) {
				h.answerAll(func(w http.ResponseWriter, _ *http.Request) {
					fail(w, apierrors.NewNotFound(namespaces, "team-a"))
				})
			},
			want: []string{"kubectl create namespace team-a"},
		},
		"nobody named an image": {
			args:    []string{"join", "edge-1"},
			prepare: func(h *fakeHub) { h.answer.AgentImage = "" },
			want:    []string{"--image", "--agent-image"},
		},
		"the hub does not know its address": {
			args:    []string{"join", "edge-1"},
			prepare: func(h *fakeHub) { h.answer.GatewayURL = "" },
			want:    []string{"--gateway-url"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hub := newFakeHub(t)
			if test.prepare != nil {
				test.prepare(hub)
			}
			out, _, err := hub.run(t, test.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error %q does not say %q", err, want)
				}
			}
			if out != "" {
				t.Errorf("something was printed that kubectl apply would have taken:\n%s", out)
			}
		})
	}
}
