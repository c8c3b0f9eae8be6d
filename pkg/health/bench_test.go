// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"runtime"
	"testing"

	"kumodo.io/convoy/pkg/health"
)

const settled = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: t, generation: 5}
spec: {replicas: 2}
status:
  observedGeneration: 5
  replicas: 2
  updatedReplicas: 2
  readyReplicas: 2
  availableReplicas: 2
  conditions:
  - {type: Available, status: "True", reason: MinimumReplicasAvailable}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable}
`

const readyThing = `
apiVersion: x.test/v1
kind: Thing
metadata: {name: d, namespace: t, generation: 5}
status: {observedGeneration: 5, conditions: [{type: Ready, status: "True", reason: Done}]}
`

func BenchmarkJudge(b *testing.B) {
	for name, text := range map[string]string{
		"a Deployment by its built-in rule": settled, "a kind by conventions": readyThing, "a ConfigMap": "apiVersion: v1\nkind: ConfigMap",
	} {
		live := read(b, text)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := health.Judge(live); v.State != health.Healthy {
					b.Fatal(v)
				}
			}
		})
	}
	bound := parse(b, health.Rule{
		Set: "s", Group: "x.test", Kind: "Thing",
		Degraded: `has(object.status) && object.status.conditions.exists(c, c.type == "Failed" && c.status == "True")`,
		Healthy:  `has(object.status) && object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`,
	}).Bind(nil)
	live := read(b, readyThing)
	b.Run("by a rule of two CEL expressions", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if v, ok := bound.Judge(live); !ok || v.State != health.Healthy {
				b.Fatal(v)
			}
		}
	})
}

// BenchmarkRules is what one more rule takes, once it is used, and what the first one does.
func BenchmarkRules(b *testing.B) {
	thing := map[string]any{"apiVersion": "x.test/v1", "kind": "Thing", "status": map[string]any{"phase": "Ready"}}
	rule := health.Rule{Set: "s", Group: "x.test", Kind: "Thing", Healthy: `object.status.phase == "Ready"`, Degraded: `object.status.phase == "Failed"`, Message: `"phase is " + object.status.phase`}
	before := heap()
	first := parse(b, rule)
	first.Judge(thing, nil)
	one := heap() - before
	var kept []*health.Rules
	before = heap()
	for b.Loop() {
		next := parse(b, rule)
		next.Judge(thing, nil)
		kept = append(kept, next)
	}
	b.ReportMetric(float64(one)/1024, "KiB/first")
	b.ReportMetric(float64(heap()-before)/1024/float64(len(kept)), "KiB/rule")
	runtime.KeepAlive(kept)
	runtime.KeepAlive(first)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
