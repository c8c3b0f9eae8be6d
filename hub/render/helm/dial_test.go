// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestNobodyIsDialedForAChart names a listener wherever a chart can name a place.
func TestNobodyIsDialedForAChart(t *testing.T) {
	var dialed atomic.Int32
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(net.Conn, http.ConnState) { dialed.Add(1) }
	server.Start()
	defer server.Close()
	host := server.Listener.Addr().String()
	meta := "{apiVersion: v2, name: app, version: 1.0.0, icon: 'http://%[1]s/i', sources: ['http://%[1]s'], dependencies: [{name: x, version: 1.0.0, repository: '%[2]s://%[1]s'}]}"
	trees := map[string]texts{
		"a schema":         {"app/Chart.yaml": chartYAML, "app/values.schema.json": `{"$ref":"http://` + host + `/s.json"}`},
		"a schema's draft": {"app/Chart.yaml": chartYAML, "app/values.schema.json": `{"$schema":"http://` + host + `/s.json"}`},
		"an import of one": {"app/Chart.yaml": chartYAML, "app/values.schema.json": `{"$id":"http://` + host + `/","properties":{"a":{"$ref":"s.json#/x"}}}`},
		"a host name":      chart(`x: "{{ getHostByName "`+host+`" }}"`, ""),
		"a lookup":         chart(`x: {{ lookup "v1" "Secret" "`+host+`" "x" | toJson }}`, ""),
	}
	for _, scheme := range []string{"http", "https", "oci", "file", "git+ssh", "alias"} {
		trees["a dependency by "+scheme] = texts{"app/Chart.yaml": fmt.Sprintf(meta, host, scheme)}
	}
	for name, tree := range trees {
		t.Run(name, func(t *testing.T) {
			_, err := try(tree.tree())
			t.Logf("it says: %v", err)
			if dialed.Load() != 0 {
				t.Errorf("somebody was dialed: %v", err)
			}
		})
	}
	for _, file := range []string{"http://" + host + "/values.yaml", "file:///etc/passwd", "-"} {
		if _, err := try(chart("x", "").tree(), withFiles(file)); err == nil || dialed.Load() != 0 {
			t.Errorf("values file %s: %v, %d connections", file, err, dialed.Load())
		}
	}
}
