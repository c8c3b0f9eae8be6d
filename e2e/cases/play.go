// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// defaultRelease and defaultCluster are what a case means that names none.
const (
	defaultRelease = "r1"
	defaultCluster = "edge"
)

// Options of a Player.
type Options struct {
	// Out takes what is printed.
	Out io.Writer
	// Rest is the longest wait for a Release to be at rest; a minute when zero.
	Rest time.Duration
	// Manual makes Releases with syncPolicy.automatic false: drift is shown and not
	// repaired. Auto does so for a case that expects drift to be shown.
	Manual, Auto bool
	// Full prints objects whole, with managedFields and long texts.
	Full bool
}

// Player plays one case.
type Player struct {
	world    *World
	edge     *harness.Plane // of the default Cluster
	c        *Case
	opts     Options
	targets  []*target
	releases []*release
	// seen are the objects that any inventory or live step of the case named.
	seen []*seen
	// others are agents beside those of the targets.
	others []*install.DirectAgent
	// stopped are clusters that others were put in the place of.
	stopped []*harness.Plane
	// snapshots is a folder with what clusters had, saved the steps after which one was
	// taken without being asked for.
	snapshots string
	saved     []string
	// backup is a folder with the hub's store as it was.
	backup string
	// server of a source that has credentials, the password that its Secret has, and how
	// often it was asked while it wanted to be left alone.
	server   *gitserver.Server
	password string
	asked    int64
}

// release is one Release of the case, on every target.
type release struct {
	name, path string
	repository *gitserver.Repository
	// step that its content is from, commit that the content is, and asked, the sync
	// request that followed, by target.
	step      *Step
	content   corev1alpha1.ReleaseContent
	files     map[string]string
	links     map[string]string
	modules   []string // paths of submodules
	mutations []corev1alpha1.Mutation
	commit    string
	commits   map[string]string // by step
	asked     map[*target]string
	published map[*target]bool // it was made there once
	deleted   bool
	// pending says, by target, why the hub was not asked for the newest content yet, and
	// refused are changes of a Release that the hub has refused to make.
	pending map[*target]string
	refused map[*target][]map[string]any
}

// NewPlayer makes a Player. Begin, Step for each step, and End play the case; Play
// does all of it.
func NewPlayer(world *World, c *Case, opts Options) *Player {
	if opts.Rest == 0 {
		opts.Rest = defaultRest
	}
	if opts.Out == nil {
		opts.Out = io.Discard
	}
	return &Player{world: world, edge: world.Edge, c: c, opts: opts}
}

// Play plays the whole case. Whether its statements hold is for the reader; an error is
// one of the player's. A step that cannot be played to its end is told, and the case goes
// on with the next.
func (p *Player) Play(ctx context.Context) (err error) {
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, p.End(end))
	}()
	if err := p.Begin(ctx); err != nil {
		return err
	}
	var failed []error
	for _, s := range p.c.Steps {
		if err := p.inTime(ctx, s); err != nil {
			err = fmt.Errorf("%s:%d: step %s: %w", p.c.File, s.Line, s.Name, err)
			p.say("# NOT PLAYED TO ITS END: %v\n", err)
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// inTime plays a step for as long as any may take.
func (p *Player) inTime(ctx context.Context, s *Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, fmt.Errorf("it took longer than %s", stepLimit))
	defer cancel()
	return p.Step(ctx, s)
}

// Begin makes the namespaces and joins the edge.
func (p *Player) Begin(ctx context.Context) error {
	p.say("%s  %s\n# do: %s\n# right: %s\n", p.c.ID, p.c.Class, p.c.Do, p.c.Right)
	if s := p.c.showsDrift(); s != nil && p.opts.Auto && !p.opts.Manual {
		p.opts.Manual = true
		p.say("# played with syncPolicy.automatic: false, since step %s expects drift that is shown; with -manual=false it is repaired at once\n", s.Name)
	}
	for _, s := range p.c.Steps {
		if s.Do != doHealth && s.Do != doCheck {
			t, err := p.join(ctx, p.edge, p.c.Namespace(), defaultCluster)
			if t != nil {
				p.targets = append(p.targets, t)
			}
			if err != nil {
				return err
			}
			return p.namespaceOn(ctx, t)
		}
	}
	return nil // health rules alone need no cluster
}

func (p *Player) namespaceOn(ctx context.Context, t *target) error {
	if p.c.renders(p.c.Namespace()) {
		return nil
	}
	return ensureNamespace(ctx, t.cube.plane, p.c.Namespace())
}

// Step plays one step.
func (p *Player) Step(ctx context.Context, s *Step) error {
	title := s.Do
	if s.Release != "" {
		title += " of Release " + s.Release
	}
	p.say("\n=== %s (%s, line %d)\n", s.Name, title, s.Line)
	if len(s.Unknown) > 0 {
		p.say("# keys that the player does not know in a %s step, not used: %s\n", s.Do, strings.Join(s.Unknown, ", "))
	}
	if err := p.catchUp(ctx); err != nil {
		return err
	}
	switch s.Do {
	case doRender, doFiles:
		p.tell(s.Note)
		return p.content(ctx, s)
	case doLive:
		return p.live(ctx, s)
	case doHealth:
		p.tell(s.Note)
		return p.health(s)
	case doEvent:
		p.say("%s\n", s.What)
		p.tell(s.Note)
		if err := p.event(ctx, s); err != nil {
			return err
		}
		return p.catchUp(ctx)
	default:
		p.tell(s.Note)
		return p.check(ctx, s)
	}
}

func (p *Player) say(format string, args ...any) { fmt.Fprintf(p.opts.Out, format, args...) }

func (p *Player) tell(note string) {
	if note != "" {
		p.say("# note, for you to do or to weigh: %s\n", note)
	}
}

// content makes the documents of a step the content of its Release, on all targets.
func (p *Player) content(ctx context.Context, s *Step) error {
	parts, err := p.c.parts(s)
	if err != nil {
		return err
	}
	for _, part := range parts {
		r, err := p.prepare(ctx, part)
		if err != nil {
			return err
		}
		if err := p.publish(ctx, r); err != nil {
			return err
		}
		if err := p.settle(ctx, r); err != nil {
			return err
		}
	}
	if p.c.restores() && len(p.targets) > 0 && p.targets[0].deaf() == "" {
		p.say("# a snapshot of the cluster was taken, since the case restores one\n")
		p.saved = append(p.saved, s.Name)
		return p.save(ctx, s.Name)
	}
	return nil
}

// prepare commits what a step's Release is to have.
func (p *Player) prepare(ctx context.Context, s *Step) (*release, error) {
	files, links, err := p.c.files(s)
	if err != nil {
		return nil, err
	}
	r, err := p.release(ctx, s, files)
	if err != nil {
		return nil, err
	}
	for path, to := range links {
		if strings.HasPrefix(to, "<absolute") {
			links[path] = p.world.secretFile()
		}
	}
	if r.modules = submodules(s.Note); len(r.modules) > 0 {
		files[".gitmodules"] = gitmodules(r.modules)
	}
	maps.Copy(files, pointers(s.Note))
	if err := p.commit(ctx, r, s.Name, files, links); err != nil {
		return nil, err
	}
	r.step, r.files, r.links = s, files, links
	if r.content, err = p.c.spec(s, r.path); err != nil {
		return nil, err
	}
	p.say("# %d files committed as %.10s, Release path %s\n", len(files), r.commit, r.path)
	for _, line := range p.c.manyDropped(s) {
		p.say("# %s\n", line)
	}
	r.commits[s.Name] = r.commit
	return r, nil
}

// release finds or makes the Release of a step. Its path stays what it was at first.
func (p *Player) release(ctx context.Context, s *Step, files map[string]string) (*release, error) {
	name := s.Release
	if name == "" {
		name = defaultRelease
	}
	at := slices.IndexFunc(p.releases, func(r *release) bool { return r.name == name })
	if at < 0 {
		repository, err := p.world.Git.Repository(ctx, p.source(&release{name: name}))
		if err != nil {
			return nil, fmt.Errorf("release %s: %w", name, err)
		}
		at = len(p.releases)
		p.releases = append(p.releases, &release{name: name, path: folderOf(files), repository: repository, asked: map[*target]string{}, published: map[*target]bool{}, pending: map[*target]string{}, refused: map[*target][]map[string]any{}, commits: map[string]string{}})
	}
	r := p.releases[at]
	if s.Path != "" {
		r.path = s.Path
	}
	return r, nil
}

// folderOf is what a Release's path is when nobody says it: folder app if there is one,
// the one folder that all files lie in, or everything.
func folderOf(files map[string]string) string {
	folders := map[string]bool{}
	for path := range files {
		first, _, nested := strings.Cut(path, "/")
		if !nested {
			first = "."
		}
		folders[first] = true
	}
	if folders[contentFolder] {
		return contentFolder
	}
	if len(folders) == 1 {
		for folder := range folders {
			return folder
		}
	}
	return "."
}

// commit replaces the repository's tree.
func (p *Player) commit(ctx context.Context, r *release, message string, files, links map[string]string) (err error) {
	dir := r.repository.Dir()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("work tree: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() != ".git" {
			if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
				return fmt.Errorf("work tree: %w", err)
			}
		}
	}
	for path, text := range files {
		if err := place(dir, path, func(full string) error { return os.WriteFile(full, []byte(text), 0o644) }); err != nil {
			return err
		}
	}
	for path, to := range links {
		if err := place(dir, path, func(full string) error { return os.Symlink(to, full) }); err != nil {
			return err
		}
	}
	for _, module := range r.modules {
		if err := os.Mkdir(filepath.Join(dir, module), 0o755); err != nil {
			return fmt.Errorf("work tree: %w", err)
		}
		if err := r.repository.Git(ctx, "update-index", "--add", "--cacheinfo", "160000,"+someCommit+","+module); err != nil {
			return err
		}
	}
	if r.commit, err = r.repository.Push(ctx, message); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// place writes below dir and nowhere else.
func place(dir, path string, write func(string) error) error {
	if !filepath.IsLocal(path) {
		return fmt.Errorf("%w: path %q leads out of the tree", ErrCase, path)
	}
	full := filepath.Join(dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return fmt.Errorf("work tree: %w", err)
	}
	if err := write(full); err != nil {
		return fmt.Errorf("work tree: %w", err)
	}
	return nil
}

// publish makes the Release on every target, or asks for a sync of it.
func (p *Player) publish(ctx context.Context, r *release) error {
	for _, t := range p.targets {
		if err := p.publishOn(ctx, t, r); err != nil {
			return err
		}
	}
	return nil
}

// sync asks for what the source has now.
func (p *Player) sync(ctx context.Context, t *target, r *release) error {
	client := p.world.Hub.Plane.Dynamic().Resource(install.Releases).Namespace(t.namespace)
	// Values with a null in them would not come through a merge patch.
	content, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/content", "value": r.content}})
	if err != nil {
		return fmt.Errorf("content of %s: %w", r.name, err)
	}
	if _, err := client.Patch(ctx, r.name, types.JSONPatchType, content, metav1.PatchOptions{}); err != nil {
		return err //nolint:wrapcheck // names the Release
	}
	at := time.Now().UTC().Format(time.RFC3339Nano)
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, corev1alpha1.AnnotationSyncRequestedAt, at)
	_, err = client.Patch(ctx, r.name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	r.asked[t] = at
	return err //nolint:wrapcheck // names the Release
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by) + "\n"
}
