// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhatAClusterDoesNotPermitIsNamedWithItsRule(t *testing.T) {
	t.Parallel()
	inside := manifest.Identity{Kind: "ConfigMap", Namespace: "team-a", Name: "c"}
	role := manifest.Identity{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "r"}
	for name, c := range map[string]struct {
		allowed *tunnel.Allowed
		id      manifest.Identity
		account string
		rule    string
	}{
		"nothing said":                              {nil, inside, "", ""},
		"rules of other matters":                    {&tunnel.Allowed{ClusterKinds: []string{}}, inside, "", ""},
		"a namespace that is named":                 {&tunnel.Allowed{Namespaces: []string{"team-b", "team-a"}}, inside, "", ""},
		"a namespace with a prefix that is named":   {&tunnel.Allowed{Namespaces: []string{"team-*"}}, inside, "", ""},
		"a namespace that is not named":             {&tunnel.Allowed{Namespaces: []string{"team"}}, inside, "", "targetNamespaces"},
		"no namespace at all":                       {&tunnel.Allowed{Namespaces: []string{}}, inside, "", "targetNamespaces"},
		"a kind that is named":                      {&tunnel.Allowed{ClusterKinds: []string{"ClusterRole"}}, role, "", ""},
		"a kind that is named with its group":       {&tunnel.Allowed{ClusterKinds: []string{"ClusterRole.rbac.authorization.k8s.io"}}, role, "", ""},
		"a kind of another group":                   {&tunnel.Allowed{ClusterKinds: []string{"ClusterRole.example.test"}}, role, "", "clusterScopedKinds"},
		"any kind":                                  {&tunnel.Allowed{ClusterKinds: []string{"*"}}, role, "", ""},
		"no kind":                                   {&tunnel.Allowed{ClusterKinds: []string{}}, role, "", "clusterScopedKinds"},
		"an account that is named":                  {&tunnel.Allowed{ServiceAccounts: []string{"team-a:deploy"}}, inside, "team-a:deploy", ""},
		"an account of a namespace that is named":   {&tunnel.Allowed{ServiceAccounts: []string{"team-a:*"}}, inside, "team-a:deploy", ""},
		"an account whose name is named":            {&tunnel.Allowed{ServiceAccounts: []string{"*:deploy"}}, inside, "team-a:deploy", ""},
		"an account that is not named":              {&tunnel.Allowed{ServiceAccounts: []string{"team-b:*", "team-a:other"}}, inside, "team-a:deploy", "serviceAccounts"},
		"no account where one has to be named":      {&tunnel.Allowed{ServiceAccounts: []string{"*:*"}}, inside, "", "serviceAccounts"},
		"a rule without a colon names no namespace": {&tunnel.Allowed{ServiceAccounts: []string{"deploy"}}, inside, "team-a:deploy", "serviceAccounts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			order := tunnel.Order{ServiceAccount: c.account, Permitted: c.allowed}
			p := &plan{count: 1, items: []*item{{id: c.id}}}
			finding, bad := p.forbidden(order)
			if bad != (c.rule != "") {
				t.Fatalf("forbidden: %v, %+v", bad, finding)
			}
			if bad && (finding.Reason != "Forbidden" || finding.Status != tunnel.False || !strings.Contains(finding.Message, "spec.allowed."+c.rule) || !strings.Contains(finding.Message, "nothing applied")) {
				t.Errorf("finding is %+v", finding)
			}
		})
	}
}

func TestAnAccountThatIsNoneIsNoOrder(t *testing.T) {
	t.Parallel()
	for account, fine := range map[string]bool{
		"": true, "team-a:deploy": true, "a:b.c": true, "deploy": false, "team-a:deploy:x": false, "team-a:": false, ":deploy": false,
		"Team:deploy": false, "team-a:deploy\r\nImpersonate-Group: system:masters": false,
	} {
		rn, _ := unstarted(t, time.Now())
		err := rn.Accept(tunnel.Order{
			Verb: tunnel.VerbRelease, Hub: "hub", ClusterUID: "cluster", Sequence: 1, Release: tunnel.ReleaseRef{UID: "r"}, ServiceAccount: account,
		}, tunnel.Signed{})
		if errors.Is(err, ErrMalformed) == fine {
			t.Errorf("account %q: %v", account, err)
		}
	}
}
