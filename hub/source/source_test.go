// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

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
	revision, err := w.Resolve(ctx, source.Want{Object: repo, Revision: ref}, 0)
	if err != nil {
		return revision, nil, err
	}
	snapshot, err := w.Snapshot(ctx, source.Want{Object: repo}, revision)
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

	// What is at the tip of neither branch nor tag, and comes without its history.
	repo.Git("checkout", "--quiet", "-b", "theirs")
	request := commit("request")
	repo.Git("push", "--quiet", "origin", "theirs:refs/pull/7/head", ":refs/heads/theirs")
	check(v1alpha1.GitRef{Name: "refs/pull/7/head"}, "", "request", "refs/pull/7/head@sha1:"+request)
	check(v1alpha1.GitRef{}, "refs/pull/7/head", "request", "refs/pull/7/head@sha1:"+request)
	check(v1alpha1.GitRef{Name: "refs/heads/feature/a/b"}, "", "slash", "feature/a/b@sha1:"+slash)
	refused(v1alpha1.GitRef{Name: "refs/pull/8/head"}, "", v1alpha1.ReasonRefNotFound, "no ref refs/pull/8/head")
	refused(v1alpha1.GitRef{Name: "main"}, "", v1alpha1.ReasonInvalid, "a ref in full")

	// A history that has nothing to do with the old one.
	repo.Git("checkout", "--quiet", "--orphan", "fresh")
	repo.Git("branch", "--force", "-D", "main")
	repo.Git("checkout", "--quiet", "-b", "main")
	force := commit("force")
	check(v1alpha1.GitRef{}, "", "force", "main@sha1:"+force)
	repo.Bare("update-ref", "-d", "refs/heads/main")
	refused(v1alpha1.GitRef{}, "", v1alpha1.ReasonRefNotFound, "ref not found: the repository has no branch main")
	refused(v1alpha1.GitRef{}, "none", v1alpha1.ReasonRefNotFound, "no branch or tag none")
	refused(v1alpha1.GitRef{}, "abcdef1", v1alpha1.ReasonRefNotFound, "no branch or tag abcdef1; a commit is named by all of its 40 hexadecimal digits")
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
			revision, err := w.Resolve(t.Context(), source.Want{Object: object}, time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			snapshot, err := w.Snapshot(t.Context(), source.Want{Object: object}, revision)
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
	if _, err := w.Resolve(t.Context(), source.Want{Object: object}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if n := len(server.Requests()); n != 3 {
		t.Errorf("%d requests: what is known was asked again", n)
	}
	w.clock.Step(2 * time.Second)
	if _, err := w.Resolve(t.Context(), source.Want{Object: object}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if n := len(server.Requests()); n != 4 {
		t.Errorf("%d requests: what is old was not asked again", n)
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
