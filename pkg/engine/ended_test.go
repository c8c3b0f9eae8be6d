// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
)

func TestWhichObjectsEndSoThatTheyMayGo(t *testing.T) {
	job, pod := manifest.Identity{Group: "batch", Kind: "Job", Name: "x"}, manifest.Identity{Kind: "Pod", Name: "x"}
	other := manifest.Identity{Group: "example.test", Kind: "Thing", Name: "x"}
	const complete, failed = "status: {conditions: [{type: Complete, status: 'True'}]}", "status: {conditions: [{type: Failed, status: 'True'}]}"
	const once = "metadata: {annotations: {convoy.kumodo.io/once: 'true'}}"
	for name, c := range map[string]struct {
		id   manifest.Identity
		live string
		want outcome
	}{
		"a Job that says for how long it stays":         {job, "spec: {ttlSecondsAfterFinished: 0}\n" + complete, outcomeDone},
		"one that has failed":                           {job, "spec: {ttlSecondsAfterFinished: 0}\n" + failed, outcomeFailed},
		"one that has not ended":                        {job, "spec: {ttlSecondsAfterFinished: 0}\nstatus: {active: 1}", outcomeOpen},
		"one that stays until somebody removes it":      {job, "spec: {}\n" + complete, outcomeOpen},
		"one that stays, and is annotated":              {job, once + "\n" + complete, outcomeDone},
		"an annotation that says no":                    {job, "metadata: {annotations: {convoy.kumodo.io/once: 'false'}}\n" + complete, outcomeOpen},
		"a Pod that has succeeded":                      {pod, "spec: {restartPolicy: Never}\nstatus: {phase: Succeeded}", outcomeDone},
		"a Pod that has failed, as one that is evicted": {pod, "spec: {restartPolicy: Never}\nstatus: {phase: Failed}", outcomeOpen},
		"one that is annotated":                         {pod, once + "\nspec: {restartPolicy: Never}\nstatus: {phase: Failed}", outcomeFailed},
		"a Pod that runs":                               {pod, "spec: {restartPolicy: Always}\nstatus: {phase: Running}", outcomeOpen},
		"any other that is healthy":                     {other, "status: {phase: Succeeded, conditions: [{type: Ready, status: 'True'}]}", outcomeOpen},
		"any other that is healthy, and annotated":      {other, once + "\nstatus: {conditions: [{type: Ready, status: 'True'}]}", outcomeDone},
		"any other that is on its way, and annotated":   {other, once + "\nstatus: {conditions: [{type: Ready, status: 'False'}]}", outcomeOpen},
		"any other that is being deleted":               {other, "metadata: {deletionTimestamp: now, annotations: {convoy.kumodo.io/once: 'true'}}", outcomeOpen},
	} {
		var live map[string]any
		if err := yaml.Unmarshal([]byte("apiVersion: "+c.id.Group+"/v1\nkind: "+c.id.Kind+"\n"+c.live), &live); err != nil {
			t.Fatal(err)
		}
		if got := endOf(c.id, live, annotationTexts(live), (&release{}).judge(live)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWhatHasEndedAndIsGoneIsNotMissed(t *testing.T) {
	done := &ended{uid: "uid-1"}
	for name, c := range map[string]struct {
		o    object
		want bool // it has drifted
	}{
		"gone after its end":                       {object{uid: "uid-1", ended: done, missing: true}, false},
		"gone before its end":                      {object{uid: "uid-1", missing: true}, true},
		"gone, when another of its name had ended": {object{uid: "uid-2", ended: done, missing: true}, true},
		"there after its end, and changed":         {object{uid: "uid-1", ended: done, entryGone: true}, true},
	} {
		c.o.applied, c.o.seen = true, true
		if got := c.o.drifted(); got != c.want {
			t.Errorf("%s: drifted %v, want %v", name, got, c.want)
		}
		if got := c.o.inSync(); got == c.want {
			t.Errorf("%s: in sync %v", name, got)
		}
	}
}
