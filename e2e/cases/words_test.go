// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// doer is the name of the method that carries out an event or a clause.
func doer(do any) string {
	name := runtime.FuncForPC(reflect.ValueOf(do).Pointer()).Name()
	return name[strings.LastIndex(name, ".")+1:]
}

func TestWordsOfEventsMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"the agent is killed":                                        "agentKilled",
		"the agent is killed ten times at random moments":            "agentKilledTimes",
		"the agent is restarted while the hub is down":               "agentKilledWithoutHub",
		"the agent is killed while the hub is stopped":               "agentKilledWithoutHub",
		"the agent is cut off from the hub":                          "linkCut",
		"the agent loses its connection to the hub for ten minutes":  "linkCut",
		"the network between hub and edge is down":                   "linkCut",
		"the hub is unreachable for two minutes":                     "linkCut",
		"the agent cannot reach the hub":                             "linkCut",
		"the network is up again":                                    "linkBack",
		"the hub is reachable again":                                 "linkBack",
		"the agent reconnects":                                       "linkBack",
		"the hub is down for two minutes":                            "awayFor",
		"the agent is stopped for 30 seconds":                        "awayFor",
		"the API server of the edge is down for one minute":          "awayFor",
		"the API server of the edge is restarted":                    "apiServerRestarted",
		"the API server of the edge is restarted three times":        "apiServerRestarted",
		"the API server is stopped":                                  "apiServerStopped",
		"the API server is back":                                     "apiServerStarted",
		"the watches expire: 410 Gone":                               "compacted",
		"etcd of the edge is compacted":                              "compacted",
		"a snapshot of the cluster's etcd is taken":                  "clusterSaved",
		"the cluster is backed up":                                   "clusterSaved",
		"the cluster is restored from the snapshot":                  "clusterRestored",
		"the edge's etcd is restored from a snapshot of v1":          "clusterRestored",
		"the cluster's etcd is rolled back":                          "clusterRestored",
		"the hub is restored from the backup":                        "restored",
		"the hub's store is backed up":                               "backedUp",
		"the old cluster comes back from a snapshot":                 "oldClusterBack",
		"a Secret of the agent's state is deleted":                   "agentStateLost",
		"the agent's state Secrets are deleted":                      "agentStateLost",
		"the agent loses its state":                                  "agentStateLost",
		"a second agent starts with the same credentials":            "agentTwice",
		"two agents run at once":                                     "agentTwice",
		"the agent's credentials are revoked":                        "agentRevoked",
		"ten minutes pass":                                           "timePasses",
		"an hour passes":                                             "timePasses",
		"three polls pass":                                           "timePasses",
		"half a minute passes":                                       "timePasses",
		"a few seconds pass":                                         "timePasses",
		"20 seconds pass":                                            "timePasses",
		"someone deletes ConfigMap app":                              "deletedByHand",
		"someone deletes the CRD by hand":                            "deletedByHand",
		"ConfigMap app is deleted":                                   "deletedByHand",
		"the Release's targetNamespace becomes other":                "specBecomes",
		"the Release's spec.targetNamespace becomes other":           "specBecomes",
		"Release r2's syncPolicy.prune becomes {orphaned: false}":    "specBecomes",
		"the Release's path becomes app2":                            "pathBecomes",
		"ref becomes tag v2":                                         "refBecomesTag",
		"ref becomes semver >=1.0.0 <2":                              "refBecomesSemver",
		"ref becomes the commit of step v1":                          "refBecomesCommit",
		"tags 1.0.0 and 1.1.0 are made":                              "tagsMade",
		"branch main is force-pushed back to v1":                     "pushedBack",
		"branch main is force-pushed back to an older commit":        "pushedBack",
		"branch main is force-pushed to an unrelated history":        "forcePushed",
		"the default branch changes to trunk":                        "defaultBranch",
		"the repository is empty":                                    "repositoryGone",
		"the repository is gone":                                     "repositoryGone",
		"the repository is back":                                     "repositoryBack",
		"the server answers 500":                                     "serverAnswers",
		"the server answers 429 with a retry time of 90 s":           "serverLimits",
		"the server redirects to another host":                       "serverRedirects",
		"the server is well again":                                   "serverWell",
		"the agent's credentials expire":                             "",
		"the tag of the OCI artifact is moved":                       "",
		"the Release's colour becomes blue":                          "",
		"the moon passes between the hub and the sun for no minutes": "",
	} {
		got := ""
		for _, h := range happenings() {
			if h.words.MatchString(what) {
				got = doer(h.do)
				break
			}
		}
		if c := meant(what); got == "" && c != nil {
			got = doer(c.do)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
}

func TestTimesAreReadInWordsAndNumbers(t *testing.T) {
	t.Parallel()
	for what, want := range map[[2]string]time.Duration{
		{"ten", "minutes"}: 10 * time.Minute, {"an", "hour"}: time.Hour, {"half a", "minute"}: 30 * time.Second,
		{"three", "polls"}: 3 * onePoll, {"90", "seconds"}: 90 * time.Second, {"few", "seconds"}: 3 * time.Second, {"2", "days"}: 48 * time.Hour,
		{"many", "seconds"}: 0,
	} {
		if got, ok := asked(what[0], what[1]); got != want || ok != (want > 0) {
			t.Errorf("%v: %s, %t", what, got, ok)
		}
	}
	if d, less := bounded(time.Hour); d != longestPass || !strings.Contains(less, "1h0m0s") {
		t.Errorf("an hour is %s%s", d, less)
	}
}

func TestADropMeansTheGroupThatItNames(t *testing.T) {
	t.Parallel()
	const base = "step: v1\ndo: render\n---\napiVersion: v1\nkind: Service\nmetadata: {name: same}\n---\napiVersion: x.example.test/v1\nkind: Service\nmetadata: {name: same}\n---\n"
	for drop, want := range map[string]struct{ left, says string }{
		"{apiVersion: v1, kind: Service, name: same}":                {"x.example.test/v1", ""},
		"{apiVersion: x.example.test/v2, kind: Service, name: same}": {"v1", ""},
		"{group: x.example.test, kind: Service, name: same}":         {"v1", ""},
		`{group: "", kind: Service, name: same}`:                     {"x.example.test/v1", ""},
		"Service.x.example.test same":                                {"v1", ""},
		"{kind: Service, name: same}":                                {"", "leaves out 2 objects: v1 Service same, x.example.test/v1 Service same"},
	} {
		c := aCase(t, base+"step: v2\ndo: render\nbase: v1\ndrop: ["+strings.ReplaceAll(drop, "[", "")+"]\n")
		docs, err := c.render(c.find("v2"))
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, doc := range docs {
			left = append(left, doc.text("apiVersion"))
		}
		if diff := cmp.Diff(want.left, strings.Join(left, " ")); diff != "" {
			t.Errorf("drop %s (-want +got):\n%s", drop, diff)
		}
		said := strings.Join(c.manyDropped(c.find("v2")), "\n")
		if (said != "") != (want.says != "") || !strings.Contains(said, want.says) {
			t.Errorf("drop %s: said %q", drop, said)
		}
	}
}

func TestKeysOfValuesStayAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	c := aCase(t, "step: v1\ndo: files\nkind: helm\nvalues: {n: 1, y: {on: 2}, no: 3, list: [{off: 4}], quoted: \"n\"}\ntree: {app/Chart.yaml: x}\n")
	content, err := c.spec(c.Steps[0], "app")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"list":[{"off":4}],"n":1,"no":3,"quoted":"n","y":{"on":2}}`, string(content.Helm.Values.Raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	value, err := readValue("{n: 1, deep: [{y: null}]}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"n": float64(1), "deep": []any{map[string]any{"y": nil}}}, value); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesOfLongNamesCanBeWritten(t *testing.T) {
	t.Parallel()
	c := aCase(t, "step: v1\ndo: render\n---\nkind: ConfigMap\nmetadata: {name: "+strings.Repeat("a", 253)+"}\n---\nkind: ConfigMap\nmetadata: {name: "+strings.Repeat("a", 252)+"b}\n")
	files, _, err := c.files(c.Steps[0])
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for name := range files {
		if len(name) > 200 {
			t.Errorf("a name of %d characters", len(name))
		}
	}
}
