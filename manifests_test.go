// SPDX-License-Identifier: Apache-2.0

package convoy_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// manifests decodes all objects of a file or of the files of a folder, strictly: a
// misspelt field is an error.
func manifests(t *testing.T, from string) []runtime.Object {
	t.Helper()
	known := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(known))
	utilruntime.Must(apiregistrationv1.AddToScheme(known))
	strict := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for _, file := range files(t, func(file string) bool {
		return (file == from || path.Dir(file) == from) && strings.HasSuffix(file, ".yaml")
	}) {
		for part := range strings.SplitSeq(read(t, file), "\n---\n") {
			object, _, err := strict.Decode([]byte(part), nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		t.Fatalf("no manifests in %s", from)
	}
	return objects
}

// every returns the objects of one type.
func every[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, object := range objects {
		if one, ok := object.(T); ok {
			found = append(found, one)
		}
	}
	return found
}

// served returns the groups and versions whose types are in api/: all of them are
// installed by hub/apiserver, which has a test of its own for that.
func served(t *testing.T) []string {
	t.Helper()
	group := regexp.MustCompile(`\bGroupName = "([a-z.]+)"`)
	var names []string
	for _, file := range files(t, func(file string) bool {
		matched, err := path.Match("api/*/*/register.go", file)
		return err == nil && matched
	}) {
		found := group.FindStringSubmatch(read(t, file))
		if found == nil {
			t.Fatalf("%s names no group", file)
		}
		names = append(names, path.Base(path.Dir(file))+"."+found[1])
	}
	slices.Sort(names)
	return names
}

func TestAPIServicesAreThoseOfTheGroupsServed(t *testing.T) {
	t.Parallel()
	objects := manifests(t, "manifests/hub")
	var registered []string
	for _, one := range every[*apiregistrationv1.APIService](objects) {
		registered = append(registered, one.Name)
		if one.Spec.InsecureSkipTLSVerify || len(one.Spec.CABundle) > 0 {
			t.Errorf("%s: the hub fills in its CA, nothing else is accepted", one.Name)
		}
		if service := one.Spec.Service; service == nil || service.Name != "convoy-apiserver" || service.Namespace != "convoy-system" {
			t.Errorf("%s: served by %v, want convoy-system/convoy-apiserver", one.Name, service)
		}
	}
	slices.Sort(registered)
	if diff := cmp.Diff(served(t), registered); diff != "" {
		t.Errorf("APIServices: an APIService without a server hangs every namespace deletion of the host (-served +registered):\n%s", diff)
	}
	for _, role := range every[*rbacv1.ClusterRole](objects) {
		for _, r := range role.Rules {
			if !slices.Contains(r.Resources, "apiservices") {
				continue
			}
			names := slices.Sorted(slices.Values(r.ResourceNames))
			if diff := cmp.Diff(registered, names); diff != "" {
				t.Errorf("%s may update other APIServices than ours (-ours +may):\n%s", role.Name, diff)
			}
		}
	}
}

func TestTheHubMayDoNoMoreThanItSays(t *testing.T) {
	t.Parallel()
	for _, role := range every[*rbacv1.ClusterRole](manifests(t, "manifests/hub")) {
		for _, r := range role.Rules {
			for what, list := range map[string][]string{"groups": r.APIGroups, "resources": r.Resources, "verbs": r.Verbs} {
				if slices.Contains(list, "*") {
					t.Errorf("%s: all %s", role.Name, what)
				}
			}
			if slices.Contains(r.Resources, "secrets") && !cmp.Equal(r.Verbs, []string{"get"}) {
				t.Errorf("%s: Secrets of all namespaces may only be read by name, not %v", role.Name, r.Verbs)
			}
		}
	}
}

func TestKeySecretsAreShippedEmptyAndNamedInTheRole(t *testing.T) {
	t.Parallel()
	objects := manifests(t, "manifests/hub")
	var shipped []string
	for _, secret := range every[*corev1.Secret](objects) {
		shipped = append(shipped, secret.Name)
		if len(secret.Data)+len(secret.StringData) > 0 {
			t.Errorf("%s has data: applying it again would replace the key", secret.Name)
		}
	}
	var named []string
	for _, role := range every[*rbacv1.Role](objects) {
		for _, r := range role.Rules {
			named = append(named, r.ResourceNames...)
		}
	}
	slices.Sort(shipped)
	slices.Sort(named)
	if diff := cmp.Diff(shipped, named); diff != "" {
		t.Errorf("Secrets (-shipped +named in the Role):\n%s", diff)
	}
}

// viewable are subresources that can be looked at without asking a source, and that show
// no more of an object than the Release does.
var viewable = []string{"status", "lifecycle", "health", "history"}

func TestUserRolesGiveViewersNothingToDoAndEditorsNoClusters(t *testing.T) {
	t.Parallel()
	for _, role := range every[*rbacv1.ClusterRole](manifests(t, "manifests/hub")) {
		_, view := role.Labels["rbac.authorization.k8s.io/aggregate-to-view"]
		_, edit := role.Labels["rbac.authorization.k8s.io/aggregate-to-edit"]
		for _, r := range role.Rules {
			for _, resource := range r.Resources {
				name, sub, _ := strings.Cut(resource, "/")
				if view && sub != "" && !slices.Contains(viewable, sub) {
					t.Errorf("%s: view must not include %s", role.Name, resource)
				}
				if edit && name == "clusters" {
					t.Errorf("%s: Clusters and join tokens are for admins of a namespace, not %s", role.Name, resource)
				}
			}
			if view && slices.ContainsFunc(r.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) }) {
				t.Errorf("%s: view must not include %v", role.Name, r.Verbs)
			}
		}
	}
}

func TestPodsRunRestrictedOneAtATimeAndAreProbed(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"manifests/hub", "manifests/agent/platform.yaml", "manifests/agent/shared.yaml"} {
		deployments := every[*appsv1.Deployment](manifests(t, from))
		if len(deployments) != 1 {
			t.Errorf("%s has %d Deployments, want 1", from, len(deployments))
		}
		for _, deployment := range deployments {
			if deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || *deployment.Spec.Replicas != 1 {
				t.Errorf("%s: want one replica and Recreate: two must not write the same state", deployment.Name)
			}
			pod := deployment.Spec.Template.Spec
			if security := pod.SecurityContext; security == nil || !*security.RunAsNonRoot || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: the pod is not restricted", deployment.Name)
			}
			for _, container := range pod.Containers {
				security := container.SecurityContext
				if security == nil || *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem ||
					!slices.Contains(security.Capabilities.Drop, "ALL") {
					t.Errorf("%s/%s: the container is not restricted", deployment.Name, container.Name)
				}
				requests, limits := container.Resources.Requests, container.Resources.Limits
				if requests.Cpu().IsZero() || requests.Memory().IsZero() || limits.Memory().IsZero() || !limits.Cpu().IsZero() {
					t.Errorf("%s/%s: want requests, a limit of memory and none of CPU, got %v and %v", deployment.Name, container.Name, requests, limits)
				}
				soft := slices.IndexFunc(container.Env, func(one corev1.EnvVar) bool { return one.Name == "GOMEMLIMIT" })
				if soft < 0 {
					t.Errorf("%s/%s: no GOMEMLIMIT", deployment.Name, container.Name)
				} else if heap := resource.MustParse(strings.TrimSuffix(container.Env[soft].Value, "B")); heap.Cmp(*limits.Memory()) >= 0 {
					t.Errorf("%s/%s: GOMEMLIMIT %s is not below the limit %s", deployment.Name, container.Name, heap.String(), limits.Memory())
				}
				for path, probe := range map[string]*corev1.Probe{
					"/healthz": container.StartupProbe, "/readyz": container.ReadinessProbe, "/livez": container.LivenessProbe,
				} {
					if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "metrics" {
						t.Errorf("%s/%s: no probe of %s on the metrics port", deployment.Name, container.Name, path)
					}
				}
			}
		}
	}
}

func TestNamespacesEnforceRestrictedPods(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"manifests/hub", "manifests/agent/platform.yaml", "manifests/agent/shared.yaml"} {
		for _, namespace := range every[*corev1.Namespace](manifests(t, from)) {
			if got := namespace.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
				t.Errorf("%s: Pod Security of %s is %q, want restricted", from, namespace.Name, got)
			}
		}
	}
}

func TestNothingGetsInOrOutThatIsNotNamed(t *testing.T) {
	t.Parallel()
	policies := every[*networkingv1.NetworkPolicy](manifests(t, "manifests/hub"))
	var denies bool
	var open []string
	for _, policy := range policies {
		if len(policy.Spec.PolicyTypes) != 2 {
			t.Errorf("%s is not about both directions", policy.Name)
		}
		if len(policy.Spec.PodSelector.MatchLabels) == 0 {
			denies = len(policy.Spec.Ingress)+len(policy.Spec.Egress) == 0
			continue
		}
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				open = append(open, port.Port.String())
			}
		}
	}
	slices.Sort(open)
	if diff := cmp.Diff([]string{"gateway", "https", "metrics", "observer"}, open); diff != "" || !denies {
		t.Errorf("all else is denied: %v; open ports of the hub (-want +got):\n%s", denies, diff)
	}
}

func TestServicesAreThoseThatSomethingServes(t *testing.T) {
	t.Parallel()
	var names []string
	for _, service := range every[*corev1.Service](manifests(t, "manifests/hub")) {
		names = append(names, service.Name)
	}
	if diff := cmp.Diff([]string{"convoy-apiserver", "convoy-gateway", "convoy-observer"}, names); diff != "" {
		t.Errorf("Services (-want +got):\n%s", diff)
	}
}

func TestOnlyAdminsOfANamespaceJoinRevokeAndConfirm(t *testing.T) {
	t.Parallel()
	var may []string
	for _, role := range every[*rbacv1.ClusterRole](manifests(t, "manifests/hub")) {
		for _, r := range role.Rules {
			for _, resource := range r.Resources {
				_, sub, _ := strings.Cut(resource, "/")
				for _, verb := range r.Verbs {
					if verb == "confirm" || sub == "join" || sub == "revoke" || sub == "confirm" {
						may = append(may, role.Name+": "+verb+" "+resource)
					}
				}
			}
		}
	}
	want := []string{
		"convoy-admin: confirm clusters", "convoy-admin: confirm releases",
		"convoy-admin: create clusters/confirm", "convoy-admin: create clusters/join",
		"convoy-admin: create clusters/revoke", "convoy-admin: create releases/confirm",
	}
	slices.Sort(may)
	if diff := cmp.Diff(want, may); diff != "" {
		t.Errorf("who may (-want +got):\n%s", diff)
	}
}
