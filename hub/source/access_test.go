// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/source/gittest"
)

func TestAPrivateRepositoryOverHTTPS(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	commit := repo.CommitFiles("one", map[string]string{"app/cm.yaml": "a: b\n", "README": "hello\n"})
	server := gittest.NewHTTPS(t, root)
	w := newWorld(t)
	w.secrets.set("ca", "ca.crt", string(server.CA))
	w.secrets.set("basic", "username", "me", "password", "hunter2\n")
	w.secrets.set("bearer", "bearerToken", "hunter2")
	w.secrets.set("token", "token", "hunter2")
	w.secrets.set("wrong", "username", "me", "password", "expired-hunter3")
	w.secrets.set("empty", "other", "x")
	tests := []struct {
		name         string
		guard        func()
		secret, ca   string
		reason, text string
	}{
		{"without the authority", func() {}, "", "", v1alpha1.ReasonCertificateNotTrusted, "authority that is not trusted"},
		{"open to all", func() { server.Before(nil) }, "", "ca", "", ""},
		{"user name and password", func() { server.RequireBasic("me", "hunter2") }, "basic", "ca", "", ""},
		{"a bearer token", func() { server.RequireBearer("hunter2") }, "bearer", "ca", "", ""},
		{"a token in place of a password", func() { server.RequireBasic("git", "hunter2") }, "token", "ca", "", ""},
		{"an expired password", func() { server.RequireBasic("me", "hunter2") }, "wrong", "ca", v1alpha1.ReasonAuthFailed, "does not accept the credentials (401)"},
		{"no credentials", func() { server.RequireBasic("me", "hunter2") }, "", "ca", v1alpha1.ReasonAuthFailed, "there is no secretRef"},
		{"a Secret without credentials", func() {}, "empty", "ca", v1alpha1.ReasonSecretMissing, "has none of the keys username"},
		{"a Secret that is not there", func() {}, "gone", "ca", v1alpha1.ReasonSecretMissing, "Secret gone"},
		{"a CA Secret that has none", func() {}, "basic", "empty", v1alpha1.ReasonSecretMissing, "Secret empty has no key ca.crt"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.guard()
			object := with(gitRepository(server.RepoURL(repo)), test.secret, test.ca)
			object.UID = types.UID(test.name) // nothing comes from the cache of another
			revision, files, err := w.get(t, object, "", "app")
			if test.reason != "" {
				wantFailure(t, err, test.reason, test.text)
				for _, secret := range []string{"hunter2", "hunter3"} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("the error has the credentials: %v", err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if revision.Display != "main@sha1:"+commit || revision.Key != commit {
				t.Errorf("revision %+v", revision)
			}
			if diff := cmp.Diff(map[string]string{"app/cm.yaml": "a: b\n"}, files); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPrivateRepositoryOverSSH(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	commit := repo.CommitFiles("one", map[string]string{"app/cm.yaml": "a: b\n"})
	server := gittest.NewSSH(t, root)
	other := gittest.NewSSH(t, root)
	w := newWorld(t)
	w.secrets.set("key", "identity", string(server.Identity), "known_hosts", string(server.KnownHosts))
	w.secrets.set("password", "username", "git", "password", server.Password, "known_hosts", string(server.KnownHosts))
	w.secrets.set("stranger", "identity", string(gittest.NewIdentity(t)), "known_hosts", string(server.KnownHosts))
	w.secrets.set("replaced", "identity", string(server.Identity), "known_hosts", strings.Replace(string(other.KnownHosts), strings.TrimPrefix(other.URL, "ssh://git@127.0.0.1"), strings.TrimPrefix(server.URL, "ssh://git@127.0.0.1"), 1))
	w.secrets.set("nohosts", "identity", string(server.Identity))
	w.secrets.set("otherhosts", "identity", string(server.Identity), "known_hosts", "example.test ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGvC0nQbJ5cqjwGzHYxDV5bzhDDkcF6mZqwVt6dHzWn0\n")
	w.secrets.set("nokey", "identity", "not a key", "known_hosts", string(server.KnownHosts))
	tests := []struct{ secret, reason, text string }{
		{"key", "", ""},
		{"password", "", ""},
		{"stranger", v1alpha1.ReasonAuthFailed, "does not accept the key"},
		{"replaced", v1alpha1.ReasonHostKeyNotTrusted, "not the one in known_hosts"},
		{"nohosts", v1alpha1.ReasonHostKeyNotTrusted, "ssh needs known_hosts"},
		{"otherhosts", v1alpha1.ReasonHostKeyNotTrusted, "has no key of 127.0.0.1"},
		{"nokey", v1alpha1.ReasonAuthFailed, "no private key"},
		{"", v1alpha1.ReasonAuthFailed, "ssh needs a Secret"},
	}
	for _, test := range tests {
		t.Run("Secret "+test.secret, func(t *testing.T) {
			object := with(gitRepository(server.RepoURL(repo)), test.secret, "")
			object.UID = types.UID(test.secret)
			revision, files, err := w.get(t, object, "", "app")
			if test.reason != "" {
				wantFailure(t, err, test.reason, test.text)
				return
			}
			if err != nil || revision.Key != commit || files["app/cm.yaml"] != "a: b\n" {
				t.Errorf("%+v, %v, %v", revision, files, err)
			}
		})
	}
	t.Run("a repository that is not there", func(t *testing.T) {
		_, _, err := w.get(t, with(gitRepository(server.URL+"/none.git"), "key", ""), "", "app")
		wantFailure(t, err, v1alpha1.ReasonAuthFailed, "does not serve the repository")
	})
}

func TestSecretsAreReadOnlyWhenTheirUseWasChecked(t *testing.T) {
	w := newWorld(t)
	w.secrets.set("key", "username", "me", "password", "x")
	repo := with(gitRepository("https://127.0.0.1:1/x.git"), "key", "")
	repo.Status.CheckedSecrets = nil
	_, err := w.Resolve(t.Context(), source.Want{Object: repo}, 0)
	wantFailure(t, err, v1alpha1.ReasonNotChecked, "Secret key")
	if !errors.Is(err, source.ErrNotChecked) || source.ReleaseReason(err) != "SourceNotChecked" {
		t.Errorf("%v, reason of a Release %s", err, source.ReleaseReason(err))
	}
	w.secrets.err = source.ErrNoHostCluster
	_, err = w.Resolve(t.Context(), source.Want{Object: with(repo, "key", "")}, 0)
	wantFailure(t, err, v1alpha1.ReasonNoHostCluster, "no host cluster")
	if source.ReleaseReason(err) != "NoHostCluster" {
		t.Errorf("reason of a Release %s", source.ReleaseReason(err))
	}
}

func TestURLsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	for url, text := range map[string]string{
		"file:///etc":                     "only https and ssh",
		"/srv/git/app.git":                "no scheme",
		"git://127.0.0.1/app.git":         "only https and ssh",
		"ext::sh -c touch% /tmp/x":        "only https and ssh",
		"git@github.com:me/app.git":       "cannot be read",
		"https://me:hunter2@h.test/x.git": "credentials belong in a Secret",
		"ssh://me:hunter2@h.test/x.git":   "credentials belong in a Secret",
		"https:///x.git":                  "needs a host",
		"ssh://-oProxyCommand=x/x.git":    "needs a host",
		"https://h.test/x.git?a=b":        "needs a host and a path, and nothing else",
	} {
		_, err := w.Resolve(t.Context(), source.Want{Object: gitRepository(url)}, 0)
		wantFailure(t, err, v1alpha1.ReasonInvalid, text)
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

func TestAddressesOfTheHubItselfAreDenied(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	repo.CommitFiles("one", map[string]string{"a": "b"})
	tls, plain, sshd := gittest.NewHTTPS(t, root), gittest.NewHTTP(t, root), gittest.NewSSH(t, root)
	w := newWorld(t, func(o *source.Options) { o.Allow = nil; o.Deny = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")} })
	w.secrets.set("key", "identity", string(sshd.Identity), "known_hosts", string(sshd.KnownHosts))
	for _, url := range []string{tls.RepoURL(repo), plain.RepoURL(repo), "https://localhost:1/x.git", "https://169.254.169.254/x.git", "https://[::1]/x.git", "https://10.96.0.1/x.git", "https://0.0.0.0/x.git", "http://192.168.1.1/x.git"} {
		_, err := w.Resolve(t.Context(), source.Want{Object: gitRepository(url)}, 0)
		wantFailure(t, err, v1alpha1.ReasonDenied, "--source-allow-cidr")
	}
	_, err := w.Resolve(t.Context(), source.Want{Object: with(gitRepository(sshd.RepoURL(repo)), "key", "")}, 0)
	wantFailure(t, err, v1alpha1.ReasonDenied, "--source-allow-cidr")
	if n := len(tls.Requests()) + len(plain.Requests()); n != 0 {
		t.Errorf("%d requests came through", n)
	}
	// The worker that fetches checks by itself: a commit needs no look-up before.
	object := gitRepository(tls.RepoURL(repo))
	object.Spec.Ref.Commit = strings.Repeat("a", 40)
	_, _, err = w.get(t, object, "", "")
	wantFailure(t, err, v1alpha1.ReasonDenied, "--source-allow-cidr")

	open := newWorld(t)
	if _, files, err := open.get(t, gitRepository(plain.RepoURL(repo)), "", ""); err != nil || files["a"] != "b" {
		t.Errorf("http to a range that was opened: %v, %v", files, err)
	}
}

func TestGO04CredentialsDoNotFollowARedirectToAnotherHost(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	repo.CommitFiles("one", map[string]string{"a": "b"})
	target, front := gittest.NewHTTP(t, root), gittest.NewHTTP(t, root)
	w := newWorld(t)
	w.secrets.set("key", "username", "me", "password", "hunter2")
	object := with(gitRepository(front.RepoURL(repo)), "key", "")

	front.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		http.Redirect(rw, r, target.URL+r.URL.RequestURI(), http.StatusMovedPermanently)
		return false
	})
	if _, files, err := w.get(t, object, "", ""); err != nil || files["a"] != "b" {
		t.Errorf("to an open repository on another host: %v, %v", files, err)
	}
	for _, request := range target.Requests() {
		if request.Authorization != "" {
			t.Errorf("the other host got %q for %s", request.Authorization, request.Path)
		}
	}
	if front.Requests()[0].Authorization == "" {
		t.Error("the host that was named got no credentials")
	}
	if target.Uploads() == 0 || front.Uploads() != 0 {
		t.Errorf("packs: %d from the target, %d from the front", target.Uploads(), front.Uploads())
	}
	target.RequireBasic("me", "hunter2")
	_, err := w.Resolve(t.Context(), source.Want{Object: object}, 0)
	wantFailure(t, err, v1alpha1.ReasonAuthFailed, "none are sent to another host")

	// On the same host they do: a repository was renamed.
	front.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		if user, _, _ := r.BasicAuth(); user != "me" {
			rw.WriteHeader(http.StatusUnauthorized)
			return false
		}
		if path, ok := strings.CutPrefix(r.URL.Path, "/old.git"); ok {
			http.Redirect(rw, r, "/app.git"+path+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
			return false
		}
		return true
	})
	if _, files, err := w.get(t, with(gitRepository(front.URL+"/old.git"), "key", ""), "", ""); err != nil || files["a"] != "b" {
		t.Errorf("renamed: %v, %v", files, err)
	}
	secure := gittest.NewHTTPS(t, root)
	secure.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		http.Redirect(rw, r, front.URL+r.URL.RequestURI(), http.StatusFound)
		return false
	})
	w.secrets.set("ca", "ca.crt", string(secure.CA))
	_, err = w.Resolve(t.Context(), source.Want{Object: with(gitRepository(secure.RepoURL(repo)), "key", "ca")}, 0)
	wantFailure(t, err, v1alpha1.ReasonUnreachable, "a redirect away from https")
	front.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		http.Redirect(rw, r, r.URL.RequestURI(), http.StatusFound)
		return false
	})
	_, err = w.Resolve(t.Context(), source.Want{Object: object}, 0)
	wantFailure(t, err, v1alpha1.ReasonUnreachable, "too many redirects")
}

func TestGO04AClientCertificateIsShownToItsServerAndToNoOther(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	repo.CommitFiles("one", map[string]string{"a": "b"})
	server, other := gittest.NewHTTPS(t, root), gittest.NewHTTPS(t, root)
	server.RequireCertificate("hub")
	other.RequireCertificate("hub")
	certificate, key := gittest.ClientCertificate(t, "hub")
	w := newWorld(t)
	w.secrets.set("ca", "ca.crt", string(server.CA)+string(other.CA))
	w.secrets.set("cert", "tls.crt", string(certificate), "tls.key", string(key))
	w.secrets.set("half", "tls.crt", string(certificate))
	w.secrets.set("wrong", "tls.crt", string(certificate), "tls.key", "hunter2")
	if _, files, err := w.get(t, with(gitRepository(server.RepoURL(repo)), "cert", "ca"), "", ""); err != nil || files["a"] != "b" {
		t.Errorf("with the certificate: %v, %v", files, err)
	}
	_, _, err := w.get(t, with(gitRepository(server.RepoURL(repo)), "", "ca"), "", "")
	wantFailure(t, err, v1alpha1.ReasonAuthFailed, "wants credentials (401)")
	_, _, err = w.get(t, with(gitRepository(server.RepoURL(repo)), "half", "ca"), "", "")
	wantFailure(t, err, v1alpha1.ReasonSecretMissing, "one of the keys tls.crt and tls.key and not the other")
	_, _, err = w.get(t, with(gitRepository(server.RepoURL(repo)), "wrong", "ca"), "", "")
	wantFailure(t, err, v1alpha1.ReasonInvalid, "cannot be used together")

	// A server that sends us on does not get it shown elsewhere.
	server.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		http.Redirect(rw, r, other.URL+r.URL.RequestURI(), http.StatusFound)
		return false
	})
	_, _, err = w.get(t, with(gitRepository(server.RepoURL(repo)), "cert", "ca"), "", "")
	wantFailure(t, err, v1alpha1.ReasonAuthFailed, "none are sent to another host")
}

func TestGO04EachTroubleHasItsReasonAndTheRemoteIsLeftAlone(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	commit := repo.CommitFiles("one", map[string]string{"a": "b"})
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	w.secrets.set("key", "username", "me", "password", "good")
	object := with(gitRepository(server.RepoURL(repo)), "key", "")
	status := func(code int, header ...string) {
		server.Before(func(rw http.ResponseWriter, _ *http.Request) bool {
			if len(header) == 2 {
				rw.Header().Set(header[0], header[1])
			}
			rw.WriteHeader(code)
			return false
		})
	}
	resolve := func(maxAge time.Duration) error {
		_, err := w.Resolve(t.Context(), source.Want{Object: object}, maxAge)
		return err
	}

	status(http.StatusTooManyRequests, "Retry-After", "90")
	wantFailure(t, resolve(time.Minute), v1alpha1.ReasonRateLimited, "for 1m30s (429)")
	asked := len(server.Requests())
	w.clock.Step(80 * time.Second)
	for _, maxAge := range []time.Duration{time.Minute, 0} {
		wantFailure(t, resolve(maxAge), v1alpha1.ReasonRateLimited, "429")
	}
	if n := len(server.Requests()) - asked; n != 0 {
		t.Errorf("%d requests within the 90 s that the server asked for", n)
	}
	w.clock.Step(11 * time.Second)

	// Other failures: pauses grow, up to the source's interval.
	status(http.StatusInternalServerError)
	var pauses []time.Duration
	for len(pauses) < 6 {
		asked := len(server.Requests())
		wantFailure(t, resolve(time.Minute), v1alpha1.ReasonUnreachable, "status 500")
		if len(server.Requests()) == asked {
			t.Fatal("it was not asked again after the pause")
		}
		pause := time.Duration(0)
		for asked = len(server.Requests()); len(server.Requests()) == asked; pause += time.Second {
			w.clock.Step(time.Second)
			if err := resolve(time.Minute); err == nil {
				t.Fatal("no error")
			}
		}
		pauses = append(pauses, pause)
		w.clock.Step(2 * time.Minute)
	}
	for _, pause := range pauses {
		if pause > time.Minute+time.Second {
			t.Errorf("pauses %v", pauses)
		}
	}
	server.RequireBasic("me", "new")
	w.clock.Step(2 * time.Minute)
	wantFailure(t, resolve(time.Minute), v1alpha1.ReasonAuthFailed, "does not accept the credentials")
	// A new Secret is picked up within one interval, without being told.
	w.secrets.set("key", "username", "me", "password", "new")
	w.clock.Step(time.Minute)
	revision, err := w.Resolve(t.Context(), source.Want{Object: object}, time.Minute)
	if err != nil || revision.Key != commit {
		t.Errorf("with the new Secret: %+v, %v", revision, err)
	}
	_, err = w.Resolve(t.Context(), source.Want{Object: gitRepository("https://no-such-host.invalid/x.git")}, 0)
	wantFailure(t, err, v1alpha1.ReasonUnreachable, "no-such-host.invalid: the name does not resolve")
	server.Before(func(rw http.ResponseWriter, _ *http.Request) bool {
		_, err := io.WriteString(rw, "<html>a page</html>")
		if err != nil {
			t.Error(err)
		}
		return false
	})
	wantFailure(t, resolve(0), v1alpha1.ReasonUnreachable, "not as a Git server")
}

func TestGO04AServerThatNeverAnswersHoldsUpNobodyElse(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	repo.CommitFiles("one", map[string]string{"a": "b"})
	good, silent := gittest.NewHTTP(t, root), gittest.NewHTTP(t, root)
	release := make(chan struct{})
	defer close(release)
	asked := make(chan struct{}, 10)
	silent.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return false
	})
	w := newWorld(t)
	slow := gitRepository(silent.RepoURL(repo))
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if _, err := w.Resolve(ctx, source.Want{Object: slow}, time.Minute); !errors.Is(err, context.Canceled) {
				t.Errorf("a caller that gave up: %v", err)
			}
		})
	}
	<-asked
	for i := range 10 {
		object := gitRepository(good.RepoURL(repo))
		object.Name = strings.Repeat("x", i+1)
		if _, _, err := w.get(t, object, "", ""); err != nil {
			t.Error(err)
		}
	}
	cancel()
	group.Wait()
	if len(asked) != 0 {
		t.Errorf("the silent server was asked %d times", len(asked)+1)
	}
}
