// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/pkg/tunnel"
)

// actors notes as whom an engine asks for what. Watches, discovery and what an engine
// keeps of its own are left out.
type actors struct {
	mu   sync.Mutex
	asks map[string][]string
}

func (a *actors) around(b *bench) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			path := req.URL.Path
			own := req.URL.Query().Get("watch") != "" || req.URL.Query().Has("labelSelector") || strings.Count(path, "/") < 5 ||
				strings.HasSuffix(path, "/namespaces/kube-system") || strings.Contains(path, "/selfsubjectaccessreviews") ||
				(b.room != nil && strings.HasPrefix(path, "/api/v1/namespaces/"+b.room.state))
			if !own {
				a.mu.Lock()
				user := req.Header.Get("Impersonate-User")
				a.asks[user] = append(a.asks[user], req.Method+" "+path)
				a.mu.Unlock()
			}
			return next.RoundTrip(req)
		})
	}
}

// others are the calls that were not made as an account.
func (a *actors) others(account string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for user, asks := range a.asks {
		if user != "system:serviceaccount:"+account {
			for _, ask := range asks {
				out = append(out, user+": "+ask)
			}
		}
	}
	return out
}

// accountBench is an engine, and a namespace with an account in it that has a role
// there: none if it is empty.
func accountBench(t *testing.T, name, role string) (*bench, string, *actors) {
	t.Helper()
	b := newIdleBench(t)
	a := &actors{asks: map[string][]string{}}
	b.config.Wrap(a.around(b))
	ns := b.namespace(name)
	b.serviceAccount(ns, "deployer", role)
	b.start()
	return b, ns, a
}

// serviceAccount makes an account with a role in its namespace.
func (b *bench) serviceAccount(ns, name, role string) {
	b.t.Helper()
	account := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name},
	}}
	accounts := configmaps
	accounts.Resource = "serviceaccounts"
	if _, err := b.plane.Dynamic().Resource(accounts).Namespace(ns).Create(b.ctx, account, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	if role == "" {
		return
	}
	_, err := b.plane.Client().RbacV1().RoleBindings(ns).Create(b.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
}

func as(account string) option {
	return func(o *tunnel.Order) {
		o.ServiceAccount = account
		o.Requires = append(o.Requires, tunnel.FeatureImpersonate)
	}
}

func TestEveryCallForAReleaseIsMadeAsItsAccount(t *testing.T) {
	inModes(t, testEveryCallForAReleaseIsMadeAsItsAccount)
}

func testEveryCallForAReleaseIsMadeAsItsAccount(t *testing.T) {
	t.Parallel()
	b, ns, asked := accountBench(t, "account-works", "admin")
	account := ns + ":deployer"
	b.apply("account", ns, configMap(ns, "one", "k", "v")+configMap(ns, "two", "k", "v"), as(account))
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "one", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
	b.apply("account", ns, configMap(ns, "one", "k", "v2"), as(account))
	b.gone(configmaps, ns, "two")
	b.restartInMode()
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "one", "healed after a restart", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v2" })
	b.accept(b.bare("account", tunnel.VerbRemove, as(account)))
	b.report("uid-account", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, ns, "one")
	if others := asked.others(account); len(others) > 0 {
		t.Errorf("calls as somebody else: %s", strings.Join(others, "\n"))
	}
}

func TestAnAccountWithoutRightsOrThatDoesNotExistIsNamedAndNothingIsApplied(t *testing.T) {
	inModes(t, testAnAccountWithoutRightsOrThatDoesNotExistIsNamedAndNothingIsApplied)
}

func testAnAccountWithoutRightsOrThatDoesNotExistIsNamedAndNothingIsApplied(t *testing.T) {
	t.Parallel()
	b, ns, _ := accountBench(t, "account-lacks", "")
	r := b.settled(b.accept(b.order("lacks", ns, configMap(ns, "one", "k", "v"), as(ns+":deployer"))))
	for _, words := range []string{"nothing applied", "ConfigMap " + ns + "/one", "system:serviceaccount:" + ns + ":deployer", "cannot patch"} {
		if !strings.Contains(r.Applied.Message, words) {
			t.Errorf("the message does not say %q: %s", words, r.Applied.Message)
		}
	}
	if r.Applied.Status != tunnel.False || len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Rejected" || strings.Contains(r.Applied.Message, "does not exist") {
		t.Errorf("applied %+v, exceptions %+v", r.Applied, r.Exceptions)
	}
	r = b.settled(b.accept(b.order("absent", ns, configMap(ns, "two", "k", "v"), as(ns+":nobody"))))
	if !strings.Contains(r.Applied.Message, "service account "+ns+":nobody does not exist") {
		t.Errorf("applied is %+v", r.Applied)
	}
	for _, name := range []string{"one", "two"} {
		if _, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Get(b.ctx, name, metav1.GetOptions{}); err == nil {
			t.Errorf("ConfigMap %s was applied", name)
		}
	}
}

func TestARemovalWhoseAccountIsGoneSaysSoAndLettingGoIsNotHeldUpByIt(t *testing.T) {
	inModes(t, testARemovalWhoseAccountIsGoneSaysSoAndLettingGoIsNotHeldUpByIt)
}

func testARemovalWhoseAccountIsGoneSaysSoAndLettingGoIsNotHeldUpByIt(t *testing.T) {
	t.Parallel()
	b, ns, _ := accountBench(t, "account-gone", "admin")
	account := as(ns + ":deployer")
	b.apply("orphan", ns, configMap(ns, "one", "k", "v"), account)
	if err := b.plane.Client().RbacV1().RoleBindings(ns).Delete(b.ctx, "deployer", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.plane.Client().CoreV1().ServiceAccounts(ns).Delete(b.ctx, "deployer", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	remove := b.accept(b.bare("orphan", tunnel.VerbRemove, account))
	r := b.report("uid-orphan", "the removal failed", func(r tunnel.Report) bool {
		return r.Sequence == remove.Sequence && r.Applied.Status == tunnel.False
	})
	if r.Applied.Reason != "PruneFailed" || !strings.Contains(r.Applied.Message, "service account "+ns+":deployer does not exist") || r.Done {
		t.Errorf("applied is %+v", r.Applied)
	}
	b.get(configmaps, ns, "one")
	b.accept(b.bare("orphan", tunnel.VerbRelease, account))
	r = b.report("uid-orphan", "let go", func(r tunnel.Report) bool { return r.Done })
	if !strings.Contains(r.Applied.Message, "ConfigMap "+ns+"/one") {
		t.Errorf("what was left marked is not named: %+v", r.Applied)
	}
	b.get(configmaps, ns, "one")
}

func TestWhatTheClusterDoesNotPermitIsNamedWithItsRuleAndNothingIsApplied(t *testing.T) {
	inModes(t, testWhatTheClusterDoesNotPermitIsNamedWithItsRuleAndNothingIsApplied)
}

func testWhatTheClusterDoesNotPermitIsNamedWithItsRuleAndNothingIsApplied(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("permit")
	permitted := func(o *tunnel.Order) {
		o.Permitted = &tunnel.Allowed{Namespaces: []string{ns}, ClusterKinds: []string{}}
	}
	b.apply("permit", ns, configMap(ns, "one", "k", "v"), permitted)
	r := b.settled(b.accept(b.order("permit", ns, configMap(ns, "one", "k", "v2")+configMap("default", "elsewhere", "k", "v")+`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: permit-all}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
`, permitted)))
	if r.Applied.Status != tunnel.False || r.Applied.Reason != "Forbidden" || !strings.Contains(r.Applied.Message, "nothing applied") {
		t.Errorf("applied is %+v", r.Applied)
	}
	rules := map[string]string{"ConfigMap": "spec.allowed.targetNamespaces", "ClusterRole": "spec.allowed.clusterScopedKinds"}
	for _, e := range r.Exceptions {
		if e.Reason != "Rejected" || rules[e.Kind] == "" || !strings.Contains(e.Message, rules[e.Kind]) {
			t.Errorf("exception %+v", e)
		}
		delete(rules, e.Kind)
	}
	if len(rules) > 0 {
		t.Errorf("not named: %v of %+v", rules, r.Exceptions)
	}
	if data(b.get(configmaps, ns, "one"), "k") != "v" {
		t.Error("an object of a forbidden render was applied")
	}
	named := b.settled(b.accept(b.order("permit", ns, configMap(ns, "one", "k", "v"), func(o *tunnel.Order) {
		o.Permitted = &tunnel.Allowed{ServiceAccounts: []string{ns + ":*"}}
	})))
	if named.Applied.Reason != "Forbidden" || !strings.Contains(named.Applied.Message, "spec.allowed.serviceAccounts") {
		t.Errorf("applied is %+v", named.Applied)
	}
}
