// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kumodo.io/convoy/hub/apiserver"
)

func parse(t *testing.T, args ...string) Completed {
	t.Helper()
	o, err := Parse(args, &bytes.Buffer{})
	if err != nil {
		t.Fatalf("parse %v: %v", args, err)
	}
	return o.Complete()
}

func TestWhatTheHubRefusesToStartWith(t *testing.T) {
	good := []string{"--embedded-etcd", "--data-dir=/d"}
	for name, c := range map[string]struct {
		args []string
		want error
		text string // part of the message
	}{
		"neither etcd flag is given, so both are named":      {args: []string{"--data-dir=/d"}, want: ErrNoEtcd, text: "--etcd-servers, or --embedded-etcd with --data-dir"},
		"both etcd flags are given":                          {args: []string{"--embedded-etcd", "--data-dir=/d", "--etcd-servers=http://e"}, want: ErrTwoEtcds},
		"an embedded etcd has no directory":                  {args: []string{"--embedded-etcd"}, want: ErrNoDataDir},
		"a standalone hub has no directory":                  {args: []string{"--standalone"}, want: ErrNoDataDir},
		"encryption would replace compression":               {args: append(good, "--encryption-provider-config=/x"), want: apiserver.ErrEncryptionConfig},
		"another etcd prefix":                                {args: append(good, "--etcd-prefix=/other"), want: apiserver.ErrEtcdPrefix},
		"roles apart":                                        {args: append(good, "--roles=gateway"), want: ErrRoles},
		"no shards":                                          {args: append(good, "--shards=0"), want: apiserver.ErrShards},
		"stand-in Secrets beside a host":                     {args: append(good, "--standalone-secrets-dir=/s"), want: ErrStandaloneOnly},
		"a kubeconfig without a host":                        {args: []string{"--standalone", "--data-dir=/d", "--kubeconfig=/k"}, want: ErrStandalone},
		"a client CA of its own in standalone mode":          {args: []string{"--standalone", "--data-dir=/d", "--client-ca-file=/k"}, want: apiserver.ErrStandaloneFlag},
		"a range for clusters that is none":                  {args: append(good, "--cluster-allow-cidr=localhost"), want: ErrInvalid, text: "--cluster-allow-cidr"},
		"an address range that is none":                      {args: append(good, "--source-allow-cidr=10.0.0.1"), want: ErrInvalid, text: "--source-allow-cidr"},
		"a gateway URL that agents cannot dial":              {args: append(good, "--gateway-url=https://convoy.example"), want: ErrInvalid, text: "--gateway-url"},
		"a gateway address without a port":                   {args: append(good, "--gateway-addr=here"), want: ErrInvalid, text: "--gateway-addr"},
		"a webhooks' address without a port":                 {args: append(good, "--webhook-addr=here"), want: ErrInvalid, text: "--webhook-addr"},
		"an observer's address without a port":               {args: append(good, "--serve-addr=here"), want: ErrInvalid, text: "--serve-addr"},
		"an observer that would be asked over TLS":           {args: append(good, "--observer-url=https://observer:8080"), want: ErrInvalid, text: "--observer-url"},
		"renders at what is no registry":                     {args: append(good, "--render-store-url=https://host/x"), want: ErrInvalid, text: "oci://HOST/PATH"},
		"renders at a registry without a path":               {args: append(good, "--render-store-url=oci://host"), want: ErrInvalid, text: "oci://HOST/PATH"},
		"credentials for no registry":                        {args: append(good, "--render-store-docker-config=/d"), want: ErrInvalid, text: "--render-store-url"},
		"an observer below a path":                           {args: append(good, "--observer-url=http://observer:8080/x"), want: ErrInvalid, text: "--observer-url"},
		"a resync that would keep the hub busy with nothing": {args: append(good, "--resync=1s"), want: ErrInvalid, text: "--resync"},
	} {
		t.Run(name, func(t *testing.T) {
			err := errors.Join(parse(t, c.args...).Validate()...)
			if !errors.Is(err, c.want) {
				t.Fatalf("validate said %v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("the message %q does not name %q", err, c.text)
			}
		})
	}
}

func TestAStandaloneHubIsOnLoopbackAndKeepsAllInItsDataDirectory(t *testing.T) {
	c := parse(t, "--standalone", "--data-dir=/d")
	if errs := c.Validate(); len(errs) > 0 {
		t.Fatalf("refused: %v", errs)
	}
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.API.SecureServing.BindAddress.String(); got != "127.0.0.1" {
		t.Errorf("listens on %s, want loopback", got)
	}
	if config.Host != nil || !config.Standalone {
		t.Error("a standalone hub has no host cluster")
	}
	for what, got := range map[string]struct{ got, want string }{
		"etcd":       {config.EtcdDir, "/d/etcd"},
		"keys":       {config.KeyDir, "/d/keys"},
		"renders":    {config.StoreDir, "/d/renders"},
		"kubeconfig": {config.AdminKubeconfig, "/d/admin.kubeconfig"},
		"gateway":    {config.Gateway.URL, "wss://127.0.0.1:8443"},
	} {
		if got.got != got.want {
			t.Errorf("%s: %s, want %s", what, got.got, got.want)
		}
	}
}

func TestAHubBesideAHostAsksItForEverythingThroughOneKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://h"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	c := parse(t, "--etcd-servers=http://e:2379", "--data-dir=/d", "--kubeconfig="+path)
	if errs := c.Validate(); len(errs) > 0 {
		t.Fatalf("refused: %v", errs)
	}
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	if config.Host == nil || config.Host.Host != "https://h" {
		t.Errorf("host cluster %v, want https://h", config.Host)
	}
	if config.EtcdDir != "" || config.KeyDir != "" || config.AdminKubeconfig != "" {
		t.Error("nothing of its own is kept in files beside a host and an etcd")
	}
	if got := config.API.Authentication.RemoteKubeConfigFile; got != path {
		t.Errorf("authentication asks through %q, want %q", got, path)
	}
	if got := config.API.SecureServing.BindAddress.String(); got != "0.0.0.0" {
		t.Errorf("listens on %s, want all addresses", got)
	}
	if got := config.API.SecureServing.BindPort; got != 10250 {
		t.Errorf("listens on port %d, want 10250", got)
	}
}

func TestHelpHasNamedSections(t *testing.T) {
	var out bytes.Buffer
	_, err := Parse([]string{"--help"}, &out)
	if !errors.Is(err, pflag.ErrHelp) {
		t.Fatalf("got %v, want %v", err, pflag.ErrHelp)
	}
	for _, section := range []string{"Hub flags:", "Standalone flags:", "Embedded etcd flags:", "Gateway flags:", "Source flags:", "Etcd flags:", "Api serving flags:", "Authentication flags:", "Authorization flags:", "Admission flags:"} {
		if !strings.Contains(out.String(), section) {
			t.Errorf("help has no section %q", section)
		}
	}
	for _, flag := range []string{"--gateway-url", "--source-allow-cidr", "--cluster-allow-cidr", "--shards", "--etcd-servers", "--secure-port", "--standalone-secrets-dir"} {
		if !strings.Contains(out.String(), flag) {
			t.Errorf("help does not name %s", flag)
		}
	}
}
