// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const aggregated = `
apiVersion: v1
kind: Service
metadata: {name: extension, namespace: kube-public}
spec:
  selector: {app: extension}
  ports: [{port: 443, targetPort: 10250}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.extension.example.com}
spec:
  group: extension.example.com
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  service: {namespace: kube-public, name: extension, port: 443}
  caBundle: %s
`

// testAggregation stands in for a hub: a TLS server on loopback whose clients
// must have a certificate of the plane's front proxy authority.
func testAggregation(ctx context.Context, t *testing.T, p *Plane) {
	ca, err := newCA("extension-ca")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.server([]string{"extension.kube-public.svc"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	serving, err := tls.X509KeyPair(cert.certPEM, cert.keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	frontProxy, err := os.ReadFile(filepath.Join(p.Dir(), "pki", "front-proxy-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(frontProxy)

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Discovery asks before the user does, without a user of ours.
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"extension.example.com/v1","resources":[],"path":%q,"user":%q,"group":%q,"proxy":%q}`,
			r.URL.Path, r.Header.Get("X-Remote-User"), r.Header.Get("X-Remote-Group"), r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{serving}, ClientCAs: clients,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}
	server.StartTLS()
	defer server.Close()

	manifest := fmt.Sprintf(aggregated, base64.StdEncoding.EncodeToString(ca.certPEM))
	if _, err := p.KubectlInput(ctx, manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		// An APIService without a server keeps namespaces from ending.
		if _, err := p.Kubectl(context.WithoutCancel(ctx), "delete", "apiservice", "v1.extension.example.com"); err != nil {
			t.Error(err)
		}
	}()
	if err := p.RouteService(ctx, "kube-public", "extension", server.Listener.Addr().(*net.TCPAddr).Port); err != nil {
		t.Fatal(err)
	}
	var out string
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		out, err = p.Kubectl(ctx, "get", "--raw", "/apis/extension.example.com/v1/things")
		return err == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"path":"/apis/extension.example.com/v1/things"`, `"user":"` + AdminUser + `"`, `"group":"` + AdminGroup + `"`, `"proxy":"front-proxy-client"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("answer %s, want %s in it", out, want)
		}
	}
}
