// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kumodo.io/convoy/hub/source"
)

func TestPartsEndInTheOppositeOrderOfTheirStart(t *testing.T) {
	l := newLifecycle(t.Context())
	var ended []string
	for _, name := range []string{"etcd", "apiserver", "report", "gateway"} {
		l.start(name, func(ctx context.Context) error {
			<-ctx.Done()
			ended = append(ended, name) // one after another, or the race detector speaks
			return ctx.Err()
		})
	}
	if err := l.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if diff := cmp.Diff([]string{"gateway", "report", "apiserver", "etcd"}, ended); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestAPartThatFailsEndsAll(t *testing.T) {
	broken := errors.New("broken")
	l := newLifecycle(t.Context())
	l.start("etcd", func(ctx context.Context) error { <-ctx.Done(); return nil })
	l.start("apiserver", func(context.Context) error { return broken })
	never := make(chan struct{})
	if err := l.wait(t.Context(), "something", never); !errors.Is(err, broken) {
		t.Errorf("wait gave %v", err)
	}
	if err := l.stop(); !errors.Is(err, broken) || !strings.Contains(err.Error(), "apiserver") {
		t.Errorf("stop gave %v, want the error and who had it", err)
	}
}

func TestAPartThatEndsWithoutBeingAskedHasFailed(t *testing.T) {
	l := newLifecycle(t.Context())
	l.start("gateway", func(context.Context) error { return nil })
	<-l.over
	if err := l.stop(); !errors.Is(err, errEnded) {
		t.Errorf("stop gave %v", err)
	}
}

func TestFilesStandInForSecretsAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("secrets/team/git/token", "t")
	write("secrets/team/git/ca.crt", "c")
	write("outside", "x")
	if err := os.Symlink(filepath.Join(dir, "outside"), filepath.Join(dir, "secrets/team/git/link")); err != nil {
		t.Fatal(err)
	}
	f := fileSecrets{filepath.Join(dir, "secrets")}
	got, err := f.GetSecret(t.Context(), "team", "git")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"token": []byte("t"), "ca.crt": []byte("c")}, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	for _, name := range [][2]string{{"team", "none"}, {"none", "git"}, {"team", "../team/git"}, {"..", "outside"}, {"team", ""}} {
		if _, err := f.GetSecret(t.Context(), name[0], name[1]); !errors.Is(err, source.ErrSecretNotFound) {
			t.Errorf("%v gave %v, want ErrSecretNotFound", name, err)
		}
	}
	if _, err := (noSecrets{}).GetSecret(t.Context(), "team", "git"); !errors.Is(err, source.ErrNoHostCluster) {
		t.Errorf("without a host: %v", err)
	}
}

func TestTheHostsServicesAreARangeThatSourcesAreNotFetchedFrom(t *testing.T) {
	for address, want := range map[string][]netip.Prefix{
		"10.96.0.1":   {netip.MustParsePrefix("10.96.0.0/16")},
		"fd00:10::1":  {netip.MustParsePrefix("fd00:10::/112")},
		"":            nil,
		"kubernetes.": nil,
	} {
		if diff := cmp.Diff(want, serviceRange(address), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("%q (-want +got):\n%s", address, diff)
		}
	}
}

func TestTheGatewaysCertificateIsForWhatAgentsDial(t *testing.T) {
	for _, test := range []struct{ addr, url, want, not string }{
		{":8443", "wss://convoy.example:443", "convoy.example", ""},
		{"10.0.0.7:8443", "wss://10.0.0.9", "10.0.0.9", ""},
		{"10.0.0.7:8443", "wss://x", "10.0.0.7", ""},
		{"0.0.0.0:8443", "wss://x", "localhost", "0.0.0.0"},
	} {
		names := strings.Join(gatewayNames(test.addr, test.url), " ")
		if !strings.Contains(names, test.want) || test.not != "" && strings.Contains(names, test.not) {
			t.Errorf("%s and %s give %s", test.addr, test.url, names)
		}
	}
}

func TestTheHubIsReadyOnlyWhileAgentsCanCome(t *testing.T) {
	var r readiness
	if err := r.Check(nil); !errors.Is(err, errStarting) {
		t.Errorf("at the start: %v", err)
	}
	r.serving.Store(true)
	if err := r.Check(nil); err != nil {
		t.Errorf("serving: %v", err)
	}
	r.stopping.Store(true)
	if err := r.Check(nil); !errors.Is(err, errStopping) {
		t.Errorf("at the end: %v", err)
	}
}
