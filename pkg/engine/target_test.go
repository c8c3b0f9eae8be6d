// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

func TestSS28EachNameComesToTheServerAsItIs(t *testing.T) {
	t.Parallel()
	var got *url.URL
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.URL
		_, err := w.Write([]byte(`{"metadata":{"uid":"u"}}`))
		if err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	for _, under := range []string{"", "/", "/clusters/a%20b"} {
		target, err := newTarget(&rest.Config{Host: server.URL + under}, clock.RealClock{}, newMetrics(prometheus.NewRegistry()))
		if err != nil {
			t.Fatal(err)
		}
		res := resource{group: groupRBAC, version: "v1", plural: "roles", kind: "Role", namespaced: true}
		base, err := url.PathUnescape(under)
		if err != nil {
			t.Fatal(err)
		}
		if base == "/" {
			base = ""
		}
		for name, comes := range map[string]string{
			"plain": "plain", "system:My Role (ä)": "system:My Role (ä)", "A&B?c=d#e": "A&B?c=d#e", "a:b..c": "a:b..c", "50%": "50%", "a%20b": "a%20b", "+;=,@$": "+;=,@$",
			// Such a name is for the server to refuse; it must not lead to another object.
			"web/status": "web%2Fstatus",
		} {
			if _, err := target.look(t.Context(), res, "team", name); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want := base + "/apis/" + groupRBAC + "/v1/namespaces/team/roles/" + comes; got.Path != want || got.RawQuery != "" {
				t.Errorf("under %q %q comes as %q (query %q)", under, name, got.Path, got.RawQuery)
			}
		}
	}
}
