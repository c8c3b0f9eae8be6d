// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"kumodo.io/convoy/api/core/v1alpha1"
)

func TestAnAgentlessClusterIsServedAndWrittenOnce(t *testing.T) {
	t.Parallel()
	api, w := newTarget(t, "target-1", "t"), newWorld(t)
	w.secret("kc", api.kubeconfig("t"))
	w.put(agentless("edge", "kc"))
	c := w.reachable("edge")
	if diff := cmp.Diff(v1alpha1.ClusterStatus{
		ObservedGeneration: 1, Reachable: true, KubernetesVersion: "v1.37.2", APIVersions: []string{"apps/v1", "v1"},
		ClusterUID: "target-1", CheckedSecrets: []string{"kc"}, Conditions: c.Status.Conditions,
	}, c.Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.eventually("an engine that can be asked", func() bool {
		_, connected := w.counted()
		return connected == 1 && w.manager.Served("uid-edge")
	})
	api.mu.Lock()
	labels := api.namespaces[DefaultAgentlessNamespace]
	api.mu.Unlock()
	if labels[labelHub] != hubID {
		t.Errorf("labels of the namespace of the state: %v", labels)
	}
	w.undisturbed(api, "ten further probes", 30)
}

// undisturbed waits for so many further calls of a target, and sees that none of them made
// a write of the status or a start of the engine beside the first.
func (w *world) undisturbed(api *target, what string, calls int) {
	w.t.Helper()
	before := api.used("t")
	w.eventually(what, func() bool { return api.used("t") >= before+calls })
	if writes, connected := w.counted(); writes != 1 || connected != 1 {
		w.t.Errorf("%d writes of the status, %d starts of the engine; want one of each", writes, connected)
	}
}

func TestTheEngineEndsWithItsCluster(t *testing.T) {
	t.Parallel()
	api, w := newTarget(t, "target-1", "t"), newWorld(t)
	w.secret("kc", api.kubeconfig("t"))
	w.put(agentless("edge", "kc"))
	w.reachable("edge")
	w.remove("edge")
	w.eventually("no engine", func() bool { return !w.manager.Served("uid-edge") })
	again := agentless("edge", "kc")
	again.UID = "uid-anew"
	w.put(again)
	w.reachable("edge")
	w.eventually("an engine for the new one", func() bool { return w.manager.Served("uid-anew") && !w.manager.Served("uid-edge") })
}

func TestWhatAClusterCannotBeServedForIsSaid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mod          func(*v1alpha1.Cluster)
		reason, says string
	}{
		"an auth type that is not built": {
			func(c *v1alpha1.Cluster) { c.Spec.Agentless.Auth = v1alpha1.ClusterAuth{Type: "oidc"} }, v1alpha1.ReasonUnsupported, `"oidc" is not built`,
		},
		"a Secret whose use was not checked": {
			func(c *v1alpha1.Cluster) { c.Status.CheckedSecrets = nil }, v1alpha1.ReasonProbeFailed, "never checked",
		},
		"a Secret that is not there": {
			func(c *v1alpha1.Cluster) {
				c.Spec.Agentless.Auth.Kubeconfig.SecretRef.Name, c.Status.CheckedSecrets = "gone", []string{"gone"}
			}, v1alpha1.ReasonProbeFailed, `Secret "gone" does not exist`,
		},
		"a key that is not there": {
			func(c *v1alpha1.Cluster) { c.Spec.Agentless.Auth.Kubeconfig.SecretRef.Key = "other" }, v1alpha1.ReasonProbeFailed, `has no key "other"`,
		},
		"no host to be in": {
			func(c *v1alpha1.Cluster) {
				c.Spec = v1alpha1.ClusterSpec{ConnectionMode: v1alpha1.ConnectionModeInCluster}
			}, v1alpha1.ReasonUnsupported, "the hub runs in no cluster",
		},
	}
	api := newTarget(t, "target-1", "t")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.secret("kc", api.kubeconfig("t"))
			c := agentless("edge", "kc")
			test.mod(c)
			w.put(c)
			w.fails("edge", test.reason, test.says)
			if w.manager.Served("uid-edge") {
				t.Error("an engine runs")
			}
		})
	}
}

func TestAClusterThatDoesNotAnswerIsNotReachableAndComesBack(t *testing.T) {
	t.Parallel()
	api, w := newTarget(t, "target-1", "t"), newWorld(t)
	w.secret("kc", api.kubeconfig("t"))
	w.put(agentless("edge", "kc"))
	w.begun("edge")
	api.accept() // no token at all
	w.fails("edge", v1alpha1.ReasonProbeFailed, "does not accept the credentials")
	if !w.manager.Served("uid-edge") {
		t.Error("the engine has ended; it would have to read all its state again")
	}
	api.accept("t")
	w.reachable("edge")
	w.eventually("it is asked what it knows", func() bool { _, connected := w.counted(); return connected == 2 })
	if starts := testutil.ToFloat64(w.manager.metrics.started); starts != 1 {
		t.Errorf("the engine was started %v times", starts)
	}
}

func TestCredentialsThatAreRotatedAreUsedAtTheNextProbe(t *testing.T) {
	t.Parallel()
	api, w := newTarget(t, "target-1", "old", "new"), newWorld(t)
	w.secret("kc", api.kubeconfig("old"))
	w.put(agentless("edge", "kc"))
	w.begun("edge")
	w.secret("kc", api.kubeconfig("new"))
	w.eventually("the new token is used", func() bool { return api.used("new") > 0 })
	w.eventually("the engine was started with it", func() bool { _, n := w.counted(); return n == 2 })
	before := api.used("old")
	now := api.used("new")
	w.eventually("three more probes", func() bool { return api.used("new") >= now+9 })
	if after := api.used("old"); after != before {
		t.Errorf("the old token was used %d times more", after-before)
	}
	if c := w.reachable("edge"); len(c.Status.FormerClusterUIDs) > 0 {
		t.Errorf("former targets %v", c.Status.FormerClusterUIDs)
	}
}

func TestCredentialsThatAreTakenAwayAreNotUsedAnyMore(t *testing.T) {
	t.Parallel()
	api, w := newTarget(t, "target-1", "t"), newWorld(t)
	w.secret("kc", api.kubeconfig("t"))
	w.put(agentless("edge", "kc"))
	w.reachable("edge")
	w.secret("kc", nil)
	w.fails("edge", v1alpha1.ReasonProbeFailed, "does not exist")
	if w.manager.Served("uid-edge") {
		t.Error("the engine runs on with what it has in memory")
	}
}

func TestAHostThatIsAwaySaysNothingAboutItsClusters(t *testing.T) {
	t.Parallel()
	api, w := newTarget(t, "target-1", "t"), newWorld(t)
	w.secret("kc", api.kubeconfig("t"))
	w.put(agentless("edge", "kc"))
	w.begun("edge")
	w.mu.Lock()
	w.hostAway = true
	w.mu.Unlock()
	w.undisturbed(api, "five further probes", 15)
}

func TestOneTargetHasOneCluster(t *testing.T) {
	t.Parallel()
	api, w := newTarget(t, "target-1", "t"), newWorld(t)
	w.secret("kc", api.kubeconfig("t"))
	w.put(agentless("first", "kc"))
	w.reachable("first")
	w.put(agentless("second", "kc"))
	w.fails("second", v1alpha1.ReasonClusterConflict, "Cluster first stands for that cluster already")
	other := agentless("third", "kc")
	other.Namespace = "others"
	w.mu.Lock()
	w.clusters[keyOf(other)] = other
	w.mu.Unlock()
	w.manager.Changed(nil, other)
	w.eventually("the third says so without a name", func() bool {
		c, ok := w.Cluster(keyOf(other))
		return ok && len(c.Status.Conditions) > 0 && c.Status.Conditions[0].Reason == v1alpha1.ReasonClusterConflict &&
			c.Status.ClusterUID == "" && len(c.Status.Conditions[0].Message) > 0 && c.Status.Conditions[0].Message[:30] == "a Cluster of another namespace"
	})
	if !w.manager.Served("uid-first") || w.manager.Served("uid-second") || !w.manager.Occupies("target-1") {
		t.Error("the wrong one is served")
	}
	// The first goes, and another takes its place.
	w.remove("first")
	w.eventually("another is served", func() bool { return w.manager.Served("uid-second") || w.manager.Served("uid-third") })
}

func TestAnAgentKeepsItsCluster(t *testing.T) {
	t.Parallel()
	api, w := newTarget(t, "target-1", "t"), newWorld(t)
	agent := &v1alpha1.Cluster{Status: v1alpha1.ClusterStatus{ClusterUID: "target-1"}}
	agent.Namespace, agent.Name, agent.UID = "team", "with-agent", "uid-agent"
	agent.Spec.ConnectionMode = v1alpha1.ConnectionModeAgent
	w.put(agent)
	w.secret("kc", api.kubeconfig("t"))
	w.put(agentless("edge", "kc"))
	w.fails("edge", v1alpha1.ReasonClusterConflict, "Cluster with-agent stands for that cluster already")
}

func TestAnotherWhoWorksOnTheTargetIsNotDisturbed(t *testing.T) {
	t.Parallel()
	t.Run("an agent that is installed there", func(t *testing.T) {
		t.Parallel()
		api, w := newTarget(t, "target-1", "t"), newWorld(t)
		api.namespaces[DefaultAgentlessNamespace] = map[string]string{"a": "b"}
		api.secrets[DefaultAgentlessNamespace+"/convoy-agent-identity"] = true
		w.secret("kc", api.kubeconfig("t"))
		w.put(agentless("edge", "kc"))
		w.fails("edge", v1alpha1.ReasonClusterConflict, "an agent is installed")
	})
	t.Run("another hub", func(t *testing.T) {
		t.Parallel()
		api, w := newTarget(t, "target-1", "t"), newWorld(t)
		api.namespaces[DefaultAgentlessNamespace] = map[string]string{labelHub: "fedcba9876543210"}
		w.secret("kc", api.kubeconfig("t"))
		w.put(agentless("edge", "kc"))
		w.fails("edge", v1alpha1.ReasonClusterConflict, "another hub (fedcba9876543210)")
	})
	t.Run("nobody: the namespace alone is there", func(t *testing.T) {
		t.Parallel()
		api, w := newTarget(t, "target-1", "t"), newWorld(t)
		api.namespaces[DefaultAgentlessNamespace] = map[string]string{"a": "b"}
		w.secret("kc", api.kubeconfig("t"))
		w.put(agentless("edge", "kc"))
		w.reachable("edge")
		api.mu.Lock()
		defer api.mu.Unlock()
		if api.namespaces[DefaultAgentlessNamespace][labelHub] != hubID {
			t.Error("the namespace has no label of the hub")
		}
	})
}

func TestAKubeconfigThatLeadsElsewhereMakesWhatWasReportedVoid(t *testing.T) {
	t.Parallel()
	one, two, w := newTarget(t, "target-1", "t"), newTarget(t, "target-2", "t"), newWorld(t)
	w.secret("kc", one.kubeconfig("t"))
	w.put(agentless("edge", "kc"))
	w.reachable("edge")
	w.secret("kc", two.kubeconfig("t"))
	c := w.wait("edge", "on the second target", func(c *v1alpha1.Cluster) bool { return c.Status.ClusterUID == "target-2" })
	w.mu.Lock()
	resets := w.resets
	w.mu.Unlock()
	if diff := cmp.Diff([]string{"target-1"}, c.Status.FormerClusterUIDs); diff != "" || len(resets) != 1 {
		t.Errorf("%d resets; former targets (-want +got):\n%s", len(resets), diff)
	}
}

func TestThereIsAnEndToHowManyEnginesRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Limit = 1 })
	for _, name := range []string{"one", "two"} {
		api := newTarget(t, "target-"+name, "t")
		w.secret(name, api.kubeconfig("t"))
		w.put(agentless(name, name))
		if name == "one" {
			w.reachable(name)
		}
	}
	w.fails("two", v1alpha1.ReasonUnsupported, "engines for 1 clusters")
	w.remove("one")
	w.reachable("two")
}

func TestNoAddressIsDialledThatClustersMayNotHave(t *testing.T) {
	t.Parallel()
	api := newTarget(t, "target-1", "t")
	w := newWorld(t, func(o *Options) {
		o.Dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, fmt.Errorf("127.0.0.1: %w", ErrAddress)
		}
	})
	w.secret("kc", api.kubeconfig("t"))
	w.put(agentless("edge", "kc"))
	w.fails("edge", v1alpha1.ReasonProbeFailed, ErrAddress.Error())
	if api.used("t") > 0 {
		t.Error("it was dialled")
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	got := make(chan string, 100)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") }))
	defer elsewhere.Close()
	api, w := newTarget(t, "target-1", "t"), newWorld(t)
	api.redirect = elsewhere.URL
	w.secret("kc", api.kubeconfig("t"))
	w.put(agentless("edge", "kc"))
	w.fails("edge", v1alpha1.ReasonProbeFailed, errRedirected.Error())
	w.stop()
	select {
	case credentials := <-got:
		t.Errorf("it was, with %q", credentials)
	default:
	}
}

func TestInClusterActsAsTheDeployer(t *testing.T) {
	t.Parallel()
	got := make(chan string, 100)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			w.WriteHeader(http.StatusServiceUnavailable) // asked as the hub itself
			return
		}
		got <- r.Header.Get("Impersonate-User")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer host.Close()
	w := newWorld(t, func(o *Options) { o.Host = &rest.Config{Host: host.URL} })
	c := agentless("here", "")
	c.Spec = v1alpha1.ClusterSpec{ConnectionMode: v1alpha1.ConnectionModeInCluster}
	w.put(c)
	w.fails("here", v1alpha1.ReasonProbeFailed, "convoy-system/convoy-deployer lacks rights")
	w.stop()
	close(got)
	for as := range got {
		if as != "system:serviceaccount:convoy-system:convoy-deployer" {
			t.Errorf("a call was made as %q", as)
		}
	}
}

// TestAnIdleEngineIsSmall says what one costs; the limit is generous, since what it
// guards against is a cost of another order.
func TestAnIdleEngineIsSmall(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Resync = time.Hour })
	const count = 40
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	api := make([]*target, count)
	for i := range api {
		api[i] = newTarget(t, fmt.Sprintf("target-%d", i), "t")
	}
	before := heap()
	for i := range api {
		name := fmt.Sprintf("edge-%d", i)
		w.secret(name, api[i].kubeconfig("t"))
		w.put(agentless(name, name))
	}
	for i := range api {
		w.reachable(fmt.Sprintf("edge-%d", i))
	}
	w.eventually("all engines are there", func() bool { _, n := w.counted(); return n == count })
	each := (int64(heap()) - int64(before)) / count
	t.Logf("%d KiB for each engine, the API server's end of its connections included", each>>10)
	if each > 1<<20 {
		t.Errorf("%d bytes for each engine", each)
	}
}
