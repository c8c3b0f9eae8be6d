// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhatIsNeverDeleted(t *testing.T) {
	t.Parallel()
	namespace := manifest.Identity{Kind: kindNamespace, Name: "n"}
	definition := manifest.Identity{Group: "apiextensions.k8s.io", Kind: kindDefinition, Name: "boats.example.test"}
	claim := manifest.Identity{Kind: kindClaim, Namespace: "n", Name: "data"}
	plain := manifest.Identity{Kind: "ConfigMap", Namespace: "n", Name: "c"}
	for name, c := range map[string]struct {
		id          manifest.Identity
		created     bool
		allowed     []string
		annotations map[string]string
		removal     bool
		nothing     bool
		why         string
	}{
		"an ordinary object goes":                              {id: plain},
		"a definition stays":                                   {id: definition, created: true, why: "definition"},
		"a definition goes where the policy says so":           {id: definition, allowed: []string{kindDefinition}},
		"a claim stays":                                        {id: claim, created: true, why: "data"},
		"a claim goes where the policy says so":                {id: claim, allowed: []string{kindClaim}},
		"a claim goes with a permitted render of nothing":      {id: claim, nothing: true},
		"a namespace that was there before stays":              {id: namespace, why: "was there before"},
		"a namespace that the Release made is its own":         {id: namespace, created: true},
		"a namespace goes where the policy says so":            {id: namespace, allowed: []string{kindNamespace}},
		"allowing one kind allows no other":                    {id: claim, allowed: []string{kindNamespace, kindDefinition}, why: "data"},
		"a kind of the same name in another group is no claim": {id: manifest.Identity{Group: "example.test", Kind: kindClaim, Name: "x"}},
		"our annotation keeps":                                 {id: plain, annotations: map[string]string{"convoy.kumodo.io/prune": "false"}, why: "convoy.kumodo.io/prune"},
		"our annotation keeps what the policy allows":          {id: claim, allowed: []string{kindClaim}, annotations: map[string]string{"convoy.kumodo.io/prune": "False"}, why: "convoy.kumodo.io/prune"},
		"our annotation with another value does not":           {id: plain, annotations: map[string]string{"convoy.kumodo.io/prune": "true"}},
		"Helm's annotation keeps":                              {id: plain, annotations: map[string]string{"helm.sh/resource-policy": " keep"}, why: "helm.sh/resource-policy"},
		"Argo CD's option keeps":                               {id: plain, annotations: map[string]string{"argocd.argoproj.io/sync-options": "Validate=false, Prune=false"}, why: "argocd"},
		"Argo CD's option of deletion means the removal":       {id: plain, removal: true, annotations: map[string]string{"argocd.argoproj.io/sync-options": "Delete=false"}, why: "argocd"},
		"and no prune":                                         {id: plain, annotations: map[string]string{"argocd.argoproj.io/sync-options": "Delete=false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			order := tunnel.Order{Verb: tunnel.VerbApply, Policy: tunnel.Policy{Allowed: c.allowed}}
			if c.removal {
				order.Verb = tunnel.VerbRemove
			}
			got := rulesOf(order, c.nothing).kept(c.id, c.annotations, c.created)
			if (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
				t.Errorf("kept because %q, want %q", got, c.why)
			}
		})
	}
}
