// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// at is the mark that is live, and the commit that is shown for it.
func (p *played) at() (mark, revision string) {
	p.t.Helper()
	return p.data("at")["at"], p.status(p.targets[0], defaultRelease).Status.SourceRevision
}

func (p *played) wantAt(mark string) {
	p.t.Helper()
	got, revision := p.at()
	if got != mark {
		p.t.Errorf("live at is %q of %s, want %q", got, revision, mark)
	}
}

// wantRevision says that what is shown is a commit of that ref.
func (p *played) wantRevision(ref string) {
	p.t.Helper()
	_, revision := p.at()
	if name, commit, ok := strings.Cut(revision, "@sha1:"); !ok || name != ref || len(commit) != 40 {
		p.t.Errorf("revision %s, want a commit of %s", revision, ref)
	}
}

func TestGO01RefsThatMoveAreFollowed(t *testing.T) {
	t.Parallel()
	p := play(t, "GO-01", 6*time.Minute)
	p.step("start")
	start := p.releases[0].commit
	p.step("annotated")
	p.wantAt("start")
	if _, revision := p.at(); !strings.HasSuffix(revision, "@sha1:"+start) {
		t.Errorf("revision %s, want the commit %s", revision, start)
	}
	object := p.live(p.targets[0], "configmap", "at")
	p.step("moved")
	p.wantAt("moved")
	p.wantRevision("v1")
	clause := func(words string) {
		t.Helper()
		if err := p.clause(p.ctx, words); err != nil {
			t.Fatal(err)
		}
	}
	slash := clausesOf(p.c.find("slash").What)
	clause(slash[0])
	p.wantAt("feature/a/b")
	p.wantRevision("feature/a/b")
	clause(slash[1])
	p.wantAt("branch-name")
	if err := p.aim(p.ctx, p.releases[0], sourcev1alpha1.GitRef{Tag: "name"}); err != nil {
		t.Fatal(err)
	}
	p.wantAt("tag-name")
	p.step("switch")
	p.wantAt("moved")
	p.same(p.targets[0], object)
	if !strings.Contains(p.out.String(), "REFUSED: ") {
		t.Error("a commit and a branch in one ref are not refused")
	}
	force := clausesOf(p.c.find("force").What)
	clause(force[0])
	p.wantAt("force")
	p.inSync(defaultRelease)
	clause(force[1])
	p.fails(defaultRelease, corev1alpha1.ReasonFetchFailed, "ref not found", "main")
	p.same(p.targets[0], object)
	// It stays healed.
	if _, err := p.targets[0].cube.plane.Kubectl(p.ctx, "-n", p.c.Namespace(), "patch", "configmap", "at", "-p", `{"data":{"at":"by hand"}}`); err != nil {
		t.Fatal(err)
	}
	p.healed("at", "at", "force")
	p.carriedOut()
}

// healed waits until a key of a ConfigMap has its value again.
func (p *played) healed(name, key, want string) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for p.data(name)[key] != want {
		if time.Now().After(deadline) {
			p.t.Fatalf("ConfigMap %s is not healed: %v", name, p.data(name))
		}
		if err := p.pass(p.ctx, pollPause); err != nil {
			p.t.Fatal(err)
		}
	}
}

func TestGO02PointersAndSubmodulesAreNamed(t *testing.T) {
	t.Parallel()
	p := play(t, "GO-02", 5*time.Minute)
	p.step("v1")
	p.inSync(defaultRelease)
	if got := p.data("mentions-lfs")["text"]; got != "oid sha256:abc is only text here" {
		t.Errorf("mentions-lfs has %q", got)
	}
	plain := p.live(p.targets[0], "configmap", "plain")
	if err := p.clause(p.ctx, "the Release's path becomes lfs (pointers only on disk)"); err != nil {
		t.Fatal(err)
	}
	p.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, "lfs/cm.yaml", "Git LFS")
	if err := p.clause(p.ctx, "its chart becomes lfs/chart.tgz"); err != nil {
		t.Fatal(err)
	}
	p.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, "lfs/chart.tgz", "Git LFS")
	p.step("submodule")
	p.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, "base", "submodule")
	p.same(p.targets[0], plain)
	p.carriedOut()
}

// sourceSays waits until the source says by itself what is wrong.
func (p *played) sourceSays(reason string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	_, err := harness.WaitFor(ctx, p.world.Hub.Plane.Dynamic(), install.GitRepositories, p.targets[0].namespace, p.source(p.releases[0]), harness.HasCondition(sourcev1alpha1.ConditionReady, "False", reason))
	if err != nil {
		p.t.Errorf("the source does not say %s: %v", reason, err)
	}
}

func TestGO04TroubleWithTheSourceIsToldApartAndClearsByItself(t *testing.T) {
	t.Parallel()
	p := play(t, "GO-04", 8*time.Minute)
	p.step("v1")
	p.inSync(defaultRelease)
	src := p.live(p.targets[0], "configmap", "src")
	// As the case says, but for the time that the server wants to be left alone.
	what := strings.Replace(p.c.find("trouble").What, "retry time of 90 s", "retry time of 10 s", 1)
	reasons := map[string]string{
		"the token expires": sourcev1alpha1.ReasonAuthFailed,
		"the server's certificate is from a private CA that is not configured": sourcev1alpha1.ReasonCertificateNotTrusted,
		"the server accepts and never answers":                                 sourcev1alpha1.ReasonTimeout,
	}
	for _, part := range clausesOf(what) {
		if err := p.clause(p.ctx, part); err != nil {
			t.Fatal(err)
		}
		if reason := reasons[part]; reason != "" {
			p.fails(defaultRelease, corev1alpha1.ReasonFetchFailed)
			p.sourceSays(reason)
		}
		p.same(p.targets[0], src)
		if _, err := p.targets[0].cube.plane.Kubectl(p.ctx, "-n", p.c.Namespace(), "patch", "configmap", "src", "-p", `{"data":{"k":"by hand"}}`); err != nil {
			t.Fatal(err)
		}
		p.healed("src", "k", "v")
	}
	out := p.out.String()
	for _, words := range []string{"to be left alone", "the name does not resolve", "does not accept the credentials", "an authority that is not trusted", "no answer in time"} {
		if !strings.Contains(out, words) {
			t.Errorf("%q was not said", words)
		}
	}
	if p.asked != 0 {
		t.Errorf("the server was asked %d times while it wanted to be left alone", p.asked)
	}
	p.inSync(defaultRelease)
	p.carriedOut("the SSH host key changes") // the server speaks https
	for _, log := range []string{p.world.Hub.Log(), p.targets[0].agent.Log()} {
		raw, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for _, password := range []string{firstPassword, secondPassword} {
			if strings.Contains(string(raw), password) {
				t.Errorf("%s has %s", log, password)
			}
		}
	}
	if strings.Contains(out, firstPassword) || strings.Contains(out, secondPassword) {
		t.Error("a status has a password")
	}
	if !soak() {
		return // a repository of that size takes half a minute to write
	}
	digest := p.digest(defaultRelease)
	p.step("huge")
	if got := p.digest(defaultRelease); got != digest {
		t.Errorf("the render was made again: %s, was %s", got, digest)
	}
	p.inSync(defaultRelease)
}
