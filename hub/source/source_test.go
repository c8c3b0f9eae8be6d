// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/source/gittest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == source.WorkerName {
		os.Exit(source.Main(os.Args[2:], os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// secrets by name.
type secrets struct {
	mu   sync.Mutex
	data map[string]map[string][]byte
	err  error
}

func (s *secrets) GetSecret(_ context.Context, _, name string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if s.data[name] == nil {
		return nil, source.ErrSecretNotFound
	}
	return s.data[name], nil
}

func (s *secrets) set(name string, pairs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data == nil {
		s.data = map[string]map[string][]byte{}
	}
	s.data[name] = map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		s.data[name][pairs[i]] = []byte(pairs[i+1])
	}
}

// world is a Coordinator with what it needs.
type world struct {
	*source.Coordinator
	secrets *secrets
	clock   *clocktesting.FakeClock
	options source.Options
	stop    func()
}

func newWorld(t *testing.T, change ...func(*source.Options)) *world {
	t.Helper()
	w := &world{secrets: &secrets{}, clock: clocktesting.NewFakeClock(time.Now())}
	w.options = source.Options{CacheDir: t.TempDir(), Allow: loopback, Secrets: w.secrets, Clock: w.clock}
	for _, f := range change {
		f(&w.options)
	}
	w.start(t)
	return w
}

func (w *world) start(t *testing.T) {
	t.Helper()
	c, err := source.New(w.options)
	if err != nil {
		t.Fatal(err)
	}
	w.Coordinator = c
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(w.stop)
}

func gitRepository(url string) *v1alpha1.GitRepository {
	return &v1alpha1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: types.UID("u1")},
		Spec:       v1alpha1.GitRepositorySpec{URL: url},
	}
}

// with adds references to Secrets, checked.
func with(repo *v1alpha1.GitRepository, secret, ca string) *v1alpha1.GitRepository {
	repo = repo.DeepCopy()
	repo.Spec.SecretRef, repo.Spec.CASecretRef, repo.Status.CheckedSecrets = nil, nil, nil
	if secret != "" {
		repo.Spec.SecretRef = &v1alpha1.SecretReference{Name: secret}
		repo.Status.CheckedSecrets = append(repo.Status.CheckedSecrets, secret)
	}
	if ca != "" {
		repo.Spec.CASecretRef = &v1alpha1.SecretReference{Name: ca}
		repo.Status.CheckedSecrets = append(repo.Status.CheckedSecrets, ca)
	}
	return repo
}

// get resolves and fetches, and gives the files below a path.
func (w *world) get(t *testing.T, repo *v1alpha1.GitRepository, ref, path string) (source.Revision, map[string]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	revision, err := w.Resolve(ctx, repo, ref, 0)
	if err != nil {
		return revision, nil, err
	}
	snapshot, err := w.Snapshot(ctx, repo, revision)
	if err != nil {
		return revision, nil, err
	}
	files, err := untar(snapshot, path)
	return revision, files, err
}

func untar(snapshot *source.Snapshot, path string) (map[string]string, error) {
	stream, err := snapshot.Tar(path)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	files := map[string]string{}
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		files[header.Name] = string(data)
	}
}

func reason(err error) string {
	var e *source.Error
	if errors.As(err, &e) {
		return e.Reason()
	}
	return ""
}

func wantFailure(t *testing.T, err error, wantReason, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", wantReason)
	}
	if reason(err) != wantReason || !strings.Contains(err.Error(), text) {
		t.Errorf("got %s: %v; want %s: %s", reason(err), err, wantReason, text)
	}
}

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
			if revision.Display != "main@sha1:"+commit || revision.Commit != commit {
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
			if err != nil || revision.Commit != commit || files["app/cm.yaml"] != "a: b\n" {
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
	_, err := w.Resolve(t.Context(), repo, "", 0)
	wantFailure(t, err, v1alpha1.ReasonNotChecked, "Secret key")
	if !errors.Is(err, source.ErrNotChecked) || source.ReleaseReason(err) != "SourceNotChecked" {
		t.Errorf("%v, reason of a Release %s", err, source.ReleaseReason(err))
	}
	w.secrets.err = source.ErrNoHostCluster
	_, err = w.Resolve(t.Context(), with(repo, "key", ""), "", 0)
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
		_, err := w.Resolve(t.Context(), gitRepository(url), "", 0)
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
		_, err := w.Resolve(t.Context(), gitRepository(url), "", 0)
		wantFailure(t, err, v1alpha1.ReasonDenied, "--source-allow-cidr")
	}
	_, err := w.Resolve(t.Context(), with(gitRepository(sshd.RepoURL(repo)), "key", ""), "", 0)
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

func TestGO01EachRefLeadsToTheCommitThatItNames(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	text := func(at string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: at, namespace: t-go-01}\ndata: {at: " + at + "}\n"
	}
	commit := func(at string) string { return repo.CommitFiles(at, map[string]string{"app/cm.yaml": text(at)}) }
	check := func(ref v1alpha1.GitRef, override, at, display string) {
		t.Helper()
		object := gitRepository(server.RepoURL(repo))
		object.Spec.Ref = ref
		revision, files, err := w.get(t, object, override, "app")
		if err != nil {
			t.Errorf("%+v %s: %v", ref, override, err)
			return
		}
		if files["app/cm.yaml"] != text(at) || revision.Display != display {
			t.Errorf("%+v %q: at %q, shown as %s, want %s at %s", ref, override, files["app/cm.yaml"], revision.Display, display, at)
		}
	}
	refused := func(ref v1alpha1.GitRef, override, reason, words string) {
		t.Helper()
		object := gitRepository(server.RepoURL(repo))
		object.Spec.Ref = ref
		_, _, err := w.get(t, object, override, "app")
		wantFailure(t, err, reason, words)
	}

	start := commit("start")
	repo.Git("tag", "--annotate", "--message", "first", "v1")
	repo.Git("push", "--quiet", "origin", "v1")
	check(v1alpha1.GitRef{Tag: "v1"}, "", "start", "v1@sha1:"+start)
	check(v1alpha1.GitRef{}, "", "start", "main@sha1:"+start)

	moved := commit("moved")
	repo.Git("tag", "--force", "v1")
	repo.Git("push", "--quiet", "--force", "origin", "v1")
	check(v1alpha1.GitRef{Tag: "v1"}, "", "moved", "v1@sha1:"+moved)
	check(v1alpha1.GitRef{Branch: "main"}, "", "moved", "main@sha1:"+moved)
	check(v1alpha1.GitRef{Commit: start}, "", "start", "sha1:"+start)
	check(v1alpha1.GitRef{Branch: "main"}, start, "start", "sha1:"+start)

	repo.Git("checkout", "--quiet", "-b", "feature/a/b")
	slash := commit("slash")
	check(v1alpha1.GitRef{Branch: "feature/a/b"}, "", "slash", "feature/a/b@sha1:"+slash)
	repo.Git("push", "--quiet", "origin", start+":refs/tags/feature/a/b")
	check(v1alpha1.GitRef{Branch: "feature/a/b"}, "", "slash", "feature/a/b@sha1:"+slash)
	check(v1alpha1.GitRef{Tag: "feature/a/b"}, "", "start", "feature/a/b@sha1:"+start)
	refused(v1alpha1.GitRef{}, "feature/a/b", v1alpha1.ReasonRefNotFound, "ambiguous: refs/heads/feature/a/b and refs/tags/feature/a/b")
	check(v1alpha1.GitRef{}, "refs/tags/feature/a/b", "start", "feature/a/b@sha1:"+start)
	check(v1alpha1.GitRef{Tag: "v1"}, "main", "moved", "main@sha1:"+moved)

	for _, version := range []string{"v1.2.0", "v1.10.0", "v2.0.0-rc.1", "latest", "v1.9"} {
		repo.Git("push", "--quiet", "origin", start+":refs/tags/"+version)
	}
	repo.Git("push", "--quiet", "origin", slash+":refs/tags/v1.10.1")
	check(v1alpha1.GitRef{Semver: "^1.0.0"}, "", "slash", "v1.10.1@sha1:"+slash)
	check(v1alpha1.GitRef{Semver: "~1.2"}, "", "start", "v1.2.0@sha1:"+start)
	refused(v1alpha1.GitRef{Semver: ">=2.0.0"}, "", v1alpha1.ReasonRefNotFound, "no tag in the range")
	check(v1alpha1.GitRef{Semver: ">=2.0.0-0"}, "", "start", "v2.0.0-rc.1@sha1:"+start)
	refused(v1alpha1.GitRef{Semver: "one"}, "", v1alpha1.ReasonInvalid, "no range")

	// A history that has nothing to do with the old one.
	repo.Git("checkout", "--quiet", "--orphan", "fresh")
	repo.Git("branch", "--force", "-D", "main")
	repo.Git("checkout", "--quiet", "-b", "main")
	force := commit("force")
	check(v1alpha1.GitRef{}, "", "force", "main@sha1:"+force)
	repo.Bare("update-ref", "-d", "refs/heads/main")
	refused(v1alpha1.GitRef{}, "", v1alpha1.ReasonRefNotFound, "ref not found: the repository has no branch main")
	refused(v1alpha1.GitRef{}, "none", v1alpha1.ReasonRefNotFound, "no branch or tag none")
	refused(v1alpha1.GitRef{Commit: strings.Repeat("1", 40)}, "", v1alpha1.ReasonRefNotFound, "is not in the repository")
	refused(v1alpha1.GitRef{Commit: "abc"}, "", v1alpha1.ReasonInvalid, "40 hexadecimal digits")
}

func TestACommitThatTheServerGivesByNameComesWithoutHistory(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	first := repo.CommitFiles("one", map[string]string{"a": "1"})
	repo.CommitFiles("two", map[string]string{"a": "2"})
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	for _, setting := range []string{"false", "true"} {
		repo.Bare("config", "uploadpack.allowReachableSHA1InWant", setting)
		object := gitRepository(server.RepoURL(repo))
		object.UID = types.UID(setting)
		if _, files, err := w.get(t, object, first, ""); err != nil || files["a"] != "1" {
			t.Errorf("by name %s: %v, %v", setting, files, err)
		}
		_, _, err := w.get(t, object, strings.Repeat("1", 40), "")
		wantFailure(t, err, v1alpha1.ReasonRefNotFound, "is not in the repository")
	}
}

func TestGO02SubmodulesAreNamedAndNotFetched(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	repo.CommitFiles("one", map[string]string{"app/cm.yaml": "a: b\n"})
	repo.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("5", 40)+",base")
	repo.Git("commit", "--quiet", "--message", "submodule")
	repo.Git("push", "--quiet", "origin", "main")
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	if _, _, err := w.get(t, gitRepository(server.RepoURL(repo)), "", "app"); err != nil {
		t.Errorf("a path beside the submodule: %v", err)
	}
	_, _, err := w.get(t, gitRepository(server.RepoURL(repo)), "", "base/app")
	if !errors.Is(err, source.ErrPathNotFound) || !strings.Contains(err.Error(), "base is a submodule") || source.ReleaseReason(err) != "PathNotFound" {
		t.Errorf("a path in the submodule: %v", err)
	}
	_, files, err := w.get(t, gitRepository(server.RepoURL(repo)), "", "")
	if _, told := files["base/"]; err != nil || !told {
		t.Errorf("the whole repository: %v, %v", files, err)
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
	_, err := w.Resolve(t.Context(), object, "", 0)
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
	_, err = w.Resolve(t.Context(), with(gitRepository(secure.RepoURL(repo)), "key", "ca"), "", 0)
	wantFailure(t, err, v1alpha1.ReasonUnreachable, "a redirect away from https")
	front.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		http.Redirect(rw, r, r.URL.RequestURI(), http.StatusFound)
		return false
	})
	_, err = w.Resolve(t.Context(), object, "", 0)
	wantFailure(t, err, v1alpha1.ReasonUnreachable, "too many redirects")
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
		_, err := w.Resolve(t.Context(), object, "", maxAge)
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
	revision, err := w.Resolve(t.Context(), object, "", time.Minute)
	if err != nil || revision.Commit != commit {
		t.Errorf("with the new Secret: %+v, %v", revision, err)
	}
	_, err = w.Resolve(t.Context(), gitRepository("https://no-such-host.invalid/x.git"), "", 0)
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
			if _, err := w.Resolve(ctx, slow, "", time.Minute); !errors.Is(err, context.Canceled) {
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

func TestManyWhoWantTheSameCostOneRequestAndOneFetch(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	repo.CommitFiles("one", map[string]string{"app/a": "b"})
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	object := gitRepository(server.RepoURL(repo))
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			revision, err := w.Resolve(t.Context(), object, "", time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			snapshot, err := w.Snapshot(t.Context(), object, revision)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := snapshot.PathDigest("app"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if requests, uploads := len(server.Requests()), server.Uploads(); requests != 3 || uploads != 1 {
		t.Errorf("%d requests, %d fetches", requests, uploads)
	}
	w.clock.Step(59 * time.Second)
	if _, err := w.Resolve(t.Context(), object, "", time.Minute); err != nil {
		t.Fatal(err)
	}
	if n := len(server.Requests()); n != 3 {
		t.Errorf("%d requests: what is known was asked again", n)
	}
	w.clock.Step(2 * time.Second)
	if _, err := w.Resolve(t.Context(), object, "", time.Minute); err != nil {
		t.Fatal(err)
	}
	if n := len(server.Requests()); n != 4 {
		t.Errorf("%d requests: what is old was not asked again", n)
	}
}

func TestTheCacheSurvivesARestartAndIsBounded(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	first := repo.CommitFiles("one", map[string]string{"a": strings.Repeat("1", 100_000)})
	second := repo.CommitFiles("two", map[string]string{"a": strings.Repeat("2", 100_000)})
	server := gittest.NewHTTP(t, root)
	w := newWorld(t, func(o *source.Options) { o.CacheBytes = 150_000 })
	object := gitRepository(server.RepoURL(repo))
	if _, _, err := w.get(t, object, first, ""); err != nil {
		t.Fatal(err)
	}
	w.stop()
	if _, err := w.Snapshot(t.Context(), object, source.Revision{Commit: second}); !errors.Is(err, source.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
	// What a killed process left is removed.
	left := filepath.Join(w.options.CacheDir, "tmp-left")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
	held, err := w.Snapshot(t.Context(), object, source.Revision{Commit: first})
	if err != nil || server.Uploads() != 1 {
		t.Fatalf("%d fetches, %v", server.Uploads(), err)
	}
	w.clock.Step(time.Second)
	if _, _, err := w.get(t, object, second, ""); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(w.options.CacheDir)
	if err != nil || len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), second) {
		t.Errorf("in the cache: %v, %v", entries, err)
	}
	// One that is being read stays readable.
	if files, err := untar(held, ""); err != nil || len(files["a"]) != 100_000 {
		t.Errorf("an evicted snapshot: %v", err)
	}
	// A corrupt one is fetched again.
	w.stop()
	if err := os.WriteFile(filepath.Join(w.options.CacheDir, entries[0].Name(), "index"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	uploads := server.Uploads()
	if _, files, err := w.get(t, object, second, ""); err != nil || len(files["a"]) != 100_000 || server.Uploads() != uploads+1 {
		t.Errorf("after damage: %v, %d fetches", err, server.Uploads())
	}
}

func TestAnotherObjectIsNotGivenWhatWasFetchedWithOthersCredentials(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	commit := repo.CommitFiles("one", map[string]string{"a": "b"})
	server := gittest.NewHTTP(t, root)
	server.RequireBasic("me", "good")
	w := newWorld(t)
	w.secrets.set("key", "username", "me", "password", "good")
	if _, _, err := w.get(t, with(gitRepository(server.RepoURL(repo)), "key", ""), commit, ""); err != nil {
		t.Fatal(err)
	}
	other := gitRepository(server.RepoURL(repo))
	other.Namespace = "others"
	_, _, err := w.get(t, other, commit, "")
	wantFailure(t, err, v1alpha1.ReasonAuthFailed, "no secretRef")
}

func TestWhatIsTooLargeIsRefusedByName(t *testing.T) {
	pid := os.Getpid()
	names := func(n int) []string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("app/%d/%d.yaml", i%100, i))
		}
		return names
	}
	tests := []struct {
		name string
		make func(*gittest.Repo)
		text string
	}{
		{"a file of 60 MiB", func(r *gittest.Repo) { r.Import(strings.Repeat("x", 60<<20), "app/huge.yaml") }, "app/huge.yaml: the object is too large: 60 MiB; a file may have 32 MiB"},
		{"a file of 33 MiB as a delta of a small one", func(r *gittest.Repo) {
			base := strings.Repeat("0123456789abcdef", 1<<10)
			r.Write("app/a.yaml", base)
			r.Write("app/b.yaml", strings.Repeat(base, 33<<20/len(base)))
			r.Commit("large")
		}, "app/b.yaml: the object is too large"},
		{"more than 128 MiB together", func(r *gittest.Repo) { r.Import(strings.Repeat("x", 30<<20), names(5)...) }, "app/4/4.yaml: the files of the repository have more than 128 MiB together"},
		{"more than 10,000 files", func(r *gittest.Repo) { r.Import("x", names(10_001)...) }, "the repository has more than 10000 files"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			repo := gittest.NewRepo(t, root, "app")
			test.make(repo)
			server := gittest.NewHTTP(t, root)
			w := newWorld(t)
			start := time.Now()
			_, _, err := w.get(t, gitRepository(server.RepoURL(repo)), "", "app")
			wantFailure(t, err, v1alpha1.ReasonTooLarge, test.text)
			t.Logf("%s: %v", time.Since(start), err)
			if os.Getpid() != pid {
				t.Error("another process")
			}
		})
	}
}

func TestPathsAndLinks(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	for name, target := range map[string]string{
		"good/file.yaml": "../base/cm.yaml", "good/folder": "../base", "good/chain.yaml": "file.yaml",
		"out/x": "../../etc/passwd", "abs/x": "/etc/passwd", "loop/x": "y", "loop/y": "x", "dangling/x": "none", "circle/x": "../circle", "via": "good/folder",
	} {
		repo.Write(name, "")
		if err := os.Remove(repo.Path(name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, repo.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	repo.Write("base/cm.yaml", "a: b\n")
	repo.Write("base/sub/run.sh", "true\n")
	if err := os.Chmod(repo.Path("base/sub/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	repo.Commit("one")
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	object := gitRepository(server.RepoURL(repo))
	tests := []struct {
		path, fails string
		want        []string
	}{
		{"good", "", []string{"good/chain.yaml", "good/file.yaml", "good/folder/cm.yaml", "good/folder/sub/run.sh"}},
		{"./good/../base/", "", []string{"base/cm.yaml", "base/sub/run.sh"}},
		{"base/cm.yaml", "", []string{"base/cm.yaml"}},
		{"via/sub", "", []string{"via/sub/run.sh"}},
		{"good/file.yaml", "", []string{"good/file.yaml"}},
		{"out", "out/x: it leaves the repository", nil},
		{"abs", "abs/x: it leaves the repository", nil},
		{"loop", "loop/x: it goes in circles", nil},
		{"dangling", "dangling/x: it leads to dangling/none, which does not exist", nil},
		{"circle", "circle/x: it leads to a folder that it is in", nil},
		{"none", "no such path in the source: none", nil},
		{"base/cm.yaml/x", "base/cm.yaml is a file", nil},
		{"../x", "not a path inside the source", nil},
		{"/base", "not a path inside the source", nil},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			_, files, err := w.get(t, object, "", test.path)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %v", err)
				}
				return
			}
			var names []string
			for name := range files {
				names = append(names, name)
			}
			if err != nil || len(names) != len(test.want) {
				t.Errorf("got %v, %v", names, err)
			}
			for _, name := range test.want {
				if _, ok := files[name]; !ok {
					t.Errorf("%s is missing", name)
				}
			}
		})
	}
}

func TestThePathDigestFollowsWhatIsBelowThePathAlone(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	object := gitRepository(server.RepoURL(repo))
	digest := func(path string, files map[string]string) string {
		t.Helper()
		commit := repo.CommitFiles("change", files)
		snapshot, err := w.Snapshot(t.Context(), object, source.Revision{Commit: commit})
		if err != nil {
			t.Fatal(err)
		}
		digest, err := snapshot.PathDigest(path)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	first := digest("app", map[string]string{"app/a.yaml": "a", "README": "1"})
	if got := digest("app", map[string]string{"app/a.yaml": "a", "README": "2", "other/b.yaml": "x"}); got != first {
		t.Error("a change outside the path changed the digest")
	}
	if got := digest("moved/here", map[string]string{"moved/here/a.yaml": "a"}); got != first {
		t.Error("the same files under another path have another digest")
	}
	if got := digest("app", map[string]string{"app/a.yaml": "b"}); got == first {
		t.Error("a changed file has the same digest")
	}
	if got := digest("app", map[string]string{"app/b.yaml": "a"}); got == first {
		t.Error("a renamed file has the same digest")
	}
	if got := digest("app/a.yaml", map[string]string{"app/a.yaml": "a"}); got != first {
		t.Error("a file and the folder that holds nothing else differ")
	}
}

func TestCheckSaysWhetherASourceCanBeReached(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	commit := repo.CommitFiles("one", map[string]string{"a": "b"})
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	object := gitRepository(server.RepoURL(repo))
	if revision, err := w.Check(t.Context(), object); err != nil || revision.Display != "main@sha1:"+commit {
		t.Errorf("%+v, %v", revision, err)
	}
	object.Spec.Ref.Commit = commit
	asked := len(server.Requests())
	if revision, err := w.Check(t.Context(), object); err != nil || revision.Display != "sha1:"+commit || len(server.Requests()) == asked {
		t.Errorf("a commit: %+v, %v", revision, err)
	}
	server.RequireBasic("me", "x")
	_, err := w.Check(t.Context(), object)
	wantFailure(t, err, v1alpha1.ReasonAuthFailed, "wants credentials")
}

func TestASnapshotThatWasDamagedOnDiskIsNoticedAndFetchedAgain(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "app")
	commit := repo.CommitFiles("one", map[string]string{"app/a.yaml": "good: content\n"})
	server := gittest.NewHTTP(t, root)
	w := newWorld(t)
	object := gitRepository(server.RepoURL(repo))
	snapshot, err := w.Snapshot(t.Context(), object, source.Revision{Commit: commit})
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(w.options.CacheDir, "*", "content"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if err := os.WriteFile(found[0], []byte("evil: content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if files, err := untar(snapshot, "app"); err == nil || !strings.Contains(err.Error(), "corrupt: app/a.yaml") {
		t.Errorf("%v, %v", files, err)
	}
	if _, files, err := w.get(t, object, commit, "app"); err != nil || files["app/a.yaml"] != "good: content\n" || server.Uploads() != 2 {
		t.Errorf("%v, %v, %d fetches", files, err, server.Uploads())
	}
}
