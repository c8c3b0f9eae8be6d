// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

var (
	earlier = metav1.NewTime(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC))
	later   = metav1.NewTime(time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC))
)

// short writes conditions as lines that a table can hold:
// "Type=Status Reason gN" and "@" when the transition is new.
func short(list []metav1.Condition) []string {
	out := make([]string, 0, len(list))
	for _, c := range list {
		line := fmt.Sprintf("%s=%s %s g%d", c.Type, c.Status, c.Reason, c.ObservedGeneration)
		if c.LastTransitionTime.Equal(&later) {
			line += " @"
		}
		out = append(out, line)
	}
	return out
}

func condition(kind string, status metav1.ConditionStatus, reason string, generation int64, message ...string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: generation, LastTransitionTime: earlier}
	if len(message) > 0 {
		c.Message = message[0]
	}
	return c
}

// settled is a Release of which all is well, at the given generation.
func settled(generation int64) []metav1.Condition {
	return []metav1.Condition{
		condition("Ready", "True", "Ready", generation),
		condition("Rendered", "True", "Rendered", generation),
		condition("Applied", "True", "Applied", generation),
		condition("InSync", "True", "InSync", generation),
		condition("Healthy", "True", "Healthy", generation),
	}
}

func with(list []metav1.Condition, changed ...metav1.Condition) []metav1.Condition {
	for _, c := range changed {
		for i := range list {
			if list[i].Type == c.Type {
				list[i] = c
			}
		}
	}
	return list
}

func well(sequence int64) *tunnel.Report {
	return &tunnel.Report{
		Sequence: sequence, Settled: true,
		Applied: tunnel.Finding{Status: tunnel.True, Reason: "Applied"},
		InSync:  tunnel.Finding{Status: tunnel.True, Reason: "InSync"},
		Healthy: tunnel.Finding{Status: tunnel.True, Reason: "Healthy"},
	}
}

func reported(sequence int64, change func(*tunnel.Report)) *tunnel.Report {
	r := well(sequence)
	change(r)
	return r
}

var rendered = &Finding{metav1.ConditionTrue, v1alpha1.ReasonRendered, ""}

func TestConditionsTellWhatWasObserved(t *testing.T) {
	tests := map[string]struct {
		observed observed
		want     []string
	}{
		"nothing is known of a Release that nobody looked at": {
			observed{Generation: 1},
			[]string{"Ready=Unknown Unknown g1 @", "Rendered=Unknown Unknown g1 @", "Applied=Unknown NotReported g1 @", "InSync=Unknown NotReported g1 @", "Healthy=Unknown NotReported g1 @"},
		},
		"a first order is on its way": {
			observed{Generation: 1, Rendered: rendered, Ordered: 10},
			[]string{"Ready=False Progressing g1 @", "Rendered=True Rendered g1 @", "Applied=False Progressing g1 @", "InSync=Unknown NotReported g1 @", "Healthy=Unknown NotReported g1 @"},
		},
		"all is reported well": {
			observed{Generation: 1, PreviousGeneration: 1, Ordered: 10, PreviousOrdered: 10, Report: well(10),
				Previous: []metav1.Condition{condition("Ready", "False", "Progressing", 1), condition("Rendered", "True", "Rendered", 1), condition("Applied", "False", "Progressing", 1), condition("InSync", "Unknown", "NotReported", 1), condition("Healthy", "Unknown", "NotReported", 1)}},
			[]string{"Ready=True Ready g1 @", "Rendered=True Rendered g1", "Applied=True Applied g1 @", "InSync=True InSync g1 @", "Healthy=True Healthy g1 @"},
		},
		"nothing new moves no transition time": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10, Report: well(10)},
			[]string{"Ready=True Ready g1", "Rendered=True Rendered g1", "Applied=True Applied g1", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"after a restart the stored answers stay": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10},
			[]string{"Ready=True Ready g1", "Rendered=True Rendered g1", "Applied=True Applied g1", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"a newer order makes Applied progress and keeps what is known of the old one": {
			observed{Generation: 2, PreviousGeneration: 1, Previous: settled(1), Rendered: rendered, Ordered: 11, PreviousOrdered: 10},
			[]string{"Ready=False Progressing g2 @", "Rendered=True Rendered g2", "Applied=False Progressing g2 @", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"a report about the older order does not settle the newer": {
			observed{Generation: 2, PreviousGeneration: 2, Ordered: 11, PreviousOrdered: 11, Report: well(10),
				Previous: with(settled(1), condition("Ready", "False", "Progressing", 2), condition("Rendered", "True", "Rendered", 2), condition("Applied", "False", "Progressing", 2))},
			[]string{"Ready=False Progressing g2", "Rendered=True Rendered g2", "Applied=False Progressing g2", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"a change of the spec that needs no order is observed by all": {
			observed{Generation: 2, PreviousGeneration: 1, Previous: settled(1), Rendered: rendered, Ordered: 10, PreviousOrdered: 10},
			[]string{"Ready=True Ready g2", "Rendered=True Rendered g2", "Applied=True Applied g2", "InSync=True InSync g2", "Healthy=True Healthy g2"},
		},
		"a failing render keeps what is applied and is not ready": {
			observed{Generation: 2, PreviousGeneration: 1, Previous: settled(1), Rendered: &Finding{"False", "RenderFailed", "app.yaml:3: bad"}, Ordered: 10, PreviousOrdered: 10},
			[]string{"Ready=False RenderFailed g2 @", "Rendered=False RenderFailed g2 @", "Applied=True Applied g1", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"a report after a failing render is about the generation that was ordered": {
			observed{Generation: 2, PreviousGeneration: 2, Previous: with(settled(1), condition("Ready", "False", "RenderFailed", 2), condition("Rendered", "False", "RenderFailed", 2)), Ordered: 10, PreviousOrdered: 10, Report: well(10)},
			[]string{"Ready=False RenderFailed g2", "Rendered=False RenderFailed g2", "Applied=True Applied g1", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"a failing first render applies nothing": {
			observed{Generation: 1, Rendered: &Finding{"False", "PathNotFound", "no such path"}},
			[]string{"Ready=False PathNotFound g1 @", "Rendered=False PathNotFound g1 @", "Applied=False PathNotFound g1 @", "InSync=Unknown NotReported g1 @", "Healthy=Unknown NotReported g1 @"},
		},
		"a missing cluster holds the first render back": {
			observed{Generation: 1, Waiting: &Finding{"False", "ClusterNotReady", "no Cluster"}},
			[]string{"Ready=False ClusterNotReady g1 @", "Rendered=Unknown ClusterNotReady g1 @", "Applied=False ClusterNotReady g1 @", "InSync=Unknown NotReported g1 @", "Healthy=Unknown NotReported g1 @"},
		},
		"a broken source is told while the cluster is away": {
			observed{Generation: 1, Rendered: &Finding{"False", "FetchFailed", "no route"}, Waiting: &Finding{"False", "ClusterNotReady", "away"}},
			[]string{"Ready=False FetchFailed g1 @", "Rendered=False FetchFailed g1 @", "Applied=False ClusterNotReady g1 @", "InSync=Unknown NotReported g1 @", "Healthy=Unknown NotReported g1 @"},
		},
		"something newer waits for the cluster": {
			observed{Generation: 2, PreviousGeneration: 1, Previous: settled(1), Waiting: &Finding{"False", "ClusterNotReady", "away"}, Ordered: 10, PreviousOrdered: 10},
			[]string{"Ready=False ClusterNotReady g2 @", "Rendered=True Rendered g1", "Applied=False ClusterNotReady g2 @", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"a newer render waits for a sync": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Rendered: rendered, Waiting: &Finding{"False", "ManualSync", "waits"}, Ordered: 10, PreviousOrdered: 10},
			[]string{"Ready=False ManualSync g1 @", "Rendered=True Rendered g1", "Applied=False ManualSync g1 @", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"what waited is wanted no more, and the order was applied in full": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: with(settled(1), condition("Ready", "False", "ManualSync", 1), condition("Applied", "False", "ManualSync", 1)), Rendered: rendered, Ordered: 10, PreviousOrdered: 10, AppliedInFull: true},
			[]string{"Ready=True Ready g1 @", "Rendered=True Rendered g1", "Applied=True Applied g1 @", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"what waited is wanted no more, and the order is not applied yet": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: with(settled(1), condition("Applied", "False", "ClusterNotReady", 1)), Rendered: rendered, Ordered: 10, PreviousOrdered: 10},
			[]string{"Ready=False Progressing g1 @", "Rendered=True Rendered g1", "Applied=False Progressing g1", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"the target rejected objects": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10, Report: reported(10, func(r *tunnel.Report) {
				r.Applied = tunnel.Finding{Status: tunnel.False, Reason: "DryRunFailed", Message: "Deployment a/b"}
			})},
			[]string{"Ready=False DryRunFailed g1 @", "Rendered=True Rendered g1", "Applied=False DryRunFailed g1 @", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"an object is broken in manual mode": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10, Report: reported(10, func(r *tunnel.Report) {
				r.InSync = tunnel.Finding{Status: tunnel.False, Reason: "Drifted"}
			})},
			[]string{"Ready=False Drifted g1 @", "Rendered=True Rendered g1", "Applied=True Applied g1", "InSync=False Drifted g1 @", "Healthy=True Healthy g1"},
		},
		"a health check that timed out is Unknown, and so is Ready": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10, Report: reported(10, func(r *tunnel.Report) {
				r.Healthy = tunnel.Finding{Status: tunnel.Unknown, Reason: "DeadlinePassed"}
			})},
			[]string{"Ready=Unknown DeadlinePassed g1 @", "Rendered=True Rendered g1", "Applied=True Applied g1", "InSync=True InSync g1", "Healthy=Unknown DeadlinePassed g1 @"},
		},
		"what is False goes before what is Unknown": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10, Report: reported(10, func(r *tunnel.Report) {
				r.InSync = tunnel.Finding{Status: tunnel.Unknown, Reason: "Unknown"}
				r.Healthy = tunnel.Finding{Status: tunnel.False, Reason: "Degraded"}
			})},
			[]string{"Ready=False Degraded g1 @", "Rendered=True Rendered g1", "Applied=True Applied g1", "InSync=Unknown Unknown g1 @", "Healthy=False Degraded g1 @"},
		},
		"a word that is no truth is Unknown": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10, Report: reported(10, func(r *tunnel.Report) {
				r.Healthy = tunnel.Finding{Status: "true", Reason: "no word!"}
			})},
			[]string{"Ready=Unknown Unknown g1 @", "Rendered=True Rendered g1", "Applied=True Applied g1", "InSync=True InSync g1", "Healthy=Unknown Unknown g1 @"},
		},
		"the current order was refused": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 11, PreviousOrdered: 11, Report: reported(10, func(r *tunnel.Report) {
				r.Refused, r.RefusedSequence = &tunnel.Finding{Status: tunnel.False, Reason: "AgentTooOld", Message: "needs replace.v1"}, 11
			})},
			[]string{"Ready=False AgentTooOld g1 @", "Rendered=True Rendered g1", "Applied=False AgentTooOld g1 @", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"an order of which not even the sequence could be trusted was refused": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 11, PreviousOrdered: 11, Report: reported(10, func(r *tunnel.Report) {
				r.Refused = &tunnel.Finding{Status: tunnel.False, Reason: "OrderRefused", Message: "signature"}
			})},
			[]string{"Ready=False OrderRefused g1 @", "Rendered=True Rendered g1", "Applied=False OrderRefused g1 @", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"an older order was refused while the current one is enforced": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 11, PreviousOrdered: 11, Report: reported(11, func(r *tunnel.Report) {
				r.Refused, r.RefusedSequence = &tunnel.Finding{Status: tunnel.False, Reason: "OrderRefused", Message: "older"}, 9
			})},
			[]string{"Ready=True Ready g1", "Rendered=True Rendered g1", "Applied=True Applied g1", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"the agent holds an order that is newer than the hub's": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 11, PreviousOrdered: 11, Report: well(12)},
			[]string{"Ready=Unknown HubBehind g1 @", "Rendered=True Rendered g1", "Applied=Unknown HubBehind g1 @", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"a silent agent makes its state Unknown and leaves Applied": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10, Silent: &Silence{Reason: "Disconnected", Cluster: "edge"}},
			[]string{"Ready=Unknown Disconnected g1 @", "Rendered=True Rendered g1", "Applied=True Applied g1", "InSync=Unknown Disconnected g1 @", "Healthy=Unknown Disconnected g1 @"},
		},
		"a Cluster that does not exist any more makes the state Unknown": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10, Silent: &Silence{Reason: "ClusterNotReady", Cluster: "edge"}},
			[]string{"Ready=Unknown ClusterNotReady g1 @", "Rendered=True Rendered g1", "Applied=True Applied g1", "InSync=Unknown ClusterNotReady g1 @", "Healthy=Unknown ClusterNotReady g1 @"},
		},
		"a cluster that was never heard of stays not reported": {
			observed{Generation: 1, PreviousGeneration: 1, Ordered: 10, PreviousOrdered: 10, Silent: &Silence{Reason: "Disconnected", Cluster: "edge"},
				Previous: []metav1.Condition{condition("Applied", "False", "Progressing", 1), condition("Rendered", "True", "Rendered", 1)}},
			[]string{"Ready=False Progressing g1 @", "Rendered=True Rendered g1", "Applied=False Progressing g1", "InSync=Unknown NotReported g1 @", "Healthy=Unknown NotReported g1 @"},
		},
		"a deletion that waits is told, whatever else is well": {
			observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10, Deleting: &Finding{"False", "Deleting", "waits for x"}},
			[]string{"Ready=False Deleting g1 @", "Rendered=True Rendered g1", "Applied=True Applied g1", "InSync=True InSync g1", "Healthy=True Healthy g1"},
		},
		"an agent that accepted nothing yet says nothing of the state": {
			observed{Generation: 1, PreviousGeneration: 1, Ordered: 10, PreviousOrdered: 10, Report: reported(0, func(r *tunnel.Report) {
				r.Refused, r.RefusedSequence = &tunnel.Finding{Reason: "bad reason"}, 10
			})},
			[]string{"Ready=False OrderRefused g1 @", "Rendered=Unknown Unknown g1 @", "Applied=False OrderRefused g1 @", "InSync=Unknown NotReported g1 @", "Healthy=Unknown NotReported g1 @"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.observed.At = later
			got := conditions(test.observed)
			if diff := cmp.Diff(test.want, short(got)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			for _, c := range got {
				if c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue {
					for _, step := range got {
						if step.Status != metav1.ConditionTrue {
							t.Errorf("Ready is True while %s is %s", step.Type, step.Status)
						}
					}
				}
			}
		})
	}
}

// Every combination of the steps: Ready is True only when all are, and never
// says less than what is False.
func TestReadyIsTrueOnlyWhenEveryStepIs(t *testing.T) {
	truths := []metav1.ConditionStatus{"True", "False", "Unknown"}
	for _, a := range truths {
		for _, b := range truths {
			for _, c := range truths {
				for _, d := range truths {
					steps := []metav1.Condition{condition("Rendered", a, "A", 1), condition("Applied", b, "B", 1), condition("InSync", c, "C", 1), condition("Healthy", d, "D", 1)}
					want := metav1.ConditionTrue
					for _, step := range steps {
						switch {
						case step.Status == "False":
							want = "False"
						case step.Status == "Unknown" && want == "True":
							want = "Unknown"
						}
					}
					if got := (composer{observed: observed{Generation: 1}}).ready(steps...); got.Status != want {
						t.Errorf("Ready of %v %v %v %v = %v, want %v", a, b, c, d, got.Status, want)
					}
				}
			}
		}
	}
}

func TestRefusedOrdersAreNamedInTheMessage(t *testing.T) {
	current := conditions(observed{At: later, Generation: 1, Ordered: 11, PreviousOrdered: 11, Report: reported(10, func(r *tunnel.Report) {
		r.Refused, r.RefusedSequence = &tunnel.Finding{Reason: "OrderRefused", Message: "signed by an unknown key"}, 11
	})})
	if want := "the agent refused order 11: signed by an unknown key; what it enforced before stays enforced"; current[2].Message != want {
		t.Errorf("Applied says %q, want %q", current[2].Message, want)
	}
	older := conditions(observed{At: later, Generation: 1, Ordered: 11, PreviousOrdered: 11, Report: reported(11, func(r *tunnel.Report) {
		r.Refused, r.RefusedSequence = &tunnel.Finding{Reason: "OrderRefused", Message: "older than what is held"}, 9
	})})
	if want := "order 9 was refused (OrderRefused): older than what is held"; older[2].Message != want {
		t.Errorf("Applied says %q, want %q", older[2].Message, want)
	}
}

func TestClusterConditionsFollowTheSession(t *testing.T) {
	joined := &v1alpha1.ClusterAgentStatus{BoundKey: "k"}
	tests := map[string]struct {
		previous []metav1.Condition
		status   v1alpha1.ClusterStatus
		want     []string
	}{
		"a Cluster that nobody joined":    {nil, v1alpha1.ClusterStatus{ObservedGeneration: 1}, []string{"Ready=False NeverJoined g1 @"}},
		"a Cluster whose agent is there":  {nil, v1alpha1.ClusterStatus{ObservedGeneration: 1, Agent: joined, Reachable: true}, []string{"Ready=True Connected g1 @"}},
		"a Cluster whose agent is away":   {[]metav1.Condition{condition("Ready", "True", "Connected", 1)}, v1alpha1.ClusterStatus{ObservedGeneration: 1, Agent: joined}, []string{"Ready=False Disconnected g1 @"}},
		"joined but not connected yet":    {[]metav1.Condition{condition("Ready", "False", "NeverJoined", 1)}, v1alpha1.ClusterStatus{ObservedGeneration: 1, Agent: joined}, []string{"Ready=False Disconnected g1"}},
		"nothing new moves no transition": {[]metav1.Condition{condition("Ready", "True", "Connected", 1)}, v1alpha1.ClusterStatus{ObservedGeneration: 2, Agent: joined, Reachable: true}, []string{"Ready=True Connected g2"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, short(clusterConditions(clusterObserved{previous: test.previous, status: &test.status, now: later.Time}))); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsSaidOfASilentClusterDependsOnWhoRepairsThere(t *testing.T) {
	for name, c := range map[string]struct {
		silence Silence
		want    string
	}{
		"one with an agent":                {Silence{Reason: "Disconnected", Cluster: "edge"}, "the agent goes on enforcing"},
		"one that the hub dials by itself": {Silence{Reason: "Disconnected", Cluster: "edge", Dialled: true}, "nothing is repaired there meanwhile"},
		"one that does not exist":          {Silence{Reason: "ClusterNotReady", Cluster: "edge"}, "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			got := conditions(observed{Generation: 1, PreviousGeneration: 1, Previous: settled(1), Ordered: 10, PreviousOrdered: 10, Silent: &c.silence})
			if message := meta.FindStatusCondition(got, "InSync").Message; !strings.Contains(message, c.want) {
				t.Errorf("said %q, want %q in it", message, c.want)
			}
		})
	}
}
