// SPDX-License-Identifier: Apache-2.0

package engine

import "testing"

func TestAPodThatIsStartedAgainForEverIsAWorkload(t *testing.T) {
	for policy, want := range map[string]bool{"Never": true, "OnFailure": true, "Always": false, "": false} {
		if got := ends(map[string]any{"spec": map[string]any{"restartPolicy": policy}}); got != want {
			t.Errorf("restartPolicy %q: %v", policy, got)
		}
	}
	if ends(nil) || ends(map[string]any{"spec": map[string]any{}}) {
		t.Error("one that says nothing is started again")
	}
}

func TestOnlyWhatNamedAPhaseWasCalledAHookBefore(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"an ordinary object":                   {nil, false},
		"one of Argo CD's phase Sync":          {map[string]string{"argocd.argoproj.io/hook": "Sync"}, false},
		"one of Argo CD's phase PreSync":       {map[string]string{"argocd.argoproj.io/hook": "PreSync"}, true},
		"one of Argo CD's Sync and PostSync":   {map[string]string{"argocd.argoproj.io/hook": "Sync,PostSync"}, true},
		"one of a chart, by an older hub":      {map[string]string{"helm.sh/hook": "pre-upgrade"}, true},
		"one of convoy's form":                 {map[string]string{"convoy.kumodo.io/hook": "PreSync"}, true},
		"an annotation that says nothing":      {map[string]string{"convoy.kumodo.io/hook": " , "}, false},
		"another annotation that has the word": {map[string]string{"example.com/hook": "PreSync"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := calledHook(test.annotations); got != test.want {
				t.Errorf("calledHook is %v, want %v", got, test.want)
			}
		})
	}
}
