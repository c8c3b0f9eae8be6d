// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

// BenchmarkStatusWrite measures what one status write of a realistic Release
// costs in process, with 32 writers, each on Releases of its own.
func BenchmarkStatusWrite(b *testing.B) {
	s := apiservertest.Start(b)
	const releases, writers = 256, 32
	keys := make([]types.NamespacedName, releases)
	for i := range keys {
		r := mustCreate(b, s, newRelease(fmt.Sprintf("release-%d", i), "edge"))
		keys[i] = types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
	}
	var next, workers atomic.Int64
	b.SetParallelism(writers / 2) // times GOMAXPROCS, which is 2 where this was measured
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		offset := int(workers.Add(1)) * 8
		for i := 0; pb.Next(); i++ {
			n := next.Add(1)
			_, err := s.Storage().Releases.UpdateStatus(b.Context(), keys[(offset+i%8)%releases], "", func(r *v1alpha1.Release) error {
				fillStatus(&r.Status, n)
				return nil
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// fillStatus makes a status as a settled Release has it.
func fillStatus(s *v1alpha1.ReleaseStatus, n int64) {
	now := metav1.NewTime(time.Unix(1_900_000_000+n, 0))
	digest := fmt.Sprintf("sha256:%064x", n)
	s.ObservedGeneration, s.Sequence, s.RenderRef, s.AppliedRef, s.InputsHash = 1, n, digest, digest, digest
	s.SourceRevision = "main@sha1:" + strings.Repeat("ab", 20)
	s.Conditions = nil
	for _, t := range []string{"Ready", "Rendered", "Applied", "InSync", "Healthy"} {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: t, Status: metav1.ConditionTrue, Reason: t, Message: "10 objects as ordered", LastTransitionTime: now})
	}
	s.Order = &v1alpha1.OrderStatus{Sequence: n, KeyID: "0123456789abcdef", Payload: strings.Repeat("x", 900), Signature: strings.Repeat("y", 88)}
	s.History = nil
	for i := range int64(10) {
		s.History = append(s.History, v1alpha1.HistoryEntry{RenderRef: fmt.Sprintf("sha256:%064x", n-i), SourceRevision: s.SourceRevision, Sequence: n - i, AppliedAt: &now, Healthy: true})
	}
	s.LastOperation = &v1alpha1.Operation{Type: v1alpha1.OperationSync, Phase: v1alpha1.PhaseSucceeded, Sequence: n, StartedAt: &now, FinishedAt: &now}
	s.Objects = v1alpha1.ObjectCounts{Total: 10, Applied: 10, Healthy: 10}
	s.LastReportedAt = &now
}
