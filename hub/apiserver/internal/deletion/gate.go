// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Store finds what a deletion would uninstall.
type Store interface {
	// Releases of a namespace, or of one Cluster in it when cluster is not empty.
	Releases(ctx context.Context, namespace, cluster string) ([]*v1alpha1.Release, error)
	// Cluster by name; NotFound is an error of the API.
	Cluster(ctx context.Context, key types.NamespacedName) (*v1alpha1.Cluster, error)
}

// Recorder writes into the status that a deletion was refused.
type Recorder interface {
	Held(ctx context.Context, release types.NamespacedName, uid types.UID, held v1alpha1.HeldDeletion) error
	HeldCluster(ctx context.Context, cluster types.NamespacedName, uid types.UID, held v1alpha1.HeldDeletion) error
}

// Options of a Gate. All but Terminating are required.
type Options struct {
	Budget     Budget
	Authorizer authorizer.UnconditionalAuthorizer
	// Terminating says whether a namespace of the host is being deleted; nil: there
	// is no host.
	Terminating func(ctx context.Context, namespace string) (bool, error)
	Clock       clock.PassiveClock
	Logger      logr.Logger
}

// Gate counts deletions and holds back those that are too many.
type Gate struct {
	// Static after Bind.
	budget      Budget
	authorizer  authorizer.UnconditionalAuthorizer
	terminating func(ctx context.Context, namespace string) (bool, error)
	clock       clock.PassiveClock
	log         logr.Logger
	store       Store
	recorder    func() Recorder

	mu sync.Mutex
	// windows of the accounts, and the deletions that were confirmed, by the UID of
	// what is deleted; guarded by mu.
	windows   map[account]*window
	confirmed map[types.UID]confirmation
}

// New makes a Gate that is not bound to a store yet.
func New(o Options) *Gate {
	return &Gate{
		budget: o.Budget, authorizer: o.Authorizer, terminating: o.Terminating, clock: o.Clock, log: o.Logger,
		windows: map[account]*window{}, confirmed: map[types.UID]confirmation{},
	}
}

// Bind gives it the store that it looks at, and who records. Called once, before
// anything is deleted.
func (g *Gate) Bind(store Store, recorder func() Recorder) { g.store, g.recorder = store, recorder }

// collectors are the users that the host's garbage collector has on most hosts. It
// deletes what has an owner that does not exist, be it that the owner was never
// there: after a restore, or a copy of an object, it cannot know.
var collectors = []string{"system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-controller-manager"}

// asker is who asks for a deletion, and how.
type asker struct {
	user string
	// shaped: the request looks like one of the garbage collector's, which names the
	// UID and a propagation policy. People's tools name no UID.
	shaped bool
}

func askerOf(ctx context.Context, options *metav1.DeleteOptions) asker {
	a := asker{shaped: options != nil && options.PropagationPolicy != nil && options.Preconditions != nil && options.Preconditions.UID != nil}
	if u, ok := request.UserFrom(ctx); ok {
		a.user = u.GetName()
	}
	return a
}

func (a asker) collects(object metav1.Object) bool {
	return len(object.GetOwnerReferences()) > 0 && (a.shaped || slices.Contains(collectors, a.user))
}

// plan is what the deletion of one object would uninstall.
type plan struct {
	object metav1.Object
	// command names the object for `kubectl convoy confirm`.
	command string
	// what, for messages: "its workloads" or those of its Releases.
	what     string
	accounts []account
	// uids of the Releases that are uninstalled and were not counted before.
	uids     []types.UID
	sequence int64
	digest   string
}

// uninstalls says whether the deletion of a Release takes something away from its
// cluster.
func uninstalls(r *v1alpha1.Release) bool {
	return r.DeletionTimestamp == nil && !r.Spec.DeletionPolicy.KeepWorkloads && r.Status.Sequence > 0
}

// planRelease is nil when the Release is being deleted already.
func (g *Gate) planRelease(ctx context.Context, r *v1alpha1.Release) (*plan, error) {
	if r.DeletionTimestamp != nil {
		return nil, nil
	}
	p := &plan{
		object: r, command: r.Name, what: "its workloads",
		accounts: []account{{namespace: r.Namespace}, {r.Namespace, r.Spec.ClusterRef.Name}},
		sequence: r.Status.Sequence, digest: digestOf(r.UID, r),
	}
	if !uninstalls(r) {
		return p, nil
	}
	cluster, err := g.cluster(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.ClusterRef.Name})
	if err != nil {
		return nil, err
	}
	// Without its Cluster no agent can be told; one that goes with its Releases was
	// counted as all of them.
	if cluster != nil && (cluster.DeletionTimestamp == nil || !cluster.Spec.DeletionPolicy.PruneReleases) {
		p.uids = []types.UID{r.UID}
	}
	return p, nil
}

// cluster is nil when there is none of that name.
func (g *Gate) cluster(ctx context.Context, key types.NamespacedName) (*v1alpha1.Cluster, error) {
	c, err := g.store.Cluster(ctx, key)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return c, err
}

// planCluster is nil when the deletion uninstalls nothing, or is under way already.
func (g *Gate) planCluster(ctx context.Context, c *v1alpha1.Cluster) (*plan, error) {
	if c.DeletionTimestamp != nil || !c.Spec.DeletionPolicy.PruneReleases {
		return nil, nil
	}
	all, err := g.store.Releases(ctx, c.Namespace, c.Name)
	if err != nil {
		return nil, err
	}
	p := &plan{
		object: c, command: "cluster/" + c.Name,
		accounts: []account{{namespace: c.Namespace}, {c.Namespace, c.Name}},
	}
	all = slices.DeleteFunc(all, func(r *v1alpha1.Release) bool { return !uninstalls(r) })
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortFunc(all, func(a, b *v1alpha1.Release) int { return strings.Compare(string(a.UID), string(b.UID)) })
	for _, r := range all {
		p.uids = append(p.uids, r.UID)
		p.sequence = max(p.sequence, r.Status.Sequence)
	}
	p.what = fmt.Sprintf("the workloads of its %d Releases", len(all))
	p.digest = digestOf(c.UID, all...)
	return p, nil
}

// digestOf is over what would be deleted: the object, and of each Release the
// order and the render that run. It has the same size for any number.
func digestOf(uid types.UID, releases ...*v1alpha1.Release) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", uid)
	for _, r := range releases {
		fmt.Fprintf(h, "%s %d %s\n", r.UID, r.Status.Sequence, r.Status.RenderRef)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// decide lets a deletion pass, or says why not. What was taken from the budget for
// it is given back by the caller when the deletion fails.
func (g *Gate) decide(ctx context.Context, by asker, p *plan) (taken []types.UID, held *v1alpha1.HeldDeletion, err error) {
	if g.isConfirmed(p) {
		return nil, nil, nil
	}
	now := g.clock.Now()
	hold := v1alpha1.HeldDeletion{By: by.user, At: metav1.NewTime(now).Rfc3339Copy(), Sequence: p.sequence, Digest: p.digest}
	if by.collects(p.object) {
		hold.Reason, hold.Message = v1alpha1.HeldByCollector, g.collected(p)
	} else {
		if g.budget.Count == 0 || len(p.uids) == 0 {
			return nil, nil, nil
		}
		var short *shortage
		taken, short, err = g.spend(ctx, p)
		if err != nil || short == nil {
			return taken, nil, err
		}
		hold.Reason, hold.Message = v1alpha1.HeldByBudget, short.message
		if !short.until.IsZero() {
			until := metav1.NewTime(short.until).Rfc3339Copy()
			hold.Until = &until
		}
	}
	// With its namespace, a Release is orphaned, and nothing is uninstalled.
	if g.terminating != nil {
		going, err := g.terminating(ctx, p.object.GetNamespace())
		if err == nil && going {
			return nil, nil, nil
		}
		// A host that does not answer is no reason to let go: it is asked again with the
		// next attempt.
	}
	return nil, &hold, nil
}

// spend takes what a deletion costs off the budget. It gives what was taken, or why
// there is not enough left.
func (g *Gate) spend(ctx context.Context, p *plan) (taken []types.UID, short *shortage, err error) {
	for {
		for _, a := range p.accounts {
			if err := g.open(ctx, a); err != nil {
				return nil, nil, err
			}
		}
		taken, short, closed := g.trySpend(p)
		if !closed {
			return taken, short, nil
		}
		// A window was over just now, and another deletion has dropped it.
	}
}

func (g *Gate) trySpend(p *plan) (taken []types.UID, short *shortage, closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken, accounts, closed := g.spendLocked(p.accounts, p.uids)
	if len(accounts) > 0 {
		short = g.overspentLocked(p, accounts)
	}
	return taken, short, closed
}

// open begins a window for an account that has none.
func (g *Gate) open(ctx context.Context, a account) error {
	now := g.clock.Now()
	g.mu.Lock()
	open := g.openLocked(a, now)
	g.mu.Unlock()
	if open {
		return nil
	}
	all, err := g.store.Releases(ctx, a.namespace, a.cluster)
	if err != nil {
		return fmt.Errorf("count the Releases of %s: %w", a, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.openLocked(a, now) {
		g.windows[a] = &window{opened: now, releases: len(all), limit: g.budget.limit(len(all)), deleted: map[types.UID]struct{}{}}
	}
	return nil
}

func (g *Gate) collected(p *plan) string {
	return fmt.Sprintf("its deletion is held: the garbage collector asks for it, since an owner in metadata.ownerReferences does not exist; %s go on running. "+
		"Take the owner reference away to keep it, or confirm with `kubectl convoy confirm -n %s %s` and delete it",
		p.what, p.object.GetNamespace(), p.command)
}

// overspentLocked says of the first account that has not enough left why, and when
// all have; but first of one of which the deletion alone is more than the budget.
func (g *Gate) overspentLocked(p *plan, short []account) *shortage {
	named, wait := short[0], &shortage{}
	for _, a := range short {
		w := g.windows[a]
		if len(p.uids) > w.limit {
			named, wait.until = a, time.Time{}
			break
		}
		if end := w.opened.Add(g.budget.Window); end.After(wait.until) {
			wait.until = end
		}
	}
	orWait := "; waiting does not help, since that is more than the budget alone"
	if !wait.until.IsZero() {
		orWait = ", or wait until " + clockTime(wait.until)
	}
	w := g.windows[named]
	wait.message = fmt.Sprintf("its deletion is held: %d of at most %d Releases of %s were deleted since %s (there were %d then), and it would delete %d; %s go on running. "+
		"Confirm with `kubectl convoy confirm -n %s %s` and delete it again%s",
		len(w.deleted), w.limit, named, clockTime(w.opened), w.releases, len(p.uids), p.what, p.object.GetNamespace(), p.command, orWait)
	return wait
}

func clockTime(t time.Time) string { return t.UTC().Format(time.TimeOnly) + " UTC" }
