// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/charts"
	"kumodo.io/convoy/kubectl-convoy/install"
)

var update = flag.Bool("update", false, "write manifests/agent")

// copies are what is printed for each profile, for people to read.
const copies = "../../manifests/agent/"

func example() install.Agent {
	return install.Agent{
		ClusterNamespace: "team-a",
		ClusterName:      "edge-1",
		HubID:            "0123456789abcdef",
		Image:            "convoy-agent:dev",
		Token:            "convoy-join.printed-by-kubectl-convoy-join",
		ExpiresAt:        "2026-01-01T13:00:00Z",
	}
}

func shared() install.Agent {
	agent := example()
	agent.Profile, agent.Namespaces = install.ProfileShared, []string{"shop", "shop-jobs"}
	return agent
}

func render(t *testing.T, agent install.Agent) []byte {
	t.Helper()
	text, err := agent.YAML()
	if err != nil {
		t.Fatalf("rendering: %v", err)
	}
	return text
}

func decode(t *testing.T, text []byte) []runtime.Object {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		object, _, err := strict.Decode([]byte(part), nil, nil)
		if err != nil {
			t.Fatalf("decoding: %v\n%s", err, part)
		}
		objects = append(objects, object)
	}
	return objects
}

func find[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	for _, object := range objects {
		if found, ok := object.(T); ok {
			return found
		}
	}
	var none T
	t.Fatalf("no %T in the output", none)
	return none
}

func TestManifestsOfTheAgentAreWhatThePluginPrints(t *testing.T) {
	for name, agent := range map[string]install.Agent{"platform.yaml": example(), "shared.yaml": shared()} {
		text := render(t, agent)
		if *update {
			if err := os.WriteFile(copies+name, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		committed, err := os.ReadFile(copies + name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(committed)); diff != "" {
			t.Errorf("manifests/agent/%s is not current; run make generate (-printed +committed):\n%s", name, diff)
		}
	}
}

func TestASharedAgentHasRightsInItsNamespacesAndKnowsThem(t *testing.T) {
	agent := shared()
	agent.Namespaces = []string{"shop-jobs", "shop", "shop"}
	objects := decode(t, render(t, agent))
	var bound []string
	for _, object := range objects {
		switch binding := object.(type) {
		case *rbacv1.RoleBinding:
			if binding.RoleRef.Kind == "ClusterRole" {
				bound = append(bound, binding.Namespace+" "+binding.RoleRef.Name)
			}
		case *rbacv1.ClusterRoleBinding:
			if binding.RoleRef.Name != "convoy-agent-identity" {
				t.Errorf("bound to %s in the whole cluster", binding.RoleRef.Name)
			}
		case *rbacv1.ClusterRole:
			want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}}}
			if diff := cmp.Diff(want, binding.Rules); diff != "" {
				t.Errorf("rights in the whole cluster (-want +got):\n%s", diff)
			}
		}
	}
	if diff := cmp.Diff([]string{"shop admin", "shop-jobs admin"}, bound); diff != "" {
		t.Errorf("bound in (-want +got):\n%s", diff)
	}
	args := find[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--target-namespaces=shop,shop-jobs") {
		t.Errorf("the agent is not told its namespaces: %v", args)
	}
}

func TestProfileAndNamespacesHaveToGoTogether(t *testing.T) {
	many := make([]string, 51)
	for i := range many {
		many[i] = "n" + strconv.Itoa(i)
	}
	for name, test := range map[string]struct {
		profile    string
		namespaces []string
	}{
		"platform with namespaces": {install.ProfilePlatform, []string{"shop"}},
		"shared without any":       {install.ProfileShared, nil},
		"no namespace's name":      {install.ProfileShared, []string{"Shop"}},
		"a flag for a name":        {install.ProfileShared, []string{"a --verbosity=9"}},
		"too many":                 {install.ProfileShared, many},
		"another profile":          {"tenant", []string{"shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			agent := example()
			agent.Profile, agent.Namespaces = test.profile, test.namespaces
			if _, err := agent.YAML(); !errors.Is(err, install.ErrProfile) {
				t.Errorf("got %v, want ErrProfile", err)
			}
		})
	}
}

func TestValuesAndYAMLComeFromTheSameAnswer(t *testing.T) {
	raw, err := shared().Values()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	files, err := charts.Render(charts.Agent, values)
	if err != nil {
		t.Fatal(err)
	}
	// Helm makes the namespace itself.
	want := decode(t, render(t, shared()))[1:]
	if diff := cmp.Diff(want, decode(t, charts.Join(files))); diff != "" {
		t.Errorf("objects (-yaml +values):\n%s", diff)
	}
}

func TestEveryObjectDecodesStrictlyAndTheNamespaceComesFirst(t *testing.T) {
	objects := decode(t, render(t, example()))
	if _, ok := objects[0].(*corev1.Namespace); !ok {
		t.Errorf("the first object is a %T: the others need the Namespace", objects[0])
	}
	if got, want := len(objects), 7; got != want {
		t.Errorf("%d objects, want %d", got, want)
	}
}

func TestTokenAndImageArriveAsTheyAre(t *testing.T) {
	agent := example()
	agent.Token = `convoy-join.a"b\c: #'&<>{{ }}`
	agent.Image = "registry.example:5000/convoy-agent@sha256:abc"
	objects := decode(t, render(t, agent))
	if diff := cmp.Diff(agent.Token, find[*corev1.Secret](t, objects).StringData["token"]); diff != "" {
		t.Errorf("token (-want +got):\n%s", diff)
	}
	got := find[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Image
	if diff := cmp.Diff(agent.Image, got); diff != "" {
		t.Errorf("image (-want +got):\n%s", diff)
	}
}

func TestOldPodEndsBeforeTheNewOneStarts(t *testing.T) {
	deployment := find[*appsv1.Deployment](t, decode(t, render(t, example())))
	if got := deployment.Spec.Strategy.Type; got != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("strategy %s, want Recreate", got)
	}
	if got := *deployment.Spec.Replicas; got != 1 {
		t.Errorf("%d replicas, want 1", got)
	}
}

func TestTokenStandsNowhereButInItsSecret(t *testing.T) {
	if got := strings.Count(string(render(t, example())), example().Token); got != 1 {
		t.Errorf("the token stands %d times in the output, want once", got)
	}
}

func TestAnAnswerCannotSmuggleLinesIntoTheYAML(t *testing.T) {
	agent := example()
	agent.HubID = "0123\n---\napiVersion: v1"
	if _, err := agent.YAML(); !errors.Is(err, install.ErrNotPrintable) {
		t.Errorf("got %v, want ErrNotPrintable", err)
	}
}
