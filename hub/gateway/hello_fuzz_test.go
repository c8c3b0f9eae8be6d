// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// FuzzHello: whatever an agent says of itself, what is kept of it is short, is
// text, and is the same when it is said again.
func FuzzHello(f *testing.F) {
	for _, seed := range []string{
		`{"agentVersion":"v","kubernetesVersion":"v1.37.2","apiVersions":["v1","apps/v1","v1"],"targetUID":"t","now":"2026-01-02T03:04:05Z"}`,
		`{"targetUID":"\ud800","apiVersions":[""]}`, `{"agentVersion":"` + strings.Repeat("ä", 100) + `"}`, `{"now":"0001-01-01T00:00:00Z"}`,
		`{"now":"9999-12-31T23:59:59Z"}`, `{"now":"-0001-01-01T00:00:00Z"}`, `null`,
	} {
		f.Add([]byte(seed), "")
		f.Add([]byte(seed), "2h0m0s")
		f.Add([]byte(seed), "nonsense")
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte, recorded string) {
		var hello tunnel.Hello
		if tunnel.DecodeJSON(bytes.NewReader(body), tunnel.MaxHelloBody, &hello) != nil {
			return
		}
		hello.TargetUID = clip(hello.TargetUID)
		status := &v1alpha1.ClusterStatus{ClockSkew: recorded}
		describe(status, &hello, now)
		if err := moveTarget(status, "", hello.TargetUID); err != nil {
			t.Fatal(err)
		}
		for _, word := range append([]string{status.AgentVersion, status.KubernetesVersion, status.ClusterUID}, status.APIVersions...) {
			if len(word) > maxWord || !utf8.ValidString(word) {
				t.Fatalf("kept %q", word)
			}
		}
		if len(status.APIVersions) > maxAPIVersions {
			t.Fatalf("kept %d versions", len(status.APIVersions))
		}
		if _, err := time.ParseDuration(status.ClockSkew); status.ClockSkew != "" && err != nil {
			t.Fatalf("kept a skew of %q", status.ClockSkew)
		}
		again := status.DeepCopy()
		describe(again, &hello, now)
		if again.ClockSkew != status.ClockSkew {
			t.Fatalf("said again, the skew is %q after %q", again.ClockSkew, status.ClockSkew)
		}
	})
}

// FuzzRange: a range is an offset within the layer, or refused.
func FuzzRange(f *testing.F) {
	for _, seed := range []string{"", "bytes=0-", "bytes=5-", "bytes=-5", "bytes=1-2", "bytes=99999999999999999999-", "bytes=+1-", "bytes=1-,2-"} {
		f.Add(seed, int64(10))
	}
	f.Fuzz(func(t *testing.T, header string, size int64) {
		if from, err := parseRange(header, size); err == nil && (from < 0 || from >= size && header != "") {
			t.Fatalf("%q of %d starts at %d", header, size, from)
		}
	})
}
