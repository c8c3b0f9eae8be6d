// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// errHubStopped is what a thing ends with that only a hub that runs can be asked for.
var errHubStopped = errors.New("the hub is stopped")

// hubRuns says whether the hub was not stopped by the case.
func (p *Player) hubRuns() bool {
	process := p.world.Hub.Process()
	return process != nil && process.Running()
}

// publishOn makes or syncs a Release on one target. What the hub refuses is told. What
// cannot be asked for now is asked for when it can be: see catchUp.
func (p *Player) publishOn(ctx context.Context, t *target, r *release) error {
	delete(r.pending, t)
	if !p.hubRuns() {
		r.pending[t] = errHubStopped.Error()
		p.say("# %s on %s: the hub is stopped: what was committed is asked for when it is back\n", r.name, t.cluster)
		return nil
	}
	err := p.published(ctx, t, r)
	if refusal, ok := refusedByHub(err); ok {
		p.say("# %s on %s: REFUSED by the hub: %s\n", r.name, t.cluster, refusal)
		return nil
	}
	return err
}

// refusedByHub tells a hub's no from an answer that says nothing of what was asked.
func refusedByHub(err error) (string, bool) {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		if code < http.StatusBadRequest || code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusUnauthorized {
			return "", false
		}
	}
	return asRefusal(err)
}

func (p *Player) published(ctx context.Context, t *target, r *release) error {
	there, err := p.undying(ctx, t, r)
	if err != nil || r.pending[t] != "" {
		return err
	}
	if there {
		return p.sync(ctx, t, r)
	}
	r.deleted = false
	source := p.source(r)
	if err := p.world.Hub.Source(ctx, p.world.Git, t.namespace, source, metav1.Duration{Duration: 10 * time.Second}); err != nil {
		return err
	}
	made := install.Release(t.namespace, r.name, t.cluster, source, r.path, func(out *corev1alpha1.Release) {
		out.Spec.Content, out.Spec.Mutations = r.content, r.mutations
		if p.opts.Manual {
			out.Spec.SyncPolicy.Automatic = new(bool)
		}
	})
	for _, patch := range r.refused[t] {
		if made, err = merged(made, patch); err != nil {
			return err
		}
	}
	// kubectl apply would take nulls out of values before it sends them.
	if err := p.world.Hub.Create(ctx, made); err != nil {
		if _, ok := refusedByHub(err); ok && r.refused[t] == nil {
			r.refused[t] = []map[string]any{}
		}
		return err
	}
	delete(r.refused, t)
	again := r.published[t]
	r.published[t] = true
	if !p.opts.Manual && !again {
		return nil
	}
	// The source of a Release that is made again was looked at a moment ago.
	return p.sync(ctx, t, r)
}

// undying says whether there is a Release. One that is being deleted takes nothing any
// more: its end is waited for, here or, where it cannot come now, by catchUp.
func (p *Player) undying(ctx context.Context, t *target, r *release) (bool, error) {
	hub := p.world.Hub.Plane.Dynamic()
	u, err := hub.Resource(install.Releases).Namespace(t.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil || u.GetDeletionTimestamp() == nil {
		return err == nil, err //nolint:wrapcheck // names the Release
	}
	limit, why := p.opts.Rest, "it did not go for "+p.opts.Rest.String()
	if deaf := t.deaf(); deaf != "" {
		limit, why = quiet, deaf
	}
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = harness.WaitGone(wait, hub, install.Releases, t.namespace, r.name)
	if err == nil {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, err //nolint:wrapcheck // says what it waited for
	}
	r.pending[t] = "the Release of that name is still being deleted"
	p.say("# %s on %s: the Release of that name is still being deleted (%s), so none can be made: it is made when that one is gone\n", r.name, t.cluster, why)
	return false, nil
}

// merged is a Release with a change.
func merged(in *corev1alpha1.Release, patch map[string]any) (*corev1alpha1.Release, error) {
	whole, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if whole, err = jsonpatch.MergePatch(whole, change); err != nil {
		return nil, fmt.Errorf("%w: change of Release %s: %w", ErrCase, in.Name, err)
	}
	var out corev1alpha1.Release
	decoder := json.NewDecoder(bytes.NewReader(whole))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out); err != nil {
		return nil, fmt.Errorf("%w: change of Release %s: %w", ErrCase, in.Name, err)
	}
	return &out, nil
}

// catchUp asks for what could not be asked for before.
func (p *Player) catchUp(ctx context.Context) error {
	if !p.hubRuns() {
		return nil
	}
	for _, r := range p.releases {
		for _, t := range p.targets {
			why := r.pending[t]
			if why == "" || why != errHubStopped.Error() && t.deaf() != "" {
				continue
			}
			p.say("# asked for now, since it could not be before (%s):\n", why)
			if err := p.publishOn(ctx, t, r); err != nil {
				return err
			}
			if err := p.rest(ctx, t, r); err != nil {
				return err
			}
			if err := p.remember(ctx, t, r); err != nil {
				return err
			}
		}
	}
	return nil
}
