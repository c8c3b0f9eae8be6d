// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const auditLines = `{"kind":"Event","auditID":"1","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/a/secrets/s","verb":"get","user":{"username":"system:serviceaccount:convoy-agent:convoy-agent","groups":["system:serviceaccounts"]},"userAgent":"convoy-agent/v0","objectRef":{"resource":"secrets","namespace":"a","name":"s","apiVersion":"v1"},"responseStatus":{"code":403,"message":"no"}}
{"kind":"Event","auditID":"2","stage":"ResponseStarted","requestURI":"/apis/apps/v1/deployments?watch=1","verb":"watch","user":{"username":"convoy-test-admin","groups":["convoy-test:admins"]},"userAgent":"convoy-harness","objectRef":{"resource":"deployments","apiGroup":"apps","apiVersion":"v1"},"responseStatus":{"code":200}}
{"kind":"Event","auditID":"3","stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/a/deployments/d/status","verb":"patch","user":{"username":"root","groups":["system:masters"]},"userAgent":"kubectl/v1","objectRef":{"resource":"deployments","subresource":"status","apiGroup":"apps","namespace":"a","name":"d","apiVersion":"v1"},"responseStatus":{"code":200}}
`

func TestAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(auditLines)
	for name, c := range map[string]struct {
		filters []Filter
		want    []string
	}{
		"without filters all events come":             {want: []string{"1", "2", "3"}},
		"by namespace of the ServiceAccount":          {filters: []Filter{ByServiceAccountsOf("convoy-agent")}, want: []string{"1"}},
		"by code and verb":                            {filters: []Filter{WithCode(403), WithVerb("get", "list")}, want: []string{"1"}},
		"by resource and group":                       {filters: []Filter{AboutResource("apps", "deployments")}, want: []string{"2", "3"}},
		"finished ones, a watch that goes on is not":  {filters: []Filter{Finished()}, want: []string{"1", "3"}},
		"without the harness":                         {filters: []Filter{NotHarness()}, want: []string{"1", "3"}},
		"by members of system:masters":                {filters: []Filter{Masters()}, want: []string{"3"}},
		"either of two, and not a third":              {filters: []Filter{AnyOf(ByAgent("kubectl/"), ByAgent("convoy-")), Not(ByUser(AdminUser))}, want: []string{"1", "3"}},
		"a filter that wants nothing gives no events": {filters: []Filter{WithCode(418)}},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := AuditAll(path, c.filters...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range events {
				got = append(got, e.ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("an event tells what it was about", func(t *testing.T) {
		events, err := AuditAll(path, ByUser("root"))
		if err != nil {
			t.Fatal(err)
		}
		want := Object{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "status", Namespace: "a", Name: "d"}
		if diff := cmp.Diff(want, events[0].Object); diff != "" {
			t.Errorf("object (-want +got):\n%s", diff)
		}
	})
	t.Run("half a line at the end is left out", func(t *testing.T) {
		write(auditLines + `{"kind":"Event","auditID":"4","sta`)
		events, err := AuditAll(path)
		if err != nil || len(events) != 3 {
			t.Errorf("%d events, error %v, want 3 events", len(events), err)
		}
	})
	t.Run("a line that is none is an error", func(t *testing.T) {
		write("nonsense\n" + auditLines)
		if events, err := AuditAll(path); err == nil {
			t.Errorf("events %v, want an error", events)
		}
	})
}
