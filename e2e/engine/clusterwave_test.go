// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/pkg/tunnel"
)

func inWave(n int32) option {
	return func(o *tunnel.Order) {
		o.Wave = n
		o.Requires = append(o.Requires, tunnel.FeatureWave)
	}
}

func TestAReleaseWaitsForThoseOfLowerWavesAndNamesThem(t *testing.T) {
	inModes(t, testAReleaseWaitsForThoseOfLowerWavesAndNamesThem)
}

func testAReleaseWaitsForThoseOfLowerWavesAndNamesThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("clusterwave")
	low := b.accept(b.order("low", ns, stuck, inWave(-1), seconds(300)))
	b.report("uid-low", "waiting for its workload", func(r tunnel.Report) bool { return r.Sequence == low.Sequence && r.Healthy.Status != tunnel.True })
	high := b.accept(b.order("high", ns, configMap(ns, "high", "k", "v")))
	waiting := func(r tunnel.Report) bool {
		return r.Applied.Status == tunnel.Unknown && r.Applied.Reason == "WaitingForWave" && strings.Contains(r.Applied.Message, "Release apps/low of wave -1")
	}
	b.report("uid-high", "waiting for the other", waiting)
	if _, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Get(b.ctx, "high", metav1.GetOptions{}); err == nil {
		t.Error("it was applied")
	}
	// Nobody waits for those of a higher wave, and a restart changes nothing.
	b.apply("lowest", ns, configMap(ns, "lowest", "k", "v"), inWave(-2))
	b.restart()
	b.report("uid-high", "waiting for the other after a restart", waiting)
	// What the lower one needs comes: a render that works.
	fixed := strings.Replace(stuck, "      nodeSelector: {nowhere: \"true\"}\n", "", 1)
	b.apply("low", ns, fixed, inWave(-1), seconds(300))
	b.applied(high)
	b.get(configmaps, ns, "high")
	// What is there is kept while a lower one is ill, an order that brings nothing new
	// does not wait, and one that does, does.
	b.accept(b.order("low", ns, stuck, inWave(-1), seconds(300)))
	b.report("uid-low", "ill", func(r tunnel.Report) bool { return r.Healthy.Status != tunnel.True })
	b.edit(configmaps, ns, "high", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "high", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
	b.apply("high", ns, configMap(ns, "high", "k", "v"))
	next := b.accept(b.order("high", ns, configMap(ns, "high", "k", "v2")))
	b.report("uid-high", "waiting for the other again", waiting)
	// One that is to go is not waited for.
	b.accept(b.bare("low", tunnel.VerbRemove))
	b.applied(next)
}
