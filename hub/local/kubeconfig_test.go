// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// kubeconfig makes one of the lines of a cluster and of a user.
func kubeconfig(cluster, user string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: prod, user: hub}}]\n" +
		"clusters: [{name: prod, cluster: {" + cluster + "}}]\nusers: [{name: hub, user: {" + user + "}}]\n"
}

const (
	goodServer = "server: 'https://api.example:6443'"
	goodUser   = "token: t0ken"
)

func TestAKubeconfigHasToStandAlone(t *testing.T) {
	t.Parallel()
	data := base64.StdEncoding.EncodeToString([]byte("x"))
	tests := map[string]struct {
		raw    string
		reason string
		says   string
	}{
		"no YAML at all": {"{{{{", v1alpha1.ReasonProbeFailed, "cannot be read"},
		"another document": {
			"apiVersion: v1\nkind: ConfigMap\n", v1alpha1.ReasonProbeFailed, "cannot be read",
		},
		"empty":              {"apiVersion: v1\nkind: Config\n", v1alpha1.ReasonProbeFailed, "no current-context"},
		"a context too many": {strings.Replace(kubeconfig(goodServer, goodUser), "current-context: c", "current-context: d", 1), v1alpha1.ReasonProbeFailed, `no context "d"`},
		"a cluster that is not there": {
			strings.Replace(kubeconfig(goodServer, goodUser), "cluster: prod,", "cluster: test,", 1), v1alpha1.ReasonProbeFailed, `no cluster "test"`,
		},
		"a user that is not there": {
			strings.Replace(kubeconfig(goodServer, goodUser), "user: hub}", "user: me}", 1), v1alpha1.ReasonProbeFailed, `no user "me"`,
		},
		"exec": {
			kubeconfig(goodServer, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}"),
			v1alpha1.ReasonUnsupported, "users[hub].user.exec",
		},
		"auth-provider":         {kubeconfig(goodServer, "auth-provider: {name: gcp}"), v1alpha1.ReasonUnsupported, "users[hub].user.auth-provider"},
		"certificate-authority": {kubeconfig(goodServer+", certificate-authority: /etc/passwd", goodUser), v1alpha1.ReasonUnsupported, "clusters[prod].cluster.certificate-authority"},
		"client-certificate":    {kubeconfig(goodServer, "client-certificate: /a, client-key-data: "+data), v1alpha1.ReasonUnsupported, "users[hub].user.client-certificate"},
		"client-key":            {kubeconfig(goodServer, "client-certificate-data: "+data+", client-key: /a"), v1alpha1.ReasonUnsupported, "users[hub].user.client-key"},
		"tokenFile":             {kubeconfig(goodServer, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), v1alpha1.ReasonUnsupported, "users[hub].user.tokenFile"},
		"a token beside a file": {kubeconfig(goodServer, "token: a, tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), v1alpha1.ReasonUnsupported, "users[hub].user.tokenFile"},
		"insecure": {
			kubeconfig(goodServer+", insecure-skip-tls-verify: true", goodUser), v1alpha1.ReasonUnsupported, "clusters[prod].cluster.insecure-skip-tls-verify",
		},
		"plain http":            {kubeconfig("server: 'http://api.example'", goodUser), v1alpha1.ReasonUnsupported, "has to be https"},
		"a socket":              {kubeconfig("server: 'unix:///var/run/api.sock'", goodUser), v1alpha1.ReasonProbeFailed, "is no URL"},
		"a socket with a host":  {kubeconfig("server: 'unix://x/var/run/api.sock'", goodUser), v1alpha1.ReasonUnsupported, "has to be https"},
		"no server":             {kubeconfig("tls-server-name: x", goodUser), v1alpha1.ReasonProbeFailed, "server is empty"},
		"a password in the URL": {kubeconfig("server: 'https://me:secret@api.example'", goodUser), v1alpha1.ReasonUnsupported, "may hold scheme, host, port and path only"},
		"a proxy over a socket": {kubeconfig(goodServer+", proxy-url: 'unix:///run/proxy.sock'", goodUser), v1alpha1.ReasonUnsupported, "clusters[prod].cluster.proxy-url"},
		"a proxy of a file":     {kubeconfig(goodServer+", proxy-url: 'file:///etc/passwd'", goodUser), v1alpha1.ReasonUnsupported, "clusters[prod].cluster.proxy-url"},
		"no credentials":        {kubeconfig(goodServer, "as: admin"), v1alpha1.ReasonProbeFailed, "has no credentials"},
		"half a certificate":    {kubeconfig(goodServer, "client-certificate-data: "+data), v1alpha1.ReasonProbeFailed, "go together"},
		"two credentials":       {kubeconfig(goodServer, "token: a, username: b, password: c"), v1alpha1.ReasonProbeFailed, "only one can be used"},
		"far too long":          {kubeconfig(goodServer, goodUser) + strings.Repeat("#", maxKubeconfig), v1alpha1.ReasonProbeFailed, "at most"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := fromKubeconfig([]byte(test.raw))
			var f *fault
			if !errors.As(err, &f) {
				t.Fatalf("taken, or failed with %v", err)
			}
			if f.reason != test.reason || !strings.Contains(f.message, test.says) || !f.drop {
				t.Errorf("%s %q drop=%v; want %s and %q", f.reason, f.message, f.drop, test.reason, test.says)
			}
			if strings.Contains(f.message, "secret") {
				t.Errorf("the message tells a secret: %q", f.message)
			}
		})
	}
}

func TestTheCurrentContextOfAKubeconfigDecides(t *testing.T) {
	t.Parallel()
	raw := kubeconfig(goodServer+", tls-server-name: inner, proxy-url: 'socks5://proxy.example:1080'", "token: t0ken, as: deployer, as-groups: [ops]")
	// What no context leads to is not looked at.
	raw = strings.Replace(raw, "users: [", "users: [{name: other, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}}}, ", 1)
	config, err := fromKubeconfig([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://api.example:6443" || config.BearerToken != "t0ken" || config.ServerName != "inner" ||
		config.Impersonate.UserName != "deployer" || len(config.Impersonate.Groups) != 1 {
		t.Errorf("got %+v", config)
	}
	proxy, err := config.Proxy(nil)
	if err != nil || proxy.String() != "socks5://proxy.example:1080" {
		t.Errorf("proxy %v, %v", proxy, err)
	}
}

func TestTheEnvironmentOfTheHubGivesNoProxyToClusters(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example:3128")
	config, err := fromKubeconfig([]byte(kubeconfig(goodServer, goodUser)))
	if err != nil {
		t.Fatal(err)
	}
	if proxy, err := config.Proxy(nil); proxy != nil || err != nil {
		t.Errorf("proxy %v, %v", proxy, err)
	}
}
