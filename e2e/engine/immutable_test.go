// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"kumodo.io/convoy/pkg/tunnel"
)

// immutables are objects before and after a change that cannot be made.
var immutables = map[string]struct {
	before, after string
	says          string
	replaced      bool
}{
	"service-given": {
		before:   "apiVersion: v1\nkind: Service\nmetadata: {name: it}\nspec:\n  ports: [{port: 80}]\n",
		after:    "apiVersion: v1\nkind: Service\nmetadata: {name: it}\nspec:\n  clusterIP: 10.96.0.91\n  ports: [{port: 80}]\n",
		says:     "may not change once set",
		replaced: true,
	},
	"service-headless": {
		before:   "apiVersion: v1\nkind: Service\nmetadata: {name: it}\nspec:\n  clusterIP: 10.96.0.92\n  ports: [{port: 80}]\n",
		after:    "apiVersion: v1\nkind: Service\nmetadata: {name: it}\nspec:\n  clusterIP: None\n  ports: [{port: 80}]\n",
		says:     "may not change once set",
		replaced: true,
	},
	"service-port": {
		before:   "apiVersion: v1\nkind: Service\nmetadata: {name: it}\nspec:\n  type: NodePort\n  clusterIP: 10.96.0.93\n  ports: [{port: 80, nodePort: 30793}]\n",
		after:    "apiVersion: v1\nkind: Service\nmetadata: {name: it}\nspec:\n  type: NodePort\n  clusterIP: 10.96.0.94\n  ports: [{port: 80, nodePort: 30793}]\n",
		says:     "may not change once set",
		replaced: true,
	},
	"secret-type": {
		before:   "apiVersion: v1\nkind: Secret\nmetadata: {name: it}\ntype: Opaque\ndata: {tls.crt: YQ==, tls.key: YQ==}\n",
		after:    "apiVersion: v1\nkind: Secret\nmetadata: {name: it}\ntype: kubernetes.io/tls\ndata: {tls.crt: YQ==, tls.key: YQ==}\n",
		says:     "type: field is immutable",
		replaced: true,
	},
	"secret-sealed": {
		before:   "apiVersion: v1\nkind: Secret\nmetadata: {name: it}\nimmutable: true\ndata: {k: YQ==}\n",
		after:    "apiVersion: v1\nkind: Secret\nmetadata: {name: it}\nimmutable: true\ndata: {k: Yg==}\n",
		says:     "data: field is immutable",
		replaced: true,
	},
	"claim": {
		before: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: it}\nspec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n",
		after:  "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: it}\nspec:\n  accessModes: [ReadWriteMany]\n  resources: {requests: {storage: 1Gi}}\n",
		says:   "spec is immutable after creation",
	},
	"definition": {
		before: definition("imm.example.test"),
		after:  strings.Replace(definition("imm.example.test"), "scope: Namespaced", "scope: Cluster", 1),
		says:   "field is immutable",
	},
}

func TestAFieldThatCannotChangeIsToldInOneSentenceAndReplacedWhereThatIsSafe(t *testing.T) {
	inModes(t, testAFieldThatCannotChangeIsToldInOneSentenceAndReplacedWhereThatIsSafe)
}

func testAFieldThatCannotChangeIsToldInOneSentenceAndReplacedWhereThatIsSafe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range immutables {
		ns := b.namespace("imm-" + name)
		done := func(documents string, options ...option) {
			t.Helper()
			o := b.accept(b.order(name, ns, documents, options...))
			b.report("uid-"+name, "applied", func(r tunnel.Report) bool { return r.Sequence == o.Sequence && r.Applied.Status == tunnel.True })
		}
		done(c.before)
		replace := func(o *tunnel.Order) { o.Policy.Replace = true }
		told := func(options ...option) {
			t.Helper()
			r := b.settled(b.accept(b.order(name, ns, c.after, options...)))
			if len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Immutable" || !strings.Contains(r.Exceptions[0].Message, c.says) ||
				len(r.Exceptions[0].Message) > 200 || strings.ContainsAny(r.Exceptions[0].Message, "\n{}") {
				t.Errorf("%s: applied %+v, exceptions %+v", name, r.Applied, r.Exceptions)
			}
		}
		told()
		if c.replaced {
			done(c.after, replace)
		} else {
			told(replace)
		}
	}
}
